package report

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/text"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// layout returns the report as its forms show it.
func (r *Report) layout() *document {
	ranks := section{ID: "ranks", Title: "Ranks", Tables: r.rankTable()}
	if len(r.MissingRanks) > 0 {
		ranks.Notes = [][]cell{{own("Ranks that sent nothing:"), said(ranges(r.MissingRanks))}}
	}
	cost := section{ID: "cost", Title: "Cost", Tables: tableOf("Cost, as far as it is known", []string{"#amount", "of", "covers"}, r.Costs, func(_ int, c *Cost) []cell {
		return []cell{own(text.Number(&c.Value)), own(c.Unit), {Text: text.Printable(c.Basis), Said: c.Name == costUsage}}
	})}
	if len(r.Costs) == 0 {
		cost.Notes = note("The cost is not known: no GPU of the run is known, and no cost of its requests is known.")
	}
	settings := tableOf("Settings and versions", []string{"attribute", "value"}, r.Settings, func(_ int, one *api.Setting) []cell {
		return []cell{said(one.Name), said(one.Value)}
	})
	missing := tableOf("What this report cannot say", []string{"what", "why", "what changes it"}, r.Missing, func(_ int, m *api.Missing) []cell {
		return []cell{said(m.What), said(m.Why), said(m.Fix)}
	})
	made := "Made by otelcol-ml " + text.Printable(r.Collector) + " at " + clock(r.Time)
	d := &document{
		Title: "Report of a run", Summary: own(r.Summary), Service: said(cmp.Or(r.Run.Service, "unknown service")), Run: said(r.Run.ID),
		State: text.State(r.Run.State), Unreal: r.unreal(), Facts: r.facts(),
		Footer: own(made + ". Times are in UTC. The README of the ML View Exporter defines the numbers."),
	}
	for _, s := range []section{
		r.problems(), r.compared(),
		{ID: "changes", Title: "Changes", Tables: r.changeTable("Changes of the run, its service and its hosts, the newest first", r.Changes)},
		r.failures(), r.curves(), r.time(), ranks, cost,
		{ID: "settings", Title: "Settings and versions", Tables: settings},
		{ID: "missing", Title: "Data gaps", Tables: missing},
	} {
		if n := r.LeftOut[s.ID]; n > 0 {
			s.Notes = append(note(strconv.Itoa(n)+" more are left out."), s.Notes...)
		}
		if len(s.Notes)+len(s.Items)+len(s.Tables)+len(s.Bars)+len(s.Figures) > 0 {
			d.Sections = append(d.Sections, s)
		}
	}
	return d
}

// unreal says which data of the run is not real, nil if all is.
func (r *Report) unreal() *fact {
	switch {
	case r.Run.Recorded:
		return &fact{"Recorded data", own("the GPUs of this run are played from a recording.")}
	case r.Run.Simulated:
		return &fact{"Simulated data", own("this run is not real.")}
	default:
		return nil
	}
}

// facts are what ran where and for whom.
func (r *Report) facts() []fact {
	run := &r.Run
	rows := []fact{
		{"Run", said(run.ID)}, {"Service", said(run.Service)}, {"Team", said(run.Team)}, {"Job", said(run.Job)},
		{"Owner", said(run.Owner)}, {"Version", said(run.Version)}, {"State", own(text.State(run.State))},
		{"First seen", own(clock(run.FirstSeen))}, {"Last seen", own(clock(run.LastSeen))},
		{"Last step", own(clock(api.Value(run.LastStep)))}, {"Last checkpoint", own(clock(api.Value(run.LastCheckpoint)))},
		{"Steps", own(text.Count(run.Steps))}, {"Loss", own(number(run.Loss, ""))},
	}
	if api.Value(run.Attempts) > 1 {
		rows = append(rows, fact{"Attempts", own(text.Count(run.Attempts))})
	}
	if run.Ranks > 0 {
		rows = append(rows, fact{"Ranks", own(counted(float64(run.Ranks), "rank"))})
	}
	for _, g := range r.GPUs {
		what := strconv.Itoa(g.Count) + " × " + cmp.Or(g.Name, "GPU") + " on " + cmp.Or(g.Host, "an unknown host")
		rows = append(rows, fact{"GPUs", said(what + ", index " + ranges(g.Indexes))})
	}
	return known(rows)
}

