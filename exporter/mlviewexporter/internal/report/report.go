// Package report describes what became of a run in one document, to be kept or sent
// to somebody: as JSON, as an HTML file that needs nothing else, and as Markdown for
// an issue. It knows the model's documents and neither telemetry nor HTTP. What
// telemetry contains is shown as text in each form.
package report

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/compare"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/text"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Version is the version of Report. It changes only if a field changes its meaning
// or goes away.
const Version = 1

// Report is what became of a run, and the document of
// GET /api/v1/runs/{key}/report. Times are in UTC, durations in seconds, sizes in
// bytes, fractions between 0 and 1.
type Report struct {
	// Version is the version of this document.
	Version int `json:"version"`
	// Time is when the report was made, Collector the version of the distribution
	// that made it, and Since when its page started.
	Time      time.Time `json:"time"`
	Collector string    `json:"collector,omitempty"`
	Since     time.Time `json:"since"`
	// Summary says in one sentence what became of the run.
	Summary string  `json:"summary"`
	Run     api.Run `json:"run"`
	// Settings are what is known of how the run was started.
	Settings []api.Setting `json:"settings"`
	// GPUs are those that the run holds now, by host and product.
	GPUs  []GPUGroup `json:"gpus"`
	Spent api.Spent  `json:"spent"`
	// Numbers are those of the whole run.
	Numbers []api.RunNumber `json:"numbers"`
	// Phases are the mean seconds of each phase in a step, of the whole run.
	Phases []api.RunNumber `json:"phases"`
	Ranks  []api.Rank      `json:"ranks"`
	// MissingRanks are the ranks that sent nothing.
	MissingRanks []string    `json:"missing_ranks,omitempty"`
	Curves       []api.Curve `json:"curves"`
	// Marks are moments on the curves.
	Marks []api.Mark `json:"marks"`
	// Problems are those that last now, then those of the past, the newest first.
	Problems []Problem     `json:"problems"`
	Changes  []api.Change  `json:"changes"`
	Failures []api.Failure `json:"failures"`
	Costs    []Cost        `json:"costs"`
	// Comparison is the run beside its last good one, or another one that was asked
	// for.
	Comparison *api.Comparison `json:"comparison,omitempty"`
	// Missing is what the report cannot say, and why.
	Missing []api.Missing `json:"missing"`
	// LeftOut is the number of rows of each list beyond the limits of the report.
	LeftOut map[string]int `json:"left_out,omitempty"`
}

// GPUGroup are the GPUs of one product on one host.
type GPUGroup struct {
	Host  string `json:"host"`
	Name  string `json:"name,omitempty"`
	Count int    `json:"count"`
	// Indexes are the indexes of the GPUs on the host.
	Indexes []string `json:"indexes"`
}

// Problem is a problem that the run has or had.
type Problem struct {
	// Lasts reports whether the problem lasts. Of one of the past only Kind, Since
	// and Text are known.
	Lasts bool      `json:"lasts"`
	Kind  string    `json:"kind"`
	Since time.Time `json:"since"`
	// Text says what was marked on the curves.
	Text string `json:"text,omitempty"`
	// Need is the problem as the page shows it.
	Need *api.Need `json:"need,omitempty"`
}

// Cost is what a run costs.
type Cost struct {
	// Name is gpu_hours, gpu_hours_lost, gpu_cost or usage.
	Name  string  `json:"name"`
	Unit  string  `json:"unit"`
	Value float64 `json:"value"`
	// Basis says what the number covers.
	Basis string `json:"basis"`
}

// Limits of the lists of a report.
const (
	maxRanks  = 128
	maxRows   = 50
	maxPoints = 240
)

// Slight reports whether the run shows next to nothing: at most one step, sample and
// token, and no GPU, failure or problem. Anyone who can send spans can invent such runs.
func (r *Report) Slight() bool {
	most := max(api.Value(r.Run.Steps), api.Value(r.Run.Samples), api.Value(r.Run.Tokens))
	nothing := r.Run.Errors == nil && r.Spent.GPUHours == nil && len(r.GPUs)+len(r.Problems)+len(r.Failures) == 0
	return most <= 1 && nothing
}

// New returns the report of a run whose details are d: by the State s that they
// belong to, and with a comparison if it is not nil.
func New(s *api.State, d *api.RunDetail, c *api.Comparison) *Report {
	r := &Report{
		Version: Version, Time: s.Time, Collector: s.Collector.Version, Since: s.Collector.Started,
		Run: d.Run, Settings: d.Settings, Spent: d.Spent, MissingRanks: d.MissingRanks,
		GPUs: groups(s, d.Run.GPUKeys), Problems: problems(d), Curves: thinned(d.Curves),
		LeftOut: make(map[string]int),
	}
	if c != nil {
		r.Comparison = c
		r.Numbers, r.Phases = c.Run.Numbers, c.Run.Phases
	}
	r.Ranks = api.Limited(r.LeftOut, "ranks", ordered(d.Ranks), maxRanks)
	r.Problems = api.Limited(r.LeftOut, "problems", r.Problems, maxRows)
	r.Changes = api.Limited(r.LeftOut, "changes", d.Changes, maxRows)
	r.Failures = api.Limited(r.LeftOut, "failures", d.Failures, maxRows)
	r.Marks = d.Marks[max(0, len(d.Marks)-maxRows):]
	r.Costs = costs(s, d)
	r.Missing = api.Limited(r.LeftOut, "missing", missing(s, r), maxRows)
	r.Summary = r.summary()
	api.MakeLists(r)
	return r
}

