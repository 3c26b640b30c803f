package text

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

func (d *document) runs() {
	if len(d.state.Runs) == 0 {
		d.title(bold, "RUNS", 0, 0)
		d.lines("no run has sent data yet")
		return
	}
	now := d.state.Time
	names := d.runNames()
	// Those that are over are one line, unless all are.
	over := func(r api.Run) bool {
		return len(r.Needs) == 0 && (r.State == mlattr.RunSilent || r.State == mlattr.RunEnded)
	}
	// Runs that need someone come first and ended ones last.
	rows := slices.SortedStableFunc(slices.Values(d.state.Runs), func(a, b api.Run) int {
		lasts := func(r *api.Run) bool { return len(r.Needs) > 0 || !mlattr.RunOver(r.State) }
		return cmp.Or(api.TrueFirst(len(a.Needs) > 0, len(b.Needs) > 0), api.TrueFirst(lasts(&a), lasts(&b)))
	})
	folded := api.Where(slices.Values(rows), over)
	if len(folded) < 2 || len(folded) == len(rows) {
		folded = nil
	} else {
		rows = slices.DeleteFunc(rows, over)
	}
	for i := range rows {
		if r := &rows[i]; !alive(r) {
			r.StepTime, r.TokenRate, r.SampleRate, r.Bound, r.Why = nil, nil, nil, "", nil
		}
	}
	section(d, part[api.Run]{name: "RUNS", note: runsNote, list: "runs", most: 50, columns: []column[api.Run]{
		{title: "run", least: min(22, d.Width/5), wrap: true, text: func(r *api.Run) string { return names[r.Key] }},
		{title: "id", leave: 16, text: func(r *api.Run) string { return shortID(r.ID) }},
		{title: "data", text: func(r *api.Run) string { return d.simulated(r.Simulated, r.Recorded) }},
		{title: "owner", least: 8, text: func(r *api.Run) string { return Printable(r.Owner) }},
		{title: "job", least: 6, leave: 14, text: func(r *api.Run) string { return Printable(r.Job) }},
		{title: "state", text: d.runState},
		{title: "GPUs", right: true, leave: 5, text: func(r *api.Run) string { return Number(r.GPUs) }},
		{title: "GPU use", right: true, leave: 11, text: func(r *api.Run) string { return Percent(r.GPUUtilization) }},
		{title: "step", right: true, leave: 9, text: func(r *api.Run) string { return Count(r.Steps) }},
		{title: "s/step", right: true, leave: 1, text: func(r *api.Run) string { return number(r.StepTime) }},
		{title: "vs usual", right: true, leave: 6, text: func(r *api.Run) string { return Change(r.StepTime, r.StepTimeUsual) }},
		{title: "tok/s", right: true, leave: 4, text: tokenRate},
		{title: "samples/s", right: true, leave: 13, text: func(r *api.Run) string { return number(r.SampleRate) }},
		{title: "loss", right: true, leave: 15, text: func(r *api.Run) string { return loss(r.Loss) }},
		{title: "goodput", right: true, leave: 2, text: func(r *api.Run) string { return Percent(r.Goodput) }},
		{title: "limited by", leave: 3, text: bound},
		{title: "ckpt age", right: true, leave: 10, text: func(r *api.Run) string { return age(now, r.LastCheckpoint) }},
		{title: "restarts", right: true, leave: 12, text: restarts},
		{title: "errors", right: true, leave: 7, text: func(r *api.Run) string { return Count(r.Errors) }},
		{title: "last step", right: true, leave: 8, text: func(r *api.Run) string { return ago(now, r.LastStep) }},
	}, after: func(r *api.Run) {
		if tokenRate(r) != noTokens {
			return
		}
		why, more, _ := strings.Cut(r.Why["token_rate"], ". ")
		switch {
		case r.Samples != nil:
			why = cmp.Or(prefixed("", number(r.SampleRate), " samples/s"), why)
		case more != "":
			why += " (fix: DATA GAPS)"
		}
		d.paragraph(4, "tok/s: "+Printable(why))
	}}, rows)
	ids := api.Mapped(folded, func(r api.Run) string { return names[r.Key] })
	d.paragraph(0, prefixed(strconv.Itoa(len(folded))+" more are silent or have ended: ", strings.Join(ids, ", "), ""))
}

// runsNote says what the numbers of runs are of.
const runsNote = "rates: of all ranks together, none if no steps are taken; " +
	"goodput: of the last 15 minutes; shared GPUs count in parts"

