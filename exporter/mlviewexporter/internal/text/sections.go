package text

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

func (d *document) runs() {
	if len(d.state.Runs) == 0 {
		d.title(bold, "RUNS", 0, 0)
		d.lines("no run has sent data yet")
		return
	}
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
	folded := mlattr.Where(slices.Values(rows), over)
	if len(folded) < 2 || len(folded) == len(rows) {
		folded = nil
	} else {
		rows = slices.DeleteFunc(rows, over)
	}
	for i := range rows {
		// What is known of such runs are their last rates, not those of now.
		r := &rows[i]
		if r.NoDataSince != nil || r.State == mlattr.RunStalled || r.State == mlattr.RunSilent || mlattr.RunOver(r.State) {
			r.StepTime, r.TokenRate, r.SampleRate, r.Bound, r.Why = nil, nil, nil, "", nil
		}
	}
	section(d, "runs", rows, func(r *api.Run) []string {
		return []string{
			names[r.Key], shortID(r.ID), d.simulated(r.Simulated, r.Recorded), Printable(r.Owner), Printable(r.Job), d.runState(r),
			Number(r.GPUs), Percent(r.GPUUtilization), Count(r.Steps), number(r.StepTime), Change(r.StepTime, r.StepTimeUsual),
			tokenRate(r), number(r.SampleRate), loss(r.Loss), Percent(r.Goodput), bound(r), age(d.state.Time, r.LastCheckpoint),
			restarts(r.Attempts), Count(r.Errors), ago(d.state.Time, r.LastStep),
		}
	}, d.runDetails, asMany)
	ids := mlattr.Mapped(folded, func(r api.Run) string { return names[r.Key] })
	d.paragraph(0, prefixed(strconv.Itoa(len(folded))+" more are silent or have ended: ", strings.Join(ids, ", "), ""))
}

// runDetails writes why a run has no tokens per second.
func (d *document) runDetails(r *api.Run) {
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
	d.detail("tok/s: ", Printable(why))
}