// ordered returns the ranks that took the fewest steps first, if they are too many
// to show all.
func ordered(ranks []api.Rank) []api.Rank {
	if len(ranks) <= maxRanks {
		return ranks
	}
	return slices.SortedStableFunc(slices.Values(ranks), func(a, b api.Rank) int {
		return api.Value(a.LastSpanTime).Compare(api.Value(b.LastSpanTime))
	})
}

// groups returns the GPUs with the keys by host and product.
func groups(s *api.State, keys []string) []GPUGroup {
	held := mlattr.Where(slices.Values(s.GPUs), func(gpu api.GPU) bool { return slices.Contains(keys, gpu.Key) })
	alike := api.Grouped(held, func(gpu *api.GPU) [2]string { return [2]string{gpu.Host, gpu.Name} })
	return mlattr.Mapped(alike, func(all []*api.GPU) GPUGroup {
		indexes := mlattr.Mapped(all, func(gpu *api.GPU) string { return cmp.Or(gpu.Index, gpu.ID) })
		return GPUGroup{Host: all[0].Host, Name: all[0].Name, Count: len(all), Indexes: indexes}
	})
}

// problems returns the problems that last, then those of the past, the newest
// first.
func problems(d *api.RunDetail) (rows []Problem) {
	rows = mlattr.Mapped(d.Needs, func(n api.Need) Problem { return Problem{Lasts: true, Kind: n.Kind, Since: n.Since, Need: &n} })
	for _, m := range slices.Backward(d.Marks) {
		if m.Kind != "change" && m.Kind != "failure" && m.Kind != "state" && !slices.ContainsFunc(d.Needs, func(n api.Need) bool { return n.Kind == m.Kind && n.Since.Sub(m.Time).Abs() < time.Second }) {
			rows = append(rows, Problem{Kind: m.Kind, Since: m.Time, Text: m.Text})
		}
	}
	return rows
}

// costUsage is the name of the cost of requests to models.
const costUsage = "usage"

// costs returns what the run costs, as far as it is known.
func costs(s *api.State, d *api.RunDetail) (rows []Cost) {
	add := func(name, unit string, value *float64, basis string) {
		if value != nil {
			rows = append(rows, Cost{name, unit, *value, basis})
		}
	}
	var lost, usage *float64
	for i := range d.Needs {
		if hours := d.Needs[i].GPUHours; api.Value(hours) > api.Value(lost) {
			lost = hours
		}
	}
	for i := range s.Models {
		if m := &s.Models[i]; m.Service == d.Run.Service && m.Cost != nil {
			usage = new(api.Value(usage) + *m.Cost)
		}
	}
	add("gpu_hours", "GPU-hours", d.Spent.GPUHours, "GPUs that the run held, times the time since the page first saw it")
	add("gpu_hours_lost", "GPU-hours", lost, "since the onset of the problem that lasts")
	add("gpu_cost", "USD", d.Spent.GPUCost, "these GPU-hours by the prices of ml_metrics (prices::gpu_hour)")
	if d.Run.Cost != nil {
		add(costUsage, "USD", d.Run.Cost, "the run's requests to models, as clients state it or by the prices of ml_metrics (prices::file)")
	} else {
		add(costUsage, "USD", usage, "requests of the service "+strconv.Quote(d.Run.Service)+" to models, for all of its runs")
	}
	return rows
}

// thinned returns curves of at most maxPoints points, means of as many neighbors.
func thinned(curves []api.Curve) []api.Curve {
	return mlattr.Mapped(curves, func(c api.Curve) api.Curve {
		c.Fine, c.Times, c.Values = nil, compare.Thinned(c.Times, maxPoints), compare.Thinned(c.Values, maxPoints)
		return c
	})
}