// runNames returns the names of runs by their keys: the service, with the id where
// several runs have the same one.
func (d *document) runNames() map[string]string {
	runs := make(map[string]int)
	for _, r := range d.state.Runs {
		runs[r.Service]++
	}
	names := make(map[string]string)
	for _, r := range d.state.Runs {
		names[r.Key] = Printable(cmp.Or(r.Service, r.ID))
		if runs[r.Service] > 1 {
			names[r.Key] = joined(" ", names[r.Key], cut(Printable(r.ID), shownOfID))
		}
	}
	return names
}

// shownOfID is how much of a run's id tells runs of a service apart, in cells.
const shownOfID = 9

// noTokens stands for tokens per second that the line below says why they are missing.
const noTokens = "none"

// tokenRate writes the tokens per second of a run.
func tokenRate(r *api.Run) string {
	if r.TokenRate == nil && r.Why["token_rate"] != "" {
		return noTokens
	}
	return number(r.TokenRate)
}

// runState writes the state and the problems that it does not say itself.
func (d *document) runState(r *api.Run) string {
	texts := []string{State(r.State)}
	for _, need := range r.Needs {
		if need != api.LooksHung && need != mlattr.ProblemRunSilent {
			texts = append(texts, Kind(need))
		}
	}
	return joined(", ", append(texts, prefixed("no data since ", clock(d.state.Time, api.Value(r.NoDataSince)), ""))...)
}

// alive reports whether the rates of a run are those of now. What is known of a
// run that looks hung, is silent, has failed or has ended are its last ones, and so are
// those of one that sends nothing.
func alive(r *api.Run) bool {
	return r.NoDataSince == nil && r.State != mlattr.RunStalled && r.State != mlattr.RunSilent && !mlattr.RunOver(r.State)
}

// bound says what the run's steps wait for.
func bound(r *api.Run) string {
	if word, known := bounds[r.Bound]; known {
		return word
	}
	return Words(r.Bound)
}

// bounds are the words for what the steps of a run wait for that are not its own.
var bounds = map[string]string{"input": "data", "gpu": "GPU", "unknown": ""}

func restarts(r *api.Run) string {
	if r.Attempts == nil {
		return ""
	}
	return Count(new(max(0, *r.Attempts-1)))
}

func (d *document) failures() {
	now := d.state.Time
	section(d, part[api.Failure]{name: "FAILURES", note: "the newest first", list: "failures", most: 10, columns: []column[api.Failure]{
		{title: "last", right: true, text: func(f *api.Failure) string { return ago(now, f.LastSeen) }},
		{title: "first", right: true, leave: 1, text: func(f *api.Failure) string { return ago(now, f.FirstSeen) }},
		{title: "count", right: true, text: func(f *api.Failure) string { return strconv.FormatInt(f.Count, 10) }},
		{title: "different inputs", right: true, leave: 2, text: func(f *api.Failure) string {
			if f.Variants <= 0 {
				return ""
			}
			return strconv.Itoa(f.Variants)
		}},
		{title: "data", text: func(f *api.Failure) string { return d.simulated(f.Simulated, false) }},
		{title: "class", least: 28, wrap: true, text: func(f *api.Failure) string { return classOf(f.Class) }},
		{title: "service · run · version", least: 23, wrap: true, text: func(f *api.Failure) string {
			return joined(" · ", Printable(f.Service), prefixed("run ", shortID(f.RunID), ""), prefixed("version ", Printable(f.Version), ""))
		}},
	}, after: func(f *api.Failure) {
		d.detail("", joined(": ", prefixed("in ", Printable(f.Operation), ""), Printable(f.Message)))
		d.reproduction(f)
	}}, d.state.Failures)
}

// classOf writes the class of an error, in words where none was sent.
func classOf(class string) string {
	if class == "_OTHER" {
		return "error without a type"
	}
	return Printable(class)
}

// reproduction writes the command of a failure, after what it does and needs, or
// why there is none.
func (d *document) reproduction(f *api.Failure) {
	if f.Command == "" {
		d.detail("reproduction: ", Printable(f.Why))
		return
	}
	does := "runs the failed call again, and may ask first"
	if !f.Replays {
		does = joined(": ", "prints what is known of it; no replay", Printable(f.Why))
	}
	// The flags stand in the command.
	others := api.Where(slices.Values(f.Requires), func(need string) bool { return !strings.HasPrefix(need, "--") })
	d.paragraph(4, joined("; ", does, prefixed("needs ", Printable(strings.Join(others, ", ")), ""),
		prefixed("replace ", Printable(strings.Join(f.Fill, ", ")), " by your own"))+":")
	d.copied("$", f.Command)
}

