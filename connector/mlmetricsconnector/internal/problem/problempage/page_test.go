// Package problempage writes the documentation of problems and changes.
package problempage

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
)

func TestPageIsGeneratedFromTheTable(t *testing.T) {
	golden.File(t, "../../../../../docs/problems.md", page())
	golden.File(t, "../../../../../docs/evidence/problem-methods.md", methods())
	for _, kind := range mlattr.Problems {
		assert.Contains(t, page(), "\n| `"+kind.Name+"` |")
		assert.NotEmpty(t, kind.Title)
	}
}

// severities are the headings of the kinds of problems.
var severities = []struct {
	is    mlattr.Severity
	title string
	means string
}{
	{mlattr.SeverityPage, "Pages", "Someone should look now."},
	{mlattr.SeverityTicket, "Tickets", "Someone should look in working hours."},
	{mlattr.SeverityMark, "Marks", "Nobody has to act. A mark has log records and no series. The page shows it on the curves of its\nrun, and that of a service with the changes."},
}

// attribute is an attribute of log records.
type attribute struct{ name, means string }

var ofProblems = []attribute{
	{mlattr.Problem, "the kind"},
	{mlattr.ProblemID, "the same in all records of a problem"},
	{mlattr.ProblemState, "`began`, `updated`, `stale` or `ended`. A record with `began` is sent again when the cause becomes known later, and when a stale problem has new evidence"},
	{mlattr.ProblemSeverity, "`page`, `ticket` or `mark`"},
	{mlattr.ProblemOnset, "when it began, in seconds since 1970"},
	{mlattr.ProblemDetected, "when it was first known, in seconds since 1970"},
	{mlattr.ProblemEvidenceTime, "when the newest data that shows it arrived, in seconds since 1970"},
	{mlattr.ProblemEndReason, "why it has ended: `over`, newer data no longer shows it, or `no_evidence`"},
	{mlattr.ProblemValue, "what was observed"},
	{mlattr.ProblemUsual, "what it was before"},
	{mlattr.ProblemUnit, "the unit of both, by UCUM"},
	{mlattr.ProblemWindow, "the time in seconds that the value covers"},
	{mlattr.ProblemCount, "the number of observations in it"},
	{mlattr.RunID, "the run, if there is one; of GPUs that are held idle, the one that holds them"},
	{mlattr.RankGlobal, "the rank that it is about"},
	{mlattr.HostName, "the host"},
	{mlattr.HardwareID, "the GPU"},
	{mlattr.NVIDIAIndex, "the driver's index of that GPU, or of the one of the process to look at"},
	{mlattr.ProcessID, "the process to look at, on its host as far as its GPU tells"},
	{mlattr.GPURecoveryAction, "what the driver of a failed GPU asks for: 1 reset, 2 reboot, 3 end peer-to-peer work, 4 drain and reset, 5 restart the IMEX domain"},
	{mlattr.ProblemHeld, "the GPUs concerned, at most 64, each `host.name`, a slash and `hw.id`"},
	{mlattr.SlurmJobID, "the Slurm job that held the GPUs at the onset; in the same way `" +
		mlattr.K8sNamespace + "`, `" + mlattr.K8sPod + "`, `" + mlattr.ContainerID + "`, `" + mlattr.UserID + "` and `" + mlattr.UserName + "`"},
	{mlattr.ProblemEvidence, "short phrases that say what was observed, at most 16"},
	{mlattr.ProblemExcluded, "what was left out before values were compared, such as `checkpoint`"},
	{mlattr.ProblemBefore, "the changes within the 6 hours before the onset, each after its time, the newest first, at most 5. They came before it and are not necessarily the cause"},
	{mlattr.ProblemTelemetry, "the fraction of the expected telemetry that arrived"},
	{mlattr.ProblemGPUs, "the GPUs that the problem keeps from work; of a slow run, the part of them that its steps take longer"},
	{mlattr.ProblemGPUHours, "the hours of these GPUs from the onset on"},
	{mlattr.ProblemNext, "what to do next"},
	{mlattr.ProblemCause, "the id of the problem that this one follows from"},
}