// runNames returns the names of runs by their keys: the service, with the id where
// several runs have the same one.
func (d *document) runNames() map[string]string {
	names := make(map[string]string)
	for _, same := range api.Grouped(d.state.Runs, func(r *api.Run) string { return r.Service }) {
		for _, r := range same {
			names[r.Key] = Printable(cmp.Or(r.Service, r.ID))
			if len(same) > 1 {
				names[r.Key] = joined(" ", names[r.Key], cut(Printable(r.ID), shownOfID))
			}
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
	needs := mlattr.Where(slices.Values(r.Needs), func(need string) bool { return need != mlattr.ProblemLooksHung && need != mlattr.ProblemRunSilent })
	texts := append([]string{State(r.State)}, mlattr.Mapped(needs, Kind)...)
	return joined(", ", append(texts, prefixed("no data since ", clock(d.state.Time, api.Value(r.NoDataSince)), ""))...)
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

// restarts writes how often a run was started again.
var restarts = known(func(attempts float64) string { return Count(new(max(0, attempts-1))) })

func (d *document) failures() {
	section(d, "failures", d.state.Failures, func(f *api.Failure) []string {
		inputs := ""
		if f.Variants > 0 {
			inputs = strconv.Itoa(f.Variants)
		}
		return []string{
			ago(d.state.Time, f.LastSeen), ago(d.state.Time, f.FirstSeen), strconv.FormatInt(f.Count, 10), inputs, d.simulated(f.Simulated, false),
			classOf(f.Class), joined(" · ", Printable(f.Service), prefixed("run ", shortID(f.RunID), ""), prefixed("version ", Printable(f.Version), "")),
		}
	}, func(f *api.Failure) {
		d.detail("", joined(": ", prefixed("in ", Printable(f.Operation), ""), Printable(f.Message)))
		d.reproduction(f)
	}, asMany)
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
	others := mlattr.Where(slices.Values(f.Requires), func(need string) bool { return !strings.HasPrefix(need, "--") })
	d.paragraph(4, joined("; ", does, prefixed("needs ", Printable(strings.Join(others, ", ")), ""),
		prefixed("replace ", Printable(strings.Join(f.Fill, ", ")), " by your own"))+":")
	d.copied("$", f.Command)
}

func (d *document) changes() {
	section(d, "changes", d.state.Changes, func(c *api.Change) []string {
		return []string{clock(d.state.Time, c.Time), Printable(c.Service), shortID(c.RunID), Printable(c.Text)}
	}, nil, asMany)
}

func (d *document) models() {
	section(d, "models", d.state.Models, func(m *api.Model) []string {
		return []string{
			Printable(m.Service), joined(" · ", Printable(m.Model), Printable(m.Role)), d.simulated(m.Simulated, false), Words(m.Side),
			number(m.RequestRate), number(m.InputTokenRate), number(m.OutputTokenRate), share(m.CachedTokens, m.InputTokens),
			quantiles(m.FirstToken, Seconds), quantiles(m.Duration, Seconds), quantiles(m.Decode, number),
			Percent(m.ErrorRatio), byType(m.Errors), Count(m.LengthStops), number(m.Cost),
		}
	}, d.modelDetails, asMany)
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
	section(d, "pools", d.state.Pools, func(p *api.Pool) []string {
		return []string{
			Printable(p.Service), Printable(p.Pool), shortID(p.Instance),
			Count(p.Size), Count(p.Busy), Count(p.Idle), Count(p.Queue), Count(p.Crashes), Count(p.Breakers), Count(p.Alerts),
		}
	}, nil, asMany)
}

func (d *document) calls() {
	rows := slices.SortedStableFunc(slices.Values(d.state.Calls), func(a, b api.Call) int {
		return cmp.Or(api.TrueFirst(a.Error != "", b.Error != ""), api.TrueFirst(a.Error != "" || a.Slow, b.Error != "" || b.Slow))
	})
	section(d, "calls", rows, func(c *api.Call) []string {
		result := "ok"
		switch {
		case c.Error != "":
			result = joined(": ", classOf(c.Error), Printable(c.Message))
		case c.Slow:
			result = "ok, slow"
		}
		return []string{
			c.Time.UTC().Format(time.TimeOnly), Printable(c.Service), joined(".", Printable(c.Library), Printable(c.Function)),
			d.simulated(c.Simulated, false), Seconds(&c.Duration), Seconds(c.Queue), Seconds(c.Serialize), result,
		}
	}, nil, asMany)
}

// silent returns the number of collectors that are silent.
func (d *document) silent() int {
	return len(mlattr.Where(slices.Values(d.state.Collectors), func(c api.SendingCollector) bool { return c.SilentSince != nil }))
}

// collectors lists the collectors of a fleet if one of them is silent.
func (d *document) collectors() {
	if d.silent() == 0 {
		return
	}
	section(d, "collectors", d.state.Collectors, func(c *api.SendingCollector) []string {
		state := cmp.Or(prefixed("SILENT since ", clock(d.state.Time, api.Value(c.SilentSince)), ""), "sending")
		return []string{Printable(c.ID), state, ago(d.state.Time, &c.LastSeen), Printable(c.Address), Printable(c.Version)}
	}, nil, asMany)
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

// gpuGroup are the GPUs of a host that do the same for the same holders. It is
// not empty.
type gpuGroup = []*api.GPU

// alike returns a text that GPUs of a group have in common.
func alike(g *api.GPU) string {
	holders := mlattr.Mapped(g.Holders, func(h api.Holder) []string {
		return []string{h.Run, h.RunID, h.Service, h.Owner, cmp.Or(h.Service, h.Name)}
	})
	return fmt.Sprintf("%q %q %q %t %t %t %q", []string{g.Host, g.Name, g.Activity, g.LastActivity, g.Health}, g.Throttle,
		api.Value(g.XID).Code, g.XID != nil, g.Simulated, g.Recorded, holders)
}

func (d *document) gpus() {
	section(d, "gpus", api.Grouped(d.state.GPUs, alike), func(g *gpuGroup) []string {
		first := (*g)[0]
		return []string{
			indexes(g), Printable(first.Name), d.simulated(first.Simulated, first.Recorded), d.activity(first),
			each(g, func(g *api.GPU) *float64 { return g.Utilization }, Percent),
			each(g, func(g *api.GPU) *float64 { return g.Power }, limited(first.PowerLimit, "W", Count)),
			each(g, func(g *api.GPU) *float64 { return g.MemoryUsed }, limited(first.MemoryLimit, "GiB", gib)),
			each(g, func(g *api.GPU) *float64 { return g.Temperature }, limited(nil, "°C", Count)),
			age(d.state.Time, first.IdleSince), holders(g),
		}
	}, d.gpuDetails, func(groups []gpuGroup) int { return len(slices.Concat(groups...)) })
	d.paragraph(0, prefixed("hosts of which no GPU is known: ", Printable(strings.Join(d.state.Collector.HostsWithoutGPU, ", ")), ""))
}

// activity says what a GPU does, or did when it was last read.
func (d *document) activity(g *api.GPU) string {
	if g.NoDataSince == nil {
		return Words(g.Activity)
	}
	return "no data since " + clock(d.state.Time, *g.NoDataSince) + prefixed(", was ", Words(g.LastActivity), "")
}

// gpuDetails writes what is out of the ordinary.
func (d *document) gpuDetails(g *gpuGroup) {
	first, notes := (*g)[0], []string(nil)
	if first.Health != "" && first.Health != "ok" {
		notes = append(notes, "health: "+Words(first.Health))
	}
	if first.XID != nil {
		last := slices.MaxFunc(*g, func(a, b *api.GPU) int { return a.XID.Time.Compare(b.XID.Time) })
		notes = append(notes, joined(" ", "last error of the driver: XID", Printable(last.XID.Code), ago(d.state.Time, &last.XID.Time)))
	}
	if len(first.Throttle) > 0 {
		notes = append(notes, "throttled by "+Words(strings.Join(first.Throttle, ", ")))
	}
	if held := each(g, func(g *api.GPU) *float64 { return g.MemoryUnattributed }, GiB); held != "" && held != "0.0 GiB" {
		notes = append(notes, held+" held by no known process")
	}
	d.detail("", strings.Join(notes, "; "))
}

// each writes the least and the most of a number of the GPUs.
func each(g *gpuGroup, number func(*api.GPU) *float64, write func(*float64) string) string {
	var values []float64
	for _, one := range *g {
		if value := number(one); value != nil && one.NoDataSince == nil {
			values = append(values, *value)
		}
	}
	if len(values) == 0 {
		return ""
	}
	return between(write(new(slices.Min(values))), write(new(slices.Max(values))))
}

// indexes names the GPUs of a group.
func indexes(g *gpuGroup) string {
	names := mlattr.Mapped(*g, func(one *api.GPU) string { return cmp.Or(one.Index, shortID(one.ID)) })
	return joined(":", Printable((*g)[0].Host), Printable(ranges(names)))
}

// ranges writes numbers that follow each other as the first and the last.
func ranges(names []string) string { return joined(",", api.Ranges(names, 2)...) }

// holders names the workloads that hold memory of the GPUs, with their ranks in
// the order of the GPUs.
func holders(g *gpuGroup) string {
	var texts []string
	for i, h := range (*g)[0].Holders {
		var ranks []string
		for _, one := range *g {
			if rank := one.Holders[i].Rank; rank != "" && !slices.Contains(ranks, rank) {
				ranks = append(ranks, rank)
			}
		}
		rank := "rank "
		if len(ranks) > 1 {
			rank = "ranks "
		}
		held := ""
		if len((*g)[0].Holders) > 1 {
			held = GiB(h.Memory)
		}
		texts = append(texts, joined(" ", Printable(cmp.Or(h.Service, h.Name)), prefixed(rank, Printable(ranges(ranks)), ""), prefixed("(", Printable(h.Owner), ")"), held))
	}
	return strings.Join(texts, ", ")
}