func (d *document) changes() {
	now := d.state.Time
	section(d, part[api.Change]{name: "CHANGES", list: "changes", most: 5, columns: []column[api.Change]{
		{title: "at", text: func(c *api.Change) string { return clock(now, c.Time) }},
		{title: "service", least: 8, text: func(c *api.Change) string { return Printable(c.Service) }},
		{title: "run", least: 8, leave: 1, text: func(c *api.Change) string { return shortID(c.RunID) }},
		{title: "change", least: 12, text: func(c *api.Change) string { return Printable(c.Text) }},
	}}, d.state.Changes)
}

func (d *document) models() {
	section(d, part[api.Model]{name: "MODELS", list: "models", most: 20,
		note: "failing: of the last 100 requests of the service, with the tools that they call, and before that of up to 1000; failures outside of requests are in FAILURES only; calls and errors: of the model alone", columns: []column[api.Model]{
			{title: "service", least: 22, text: func(m *api.Model) string { return Printable(m.Service) }},
			{title: "model · role", least: 20, text: func(m *api.Model) string { return joined(" · ", Printable(m.Model), Printable(m.Role)) }},
			{title: "data", text: func(m *api.Model) string { return d.simulated(m.Simulated, false) }},
			{title: "side", leave: 9, text: func(m *api.Model) string { return Words(m.Side) }},
			{title: "calls/s", right: true, leave: 2, text: func(m *api.Model) string { return number(m.RequestRate) }},
			{title: "in tok/s", right: true, leave: 4, text: func(m *api.Model) string { return number(m.InputTokenRate) }},
			{title: "out tok/s", right: true, leave: 3, text: func(m *api.Model) string { return number(m.OutputTokenRate) }},
			{title: "input cached", right: true, leave: 10, text: func(m *api.Model) string { return share(m.CachedTokens, m.InputTokens) }},
			{title: "first token p50/p95", right: true, leave: 5, text: func(m *api.Model) string { return quantiles(m.FirstToken, Seconds) }},
			{title: "duration p50/p95", right: true, leave: 1, text: func(m *api.Model) string { return quantiles(m.Duration, Seconds) }},
			{title: "tok/s of a call p50/p95", right: true, leave: 6, text: func(m *api.Model) string { return quantiles(m.Decode, number) }},
			{title: "failing", right: true, text: func(m *api.Model) string { return Percent(m.ErrorRatio) }},
			{title: "errors", least: 10, leave: 7, text: func(m *api.Model) string { return byType(m.Errors) }},
			{title: "cut by length", right: true, leave: 8, text: func(m *api.Model) string { return Count(m.LengthStops) }},
			{title: "cost", right: true, leave: 11, text: func(m *api.Model) string { return number(m.Cost) }},
		}, after: d.modelDetails}, d.state.Models)
}

// modelDetails writes how often requests failed before, and the failed calls of tools.
func (d *document) modelDetails(m *api.Model) {
	if usual := Percent(m.ErrorRatioUsual); usual != Percent(m.ErrorRatio) {
		d.detail("failing before: ", usual)
	}
	d.detail("failed calls of the service's tools: ", byType(m.ToolErrors))
}

func share(part, whole *float64) string {
	if part == nil || whole == nil || *whole <= 0 {
		return ""
	}
	return Percent(new(*part / *whole))
}

func quantiles(q *api.Quantiles, write func(*float64) string) string {
	if q == nil || q.Count == 0 {
		return ""
	}
	return write(&q.P50) + " / " + write(&q.P95)
}

func byType(errors map[string]float64) string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(errors)) {
		if n := errors[name]; n > 0 {
			texts = append(texts, Printable(name)+" "+Count(&n))
		}
	}
	return strings.Join(texts, ", ")
}

func (d *document) pools() {
	section(d, part[api.Pool]{name: "POOLS OF WORKERS", list: "pools", most: 20, columns: []column[api.Pool]{
		{title: "service", least: 14, text: func(p *api.Pool) string { return Printable(p.Service) }},
		{title: "pool", least: 8, text: func(p *api.Pool) string { return Printable(p.Pool) }},
		{title: "instance", leave: 1, text: func(p *api.Pool) string { return shortID(p.Instance) }},
		{title: "size", right: true, text: func(p *api.Pool) string { return Count(p.Size) }},
		{title: "busy", right: true, text: func(p *api.Pool) string { return Count(p.Busy) }},
		{title: "idle", right: true, text: func(p *api.Pool) string { return Count(p.Idle) }},
		{title: "queue", right: true, text: func(p *api.Pool) string { return Count(p.Queue) }},
		{title: "crashes", right: true, text: func(p *api.Pool) string { return Count(p.Crashes) }},
		{title: "breaker openings", right: true, leave: 2, text: func(p *api.Pool) string { return Count(p.Breakers) }},
		{title: "alerts", right: true, leave: 3, text: func(p *api.Pool) string { return Count(p.Alerts) }},
	}}, d.state.Pools)
}