func (r *Report) problems() section {
	s := section{ID: "problems", Title: "Problems"}
	if len(r.Problems) == 0 {
		s.Notes = note("No problem of this run was seen.")
	}
	for _, p := range r.Problems {
		if p.Need != nil {
			s.Items = append(s.Items, r.problem(p.Need))
		}
	}
	past := mlattr.Where(slices.Values(r.Problems), func(p Problem) bool { return p.Need == nil })
	s.Tables = tableOf("Problems of the past", []string{"since", "what"}, past, func(_ int, p *Problem) []cell {
		return []cell{own(r.at(p.Since)), said(cmp.Or(p.Text, text.Kind(p.Kind)))}
	})
	return s
}

// problem describes a problem that lasts.
func (r *Report) problem(n *api.Need) item {
	var lines []fact
	isCause := func(p *Problem) bool { return p.Need != nil && n.Cause != "" && p.Need.Key == n.Cause }
	if cause := mlattr.Find(r.Problems, isCause); cause != nil {
		lines = append(lines, fact{"Follows from", own(text.Kind(cause.Kind) + " since " + clock(cause.Since))})
	}
	lines = append(lines, mlattr.Mapped(n.Evidence, func(evidence string) fact { return fact{"Evidence", said(evidence)} })...)
	for i := range n.Before {
		lines = append(lines, fact{"Preceded by", said(n.Before[i].Text + ", at " + r.at(n.Before[i].Time))})
	}
	if len(n.Before) == 0 {
		lines = append(lines, fact{"Preceded by", own("no change that was seen")})
	}
	lines = append(lines, fact{"GPU-hours since", own(text.Number(n.GPUHours))}, fact{"Next", said(n.Next)})
	return item{
		Tone: "bad", Head: []cell{own(text.Headline(n)), own("since " + clock(n.Since)), said(n.Subject)},
		Lines: known(lines), Command: text.Escape(n.Command),
	}
}

func (r *Report) changeTable(caption string, changes []api.Change) []table {
	return tableOf(caption, []string{"time", "what"}, changes, func(_ int, c *api.Change) []cell {
		return []cell{own(r.at(c.Time)), said(c.Text)}
	})
}

func (r *Report) failures() section {
	s := section{ID: "failures", Title: "Failures"}
	for _, f := range r.Failures {
		lines := []fact{{"Message", said(f.Message)}, {"Operation", said(f.Operation)}, {"Version", said(f.Version)}}
		if f.FirstSeen != nil && f.LastSeen != nil {
			lines = append(lines, fact{"Seen", own(r.at(*f.FirstSeen) + " to " + r.at(*f.LastSeen))})
		}
		lines = append(lines, fact{"Trace", said(f.TraceID)})
		if f.Command == "" {
			lines = append(lines, fact{"Reproduction", own("there is none")})
		} else {
			lines = append(lines, fact{"Needs", said(strings.Join(f.Requires, ", "))}, fact{"Fill in", said(strings.Join(f.Fill, ", "))})
		}
		s.Items = append(s.Items, item{
			Head: []cell{said(f.Class), own(counted(float64(f.Count), "time"))}, Lines: known(lines), Command: text.Escape(f.Command),
		})
	}
	return s
}

func (r *Report) curves() section {
	s := section{ID: "curves", Title: "Curves"}
	shown := mlattr.Where(slices.Values(r.Curves), func(c api.Curve) bool { return len(c.Times) > 0 && len(c.Values) == len(c.Times) })
	x := rangeOf(mlattr.Mapped(shown, func(c api.Curve) []float64 { return c.Times })...)
	s.Figures = mlattr.Mapped(shown, func(c api.Curve) figure { return r.curve(&c, x) })
	if len(shown) == 0 {
		s.Notes = note("There is no curve: no number of the run was seen over time.")
	}
	s.Tables = tableOf("Marks on the curves", []string{"#mark", "time", "kind", "what"}, r.Marks, func(i int, m *api.Mark) []cell {
		return []cell{own(strconv.Itoa(i + 1)), own(r.at(m.Time)), own(text.Kind(m.Kind)), said(m.Text)}
	})
	return s
}