var ofChanges = []attribute{
	{mlattr.ChangeKind, "what changed: see below"},
	{mlattr.ChangeFrom, "the value before"},
	{mlattr.ChangeTo, "the new value"},
	{mlattr.ChangeSetting, "the name of a setting"},
	{mlattr.RunID, "the run that changed, or in which another value of the service was first seen"},
	{mlattr.HostName, "the host that changed"},
}

// changes are the kinds of changes, and where they come from.
var changes = []attribute{
	{mlattr.ChangeVersion, "`service.version` of a service"},
	{mlattr.ChangeCommit, "`vcs.ref.head.revision` of a service, or a variable of a build system such as `GIT_COMMIT`"},
	{mlattr.ChangeImage, "`container.image.name`, `container.image.tags` and `container.image.id` of a service"},
	{mlattr.ChangeModel, "`gen_ai.request.model` of the requests of a service"},
	{mlattr.ChangeAnsweringModel, "`gen_ai.response.model` of the answers to one requested model"},
	{mlattr.ChangePrompt, "the system instructions of requests, or the name or version of a prompt, as a keyed hash"},
	{mlattr.ChangeTools, "the definitions of tools in requests, as a keyed hash"},
	{mlattr.ChangeSettings, "a setting of requests, such as `gen_ai.request.temperature`, or of a run, such as its micro batch size, as a keyed hash"},
	{mlattr.ChangeFramework, "the version of the language's runtime, the telemetry SDK or a package such as torch, where the resource states it"},
	{mlattr.ChangeDriver, "`hw.driver_version` of a host, as the `gpu` receiver reports it"},
	{mlattr.ChangeFirmware, "`hw.firmware_version` of a host's GPUs, where the `gpu` receiver has that enabled"},
	{mlattr.ChangeNodes, "a host that a run did not use before, to which one of its ranks has moved"},
	{mlattr.ChangeAttempt, "a new attempt of a run, with its new hosts"},
	{mlattr.ChangeWorldSize, "`ml.world_size` of a run"},
}

// page returns the documentation as Markdown.
func page() string {
	var b strings.Builder
	b.WriteString("# Problems and changes\n\n" +
		"<!-- Generated from internal/mlattr by \"go generate\". Do not edit. -->\n\n" +
		"What `ml_metrics` concludes about runs, services, GPUs and hosts. A problem has a series,\n" +
		"`ml.problem.onset.timestamp`, as long as it lasts, and log records when it begins, becomes stale,\n" +
		"ends or has other evidence; a change has one. [What to do about an\n" +
		"alert](troubleshooting.md#alerts), and [how many problems are found and reported in\n" +
		"vain](evidence/anomalies.md). Records need a [pipeline of\n" +
		"logs](../connector/mlmetricsconnector/README.md#records). `stall_timeout` is 5 minutes,\n" +
		"`first_step_timeout` and `idle_timeout` are 30, [unless set](../connector/mlmetricsconnector/README.md#configuration).\n")
	fmt.Fprintf(&b, "\n## How long a problem lasts\n\n"+
		"- A problem keeps the run, the host, the GPU and the workload that it had at its onset.\n"+
		"- It ends when newer data no longer shows it; of a kind with a time to be gone, after that time.\n"+
		"  One that comes back within 10 minutes of its end ends when it has been gone for 10 minutes.\n"+
		"- Without newer data it is stale after %.0f minutes, or %d of the usual intervals of its evidence if\n"+
		"  that is longer: the page shows it grey with its age, and GPU-hours stop counting. It ends after\n"+
		"  an hour without evidence, unless its rule says otherwise.\n"+
		"- With `storage`, open problems outlive a restart. One that is not found again ends without a\n"+
		"  verdict when newer data has come for 10 minutes.\n", problem.StaleAfter.Minutes(), problem.StaleIntervals)
	for _, severity := range severities {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| kind | of a | rule |\n|---|---|---|\n", severity.title, severity.means)
		for i := range mlattr.Problems {
			if kind := &mlattr.Problems[i]; kind.Severity == severity.is {
				fmt.Fprintf(&b, "| `%s` | %s | %s%s |\n", kind.Name, of(kind.Of), kind.Description, lasts(kind))
			}
		}
	}
	fmt.Fprintf(&b, "\n## Log records of problems\n\n"+
		"The event name is `%s`, the severity ERROR for a page, WARN for a ticket and INFO for a\n"+
		"mark, for other evidence, for a stale problem and for the end of one, the body one sentence. An\n"+
		"attribute that is not known is absent.\n\n", mlattr.Problem)
	list(&b, ofProblems)
	b.WriteString("\nA record with `updated`, at most one a minute, says that the words of the evidence are others or that\n" +
		"the value has changed by more than a fifth. To alert on records, leave them out: `ml.problem.state != \"updated\"`,\n" +
		"or in the collector a `filter` processor with the condition\n" +
		"`log.attributes[\"ml.problem.state\"] == \"updated\"` under `log_conditions`.\n")
	fmt.Fprintf(&b, "\n## Log records of changes\n\n"+
		"The event name is `%s`, the severity INFO, the body one phrase such as \"version 1.8.2 (was\n"+
		"1.8.1)\".\n\n", mlattr.EventChange)
	list(&b, ofChanges)
	b.WriteString("\nThe kinds of changes:\n\n")
	list(&b, changes)
	b.WriteString("\nWhat counts:\n\n" +
		"- The first value of anything is no change (of models, prompts, tools and settings, those of the first\n" +
		"  minute), and neither is one in use at the same time as others. A version, commit, image, framework,\n" +
		"  driver or world size that returns after an hour is a change again.\n" +
		"- More than three changes an hour or ten a day are none.\n" +
		"- Hashes are HMAC-SHA256, cut to 48 bits, with a random key. The key and what is compared are kept\n" +
		"  over restarts only with `storage`.\n")
	return b.String()
}