func (d *document) calls() {
	section(d, part[api.Call]{name: "CALLS", note: "failed and slow ones first, then the newest", list: "calls", most: 10, columns: []column[api.Call]{
		{title: "started", text: func(c *api.Call) string { return c.Time.UTC().Format("15:04:05") }},
		{title: "service", least: 14, leave: 1, text: func(c *api.Call) string { return Printable(c.Service) }},
		{title: "function", least: 20, text: func(c *api.Call) string { return joined(".", Printable(c.Library), Printable(c.Function)) }},
		{title: "data", text: func(c *api.Call) string { return d.simulated(c.Simulated, false) }},
		{title: "took", right: true, text: func(c *api.Call) string { return Seconds(&c.Duration) }},
		{title: "queued", right: true, leave: 2, text: func(c *api.Call) string { return Seconds(c.Queue) }},
		{title: "encoding time", right: true, leave: 3, text: func(c *api.Call) string { return Seconds(c.Serialize) }},
		{title: "result", least: 18, text: result},
	}}, slices.SortedStableFunc(slices.Values(d.state.Calls), func(a, b api.Call) int {
		return cmp.Or(api.TrueFirst(a.Error != "", b.Error != ""), api.TrueFirst(a.Error != "" || a.Slow, b.Error != "" || b.Slow))
	}))
}

// result says how a call ended.
func result(c *api.Call) string {
	switch {
	case c.Error != "":
		return joined(": ", classOf(c.Error), Printable(c.Message))
	case c.Slow:
		return "ok, slow"
	default:
		return "ok"
	}
}

// silent returns the number of collectors that are silent.
func (d *document) silent() int {
	return len(api.Where(slices.Values(d.state.Collectors), func(c api.SendingCollector) bool { return c.SilentSince != nil }))
}

// collectors lists the collectors of a fleet if one of them is silent.
func (d *document) collectors() {
	if d.silent() == 0 {
		return
	}
	now := d.state.Time
	section(d, part[api.SendingCollector]{name: "COLLECTORS", list: "collectors", most: 20, columns: []column[api.SendingCollector]{
		{title: "collector", least: 16, text: func(c *api.SendingCollector) string { return Printable(c.ID) }},
		{title: "state", text: func(c *api.SendingCollector) string {
			return cmp.Or(prefixed("SILENT since ", clock(now, api.Value(c.SilentSince)), ""), "sending")
		}},
		{title: "last data", right: true, text: func(c *api.SendingCollector) string { return ago(now, &c.LastSeen) }},
		{title: "address", leave: 2, text: func(c *api.SendingCollector) string { return Printable(c.Address) }},
		{title: "version", leave: 1, text: func(c *api.SendingCollector) string { return Printable(c.Version) }},
	}}, d.state.Collectors)
}

func (d *document) missing() {
	rows := d.state.Missing
	if len(rows) == 0 {
		return
	}
	shown := rows[:min(20, len(rows))]
	d.title(bold, "DATA GAPS", len(shown), len(rows)+max(0, d.state.Collector.Hidden["missing"]))
	// What has the same reason and remedy stands together.
	for _, same := range api.Grouped(shown, func(m *api.Missing) [2]string { return [2]string{m.Why, m.Fix} }) {
		var what []string
		for _, m := range same {
			text := Printable(m.What)
			if m.Count > 0 {
				text += fmt.Sprintf(" (%d times)", m.Count)
			}
			if !slices.Contains(what, text) {
				what = append(what, text)
			}
		}
		d.paragraph(0, joined(": ", strings.Join(what, "; "), Printable(same[0].Why)))
		d.paragraph(4, prefixed("", belongs(same[0].Fix), ":"))
		d.copied(">", same[0].Fix)
	}
}

// sections are where the collector's configuration has a component, by its type.
var sections = map[string]string{
	"gpu": "receivers", "ml_enrich": "processors", "ml_guard": "processors", "repro_gen": "processors",
	"ml_metrics": "connectors", "ml_view": "exporters",
}

// belongs says where to write a remedy, empty if it is no setting.
func belongs(fix string) string {
	name, _, setting := strings.Cut(fix, ":")
	component, _, _ := strings.Cut(name, "/")
	switch {
	case strings.HasPrefix(fix, "OTEL_"):
		return "in the environment of the program"
	case setting && sections[component] != "":
		return "in the collector's configuration file, under " + sections[component]
	case strings.HasPrefix(fix, "receivers:"):
		return "in the collector's configuration file"
	default:
		return ""
	}
}