// time says what the run's time went to.
func (r *Report) time() section {
	s := section{ID: "time", Title: "Time", Bars: append(
		barOf("By state of the run, since the page first saw it", r.Spent.States),
		barOf("By use, of all ranks together", r.Spent.Uses)...,
	)}
	if r.Comparison == nil || r.Comparison.With == nil {
		s.Tables = slices.Concat(
			numberTable("Phases of a step, mean of the whole run", []string{"phase", "#time"}, r.Phases, nil, said),
			numberTable("Numbers of the whole run", []string{"number", "#value"}, r.Numbers, nil, title))
	}
	return s
}

// barOf returns a bar with the parts of a whole, the largest first, none without any.
func barOf(caption string, seconds map[string]float64) []bar {
	b := bar{Caption: caption}
	whole, from := 0.0, 0.0
	names := slices.Sorted(maps.Keys(seconds))
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(seconds[b], seconds[a]) })
	for _, name := range names {
		whole += max(0, seconds[name])
	}
	for _, name := range names {
		v := seconds[name]
		if share := v / whole; v > 0 {
			value := own(text.Percent(&share) + ", " + text.Seconds(&v))
			b.Parts = append(b.Parts, part{Name: own(text.State(name)), Shade: shades[name], From: from, Share: share, Value: value})
			from += share
		}
	}
	if len(b.Parts) == 0 {
		return nil
	}
	return []bar{b}
}

// rankTable returns the ranks, of which those that did the same are one row, those that differ
// from the others first.
func (r *Report) rankTable() []table {
	type did struct {
		span  string
		steps float64
	}
	rows := api.Grouped(r.Ranks, func(one *api.Rank) did { return did{one.LastSpan, api.Value(one.Steps)} })
	slices.SortStableFunc(rows, func(a, b []*api.Rank) int { return cmp.Compare(len(a), len(b)) })
	heads := []string{"#rank", "host", "#GPU", "#steps", "last step", "last finished span", "at", "#use", "#power"}
	return tableOf("What each rank did last", heads, rows, func(_ int, group *[]*api.Rank) []cell { return r.rankRow(*group) })
}

// rankRow returns the row of ranks that did the same.
func (r *Report) rankRow(group []*api.Rank) []cell {
	var names, hosts, indexes []string
	var use, power []float64
	var step, span *time.Time
	note := func(list *[]string, text string) {
		if text != "" && !slices.Contains(*list, text) {
			*list = append(*list, text)
		}
	}
	measure := func(list *[]float64, value *float64) {
		if value != nil {
			*list = append(*list, *value)
		}
	}
	for _, one := range group {
		names = append(names, one.Rank)
		note(&hosts, one.Host)
		note(&indexes, one.GPUIndex)
		measure(&use, one.Utilization)
		measure(&power, one.Power)
		step, span = api.Later(step, one.LastStep), api.Later(span, one.LastSpanTime)
	}
	return []cell{
		said(ranges(names)), said(strings.Join(hosts, ", ")), said(ranges(indexes)), own(text.Count(group[0].Steps)), own(r.at(api.Value(step))),
		said(group[0].LastSpan), own(r.at(api.Value(span))), own(between(use, "1")), own(between(power, "W")),
	}
}

// between writes the least and the largest of some numbers.
func between(values []float64, unit string) string {
	if len(values) == 0 {
		return ""
	}
	least, most := number(new(slices.Min(values)), unit), number(new(slices.Max(values)), unit)
	if least == most {
		return most
	}
	return least + " to " + most
}

// ranges writes names, whole numbers in a row as "0-16".
func ranges(names []string) string { return strings.Join(api.Ranges(names, 3), ", ") }