// terms has what several methods share, and the term of it that the page explains.
var terms = strings.NewReplacer(
	" of blocks of at least a minute and 10 observations (batch means: Law and Kelton), ", " of *blocks*, ",
	" in a row, together 3.5 robust deviations (Hampel, 1974) from those of up to 60 blocks before", " in a row",
	"Fisher's exact test (1935) against the up to 9000 outcomes before, with p < 1e-7; the onset by a cumulative sum (Page, 1954)", "*Fisher*",
)

// methods returns, as Markdown, the statistics by which problems are found.
func methods() string {
	var b strings.Builder
	b.WriteString("# Where the rules of problems come from\n\n" +
		"<!-- Generated from internal/mlattr by \"go generate\". Do not edit. -->\n\n" +
		"[Problems and changes](../problems.md) has the rules. Kinds that are not here count or compare\n" +
		"without statistics. *Blocks* have a minute and 10 observations or more (batch means: Law and\n" +
		"Kelton), and differ together by 3.5 robust deviations (Hampel, 1974) from those of up to 60\n" +
		"blocks before. *Fisher* is his exact test (1935) against the up to 9000 outcomes before, with\n" +
		"p < 1e-7; the onset is by a cumulative sum (Page, 1954).\n\n")
	var order []string
	kinds := make(map[string][]string)
	for i := range mlattr.Problems {
		if kind := &mlattr.Problems[i]; kind.Method != "" {
			if len(kinds[kind.Method]) == 0 {
				order = append(order, kind.Method)
			}
			kinds[kind.Method] = append(kinds[kind.Method], "`"+kind.Name+"`")
		}
	}
	for _, method := range order {
		fmt.Fprintf(&b, "- %s: %s\n", strings.Join(kinds[method], ", "), terms.Replace(method))
	}
	return b.String()
}

// lasts says for how long a problem lasts of which nothing is known, if that is not an
// hour, and for how long it must be gone.
func lasts(kind *mlattr.ProblemKind) string {
	if kind.Moment {
		return ""
	}
	text := ""
	if hours := kind.EndsAfter().Hours(); hours != 1 {
		text = fmt.Sprintf(" It lasts %.0f h without evidence.", hours)
	}
	if kind.Calm > 0 {
		text += fmt.Sprintf(" It ends when it has been gone for %.0f min.", kind.Calm.Minutes())
	}
	return text
}

func of(subject mlattr.ProblemOf) string {
	if subject == mlattr.OfGPU {
		return "GPU"
	}
	return string(subject)
}

func list(b *strings.Builder, rows []attribute) {
	for _, row := range rows {
		fmt.Fprintf(b, "- `%s`: %s\n", row.name, row.means)
	}
}