// missing returns what the report cannot say: of the run, and of the page as a
// whole.
func missing(s *api.State, r *Report) (rows []api.Missing) {
	add := func(is bool, kind, what, why, fix string) {
		if is {
			rows = append(rows, api.Missing{Key: "report " + kind, Kind: kind, What: what, Why: why, Fix: fix})
		}
	}
	has := func(name string) bool {
		return slices.ContainsFunc(r.Settings, func(one api.Setting) bool { return one.Name == name })
	}
	drawn := slices.ContainsFunc(r.Curves, func(c api.Curve) bool { return c.Name == "loss" })
	add(r.Run.FirstSeen.Sub(r.Since) < time.Minute, "before", "What was before "+clock(r.Since), "The page began then, and the run may have begun earlier. Curves begin anew with the page.", "ml_view: {storage: file_storage} keeps changes, states, failures and good runs")
	add(r.Run.Steps == nil, "steps", "Steps", "Nobody sent a span of a training step.", "")
	add(!drawn && r.Run.Loss == nil, "loss", "Loss", "No span had ml.loss.", "")
	add(r.Run.LastCheckpoint == nil && r.Run.Steps != nil, "checkpoint", "Checkpoints", "No span had ml.phase = checkpoint.", "")
	add(len(r.GPUs) == 0 && !has("hw.name"), "run_gpus", "The GPUs of the run", "No GPU's workload was joined to the run.", "")
	add(r.Run.Owner == "", "owner", "The owner", "Neither spans nor the GPUs' workloads name a user.", "ml_enrich adds ml.user, if it has a key")
	add(r.Run.Version == "", "version", "The version", "The resource has no service.version.", "OTEL_RESOURCE_ATTRIBUTES=service.version=<version>")
	add(!has("vcs.ref.head.revision"), "commit", "The commit", "The resource has no vcs.ref.head.revision.", "OTEL_RESOURCE_ATTRIBUTES=vcs.ref.head.revision=$(git rev-parse HEAD)")
	add(len(r.Spent.Uses) == 0, "time", "What the time went to", "There is no ml.run.time.ratio of the run.", "")
	for _, field := range slices.Sorted(maps.Keys(r.Run.Why)) {
		add(true, "run "+field, strings.ReplaceAll(field, "_", " "), r.Run.Why[field], "")
	}
	for _, row := range s.Missing {
		said := row.Kind == "step_tokens" && r.Run.Why["token_rate"] != ""
		if !said && (!slices.Contains(ofServices, row.Kind) || strings.Contains(row.What, r.Run.Service)) {
			rows = append(rows, row)
		}
	}
	return rows
}

// ofServices are the kinds of what is missing that name the services concerned.
var ofServices = []string{"run", "rank_host", "step_tokens"}

// clock writes a time in UTC, empty for none.
func clock(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

// at writes a time of the report's day without the date.
func (r *Report) at(t time.Time) string {
	day := r.Time.UTC().Format(time.DateOnly + " ")
	return strings.TrimSuffix(strings.TrimPrefix(clock(t), day), " UTC")
}

// summary says what became of the run in one sentence.
func (r *Report) summary() string {
	said := "The run " + cmp.Or(stateWords[r.Run.State], "is "+text.Words(r.Run.State))
	switch {
	case r.Run.StateSince == nil || r.Run.State == mlattr.RunRunning:
	case mlattr.RunOver(r.Run.State):
		said = "The run " + r.Run.State + " at " + clock(*r.Run.StateSince)
	default:
		said += " since " + clock(*r.Run.StateSince)
	}
	if r.Run.Steps != nil {
		said += ", after " + counted(*r.Run.Steps, "step")
	}
	var kinds []string
	lasting := false
	for _, p := range r.Problems {
		if lasting = lasting || p.Lasts; p.Lasts && (p.Kind != mlattr.ProblemLooksHung || r.Run.State != mlattr.RunStalled) {
			kinds = append(kinds, text.Kind(p.Kind))
		}
	}
	switch {
	case len(kinds) > 0:
		said += "; problems that last: " + strings.Join(kinds, ", ")
	case !lasting && len(r.Problems) > 0:
		said += "; no problem lasts, " + counted(float64(len(r.Problems)), "problem") + " before"
	case !lasting:
		said += "; no problem was seen"
	}
	if len(r.Failures) > 0 {
		said += "; " + counted(float64(len(r.Failures)+r.LeftOut["failures"]), "kind") + " of failure"
	}
	return said + "."
}

func counted(n float64, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return text.Count(&n) + " " + thing
}

// title returns the title of a name, or its words.
func title(name string) cell { return own(cmp.Or(titles[name], text.Words(name))) }

// number writes a number with its unit, empty if it is nil.
func number(v *float64, unit string) string {
	if v == nil {
		return ""
	}
	switch unit {
	case "s":
		return text.Seconds(v)
	case "1":
		return text.Percent(v)
	case "By":
		return text.GiB(v)
	case "{token}/s", "{sample}/s":
		return text.Number(v) + "/s"
	case "{step}", "{token}", "{error}", "{attempt}":
		return text.Count(v)
	case "W", "h":
		return text.Number(v) + " " + unit
	}
	if size := math.Abs(*v); size >= 0.01 && size < 1000 {
		return strconv.FormatFloat(*v, 'f', 4, 64)
	}
	return strconv.FormatFloat(*v, 'g', 4, 64)
}
