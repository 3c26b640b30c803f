package anomalies

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// results is what docs/evidence/anomalies.md shows.
type results struct {
	planted  []row
	healthy  health
	recorded []recording
}

// enough is the number of allowed problems from which their absence tells something: of
// three, none is seen by chance once in 20 times.
const enough = 3

// nearOnset is what a reported onset may be off by to be called near.
const nearOnset = time.Minute

// row is what was measured for a plan, nil if it was not.
type row struct {
	plan  plan
	found *found
}

type recording struct {
	client string
	spans  int
	kinds  []string
}

// page returns docs/evidence/anomalies.md.
func (r *results) page() string {
	var b strings.Builder
	b.WriteString(head())
	r.writePlanted(&b)
	r.writeHealthy(&b)
	r.writeRecorded(&b)
	return b.String()
}

func head() string {
	return fmt.Sprintf(`<!-- Written by make anomalies UPDATE=1. DO NOT EDIT. -->

# How good the problems are

How many [problems](../problems.md) ml_metrics finds, how fast, and how many it reports where nothing
is wrong. `+"`make anomalies`"+` measures it in virtual time with the default configuration. Clients, GPUs and
faults are simulated, which proves nothing for your fleet. `+"`make check`"+` measures a part.

## What is simulated

TorchTel, TuFT, Snakepit, the FX toolkit, TaskWeaver, a loop of one's own, an agent with the GenAI
conventions, and readings of GPUs each %s.

Runs of 1 to 8 ranks with steps of %s to %s that wander, wait and are disturbed; loading, checkpoints (%s to %s), preemption (once in
%s) and restarts; losses by a power law. Services with day and night, bursts for up to %s, log-normal durations and errors
(%.1f %%). %.2f %% of the telemetry is lost, %.1f %% arrives twice, %.1f %% late (up to %s); each host is cut off once in %s, the collector
restarts once in %s.

`, span(gpuInterval), span(stepLeast), span(stepMost), span(saveLeast), span(saveMost), span(preemptEvery), span(burstMost),
		100*usualErrors, 100*lost, 100*twice, 100*late, span(lateMost), span(cutEvery), span(restartEvery))
}

func (r *results) writePlanted(b *strings.Builder) {
	fmt.Fprintf(b, `## What is planted

Runs or services of a row, %d unless it says more, are well for %s to %s (%s more where losses or
checkpoints are compared); then the problem begins in each. Recall is the share that is reported within 10m
to 4h, a day for versions ([plan.go](../../e2e/anomalies/plan.go)). The times are from the onset to the report (median, 90 %% quantile).

`+"`"+`lemon_host`+"`"+` has another test, with fleets of 32 hosts for 20 days. In 100 healthy ones it is never
reported; a host that spoils every third run is found in 88 of 100, after 10 days on average, and one
that spoils 60 %% in all 100, after 5.

Versions are compared in such fleets, too, where hosts differ and people change their programs: a driver
of half of the hosts that costs 5, 10 or 20 %% of a step is found in 77, 92 and 96 of 100; one with which
24 %% of the hosts of a run have a GPU that fails, and not 8 %%, in all 100, and 12 and not 4 %% in 58. In 500
fleets without one, of which 200 get another driver and 100 have two slow hosts, none is reported.

| Problem | System | Strength | Recall | Reported after |
| --- | --- | --- | --- | --- |
`, victims, span(usualLeast), span(usualLeast+usualSpread), span(usualLeast))
	measured, known, near := 0, 0, 0
	for _, row := range r.planted {
		p, f := row.plan, row.found
		if f == nil {
			continue
		}
		measured++
		recall := fmt.Sprintf("%.2f", f.recall())
		if f.planted != victims {
			recall += fmt.Sprintf(" of %d", f.planted)
		}
		if f.recall() < p.recall {
			recall += ", **not met**"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", p.kind, p.system, p.strength, recall, both(f.after))
		if len(f.off) > 0 {
			known++
			if quantile(f.off, 0.5) <= nearOnset {
				near++
			}
		}
	}
	fmt.Fprintf(b, "\nThe reported onset is at most %s from the true one, in the median, in %d of %d rows.\n", span(nearOnset), near, known)
	if measured < len(r.planted) {
		fmt.Fprintf(b, "\n%d of %d rows were measured, those of `make check`. `make anomalies UPDATE=1` measures all.\n", measured, len(r.planted))
	}
	b.WriteString("\n")
}

// both returns the median and the 90 % quantile of times.
func both(times []time.Duration) string {
	if len(times) == 0 {
		return ""
	}
	return span(quantile(times, 0.5)) + ", " + span(quantile(times, 0.9))
}

func (r *results) writeHealthy(b *strings.Builder) {
	h := &r.healthy
	fmt.Fprintf(b, `## What is reported where nothing is wrong

%d fleets of %d runs and %d services each, for %s: %.0f days of runs, %d spans. A preemption, a cut
and a restart are no problems. That a host had sent nothing for %s or longer was said %d times, of the host and of its run,
and is not counted.

| Severity | Limit | Allowed here | Reported | |
| --- | --- | ---: | ---: | --- |
`, h.fleets, h.runs/max(h.fleets, 1), h.services/max(h.fleets, 1), span(h.lived), float64(h.runs)*h.lived.Hours()/24, h.spans, span(silentAfter), h.silent)
	for _, l := range limits {
		verdict := "met"
		switch {
		case float64(h.count(l.severity)) > h.expected(l):
			verdict = "**not met**"
		case h.expected(l) < enough:
			verdict = "not refuted: too little was simulated to tell"
		}
		fmt.Fprintf(b, "| %s | %s | %.2f | %d | %s |\n", l.severity, l.text, h.expected(l), h.count(l.severity), verdict)
	}
	counts := make(map[string]int)
	for _, s := range h.untrue {
		counts[s.kind]++
	}
	var kinds []string
	for _, kind := range mlattr.Problems {
		if n := counts[kind.Name]; n > 0 {
			kinds = append(kinds, fmt.Sprintf("%s %d", kind.Name, n))
		}
	}
	fmt.Fprintf(b, "\nBy kind: %s.\n\n", cmp.Or(strings.Join(kinds, ", "), "none"))
}

func (r *results) writeRecorded(b *strings.Builder) {
	b.WriteString(`## What was recorded

Recordings of the clients' own programs, sent again at their pace. What is reported of each:

`)
	for _, rec := range r.recorded {
		reported := strings.Join(rec.kinds, ", ")
		if reported == "" {
			reported = "nothing"
		}
		fmt.Fprintf(b, "- %s, %d spans: %s\n", rec.client, rec.spans, reported)
	}
}

// span writes a duration with its two largest units, as 1h23m.
func span(d time.Duration) string {
	d = d.Round(time.Second)
	if d >= 24*time.Hour && d%(24*time.Hour) == 0 {
		if d == 24*time.Hour {
			return "a day"
		}
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	}
	for _, unit := range []struct {
		length, rest time.Duration
		name, less   string
	}{{time.Hour, time.Minute, "h", "m"}, {time.Minute, time.Second, "m", "s"}} {
		if d >= unit.length {
			text := fmt.Sprintf("%d%s", d/unit.length, unit.name)
			if rest := d % unit.length / unit.rest; rest > 0 {
				text += fmt.Sprintf("%d%s", rest, unit.less)
			}
			return text
		}
	}
	return fmt.Sprintf("%ds", d/time.Second)
}
