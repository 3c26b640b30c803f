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
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/words"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// layout returns the report as its forms show it.
func (r *Report) layout() *page {
	p := &page{
		Title: "Report of a run", Summary: r.Summary, Service: said(cmp.Or(r.Run.Service, "unknown service")), Run: said(r.Run.ID),
		State: text.Words(r.Run.State), Unreal: r.unreal(), Facts: r.facts(),
		Footer: "Made by otelcol-ml " + text.Printable(r.Collector) + " at " + clock(r.Time) + ". Times are in UTC. The README of the ML View Exporter defines the numbers.",
	}
	if r.Run.State == mlattr.RunStalled {
		p.State = text.Words(api.LooksHung)
	}
	for _, s := range []section{
		r.problems(), r.compared(), r.changes(), r.failures(), r.curves(), r.time(), r.ranks(), r.costs(), r.settings(), r.missing(),
	} {
		if len(s.Notes)+len(s.Items)+len(s.Tables)+len(s.Bars)+len(s.Figures) > 0 {
			p.Sections = append(p.Sections, s)
		}
	}
	return p
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
	run, rows := &r.Run, []fact{}
	add := func(name string, value cell) {
		if value.Text != "" {
			rows = append(rows, fact{name, value})
		}
	}
	add("Run", said(run.ID))
	add("Service", said(run.Service))
	add("Team", said(run.Team))
	add("Job", said(run.Job))
	add("Owner", said(run.Owner))
	add("Version", said(run.Version))
	state := run.State
	if state == mlattr.RunStalled {
		state = api.LooksHung
	}
	add("State", own(text.Words(state)))
	add("First seen", own(clock(run.FirstSeen)))
	add("Last seen", own(clock(run.LastSeen)))
	if run.LastStep != nil {
		add("Last step", own(clock(*run.LastStep)))
	}
	if run.LastCheckpoint != nil {
		add("Last checkpoint", own(clock(*run.LastCheckpoint)))
	}
	if run.Steps != nil {
		add("Steps", own(text.Count(run.Steps)))
	}
	if run.Loss != nil {
		add("Loss", own(number(*run.Loss, "")))
	}
	if run.Attempts != nil && *run.Attempts > 1 {
		add("Attempts", own(text.Count(run.Attempts)))
	}
	if run.Ranks > 0 {
		add("Ranks", own(counted(float64(run.Ranks), "rank")))
	}
	for _, g := range r.GPUs {
		add("GPUs", said(strconv.Itoa(g.Count)+" × "+cmp.Or(g.Name, "GPU")+" on "+cmp.Or(g.Host, "an unknown host")+", index "+ranges(g.Indexes)))
	}
	return rows
}

func (r *Report) problems() section {
	s := section{ID: "problems", Title: "Problems", Notes: r.left("problems")}
	if len(r.Problems) == 0 {
		s.Notes = [][]cell{{own("No problem of this run was seen.")}}
		return s
	}
	past := table{Caption: "Problems of the past", Heads: []string{"since", "what"}}
	for i := range r.Problems {
		p := &r.Problems[i]
		if p.Need == nil {
			past.Rows = append(past.Rows, []cell{own(r.at(p.Since)), said(cmp.Or(p.Text, kindWords(p.Kind)))})
			continue
		}
		s.Items = append(s.Items, r.problem(p.Need))
	}
	if len(past.Rows) > 0 {
		s.Tables = []table{past}
	}
	return s
}

// problem describes a problem that lasts.
func (r *Report) problem(n *api.Need) item {
	head := strings.ToUpper(kindWords(n.Kind))
	switch n.Kind {
	case api.Slow:
		head += " " + text.Change(n.Value, n.Usual)
	case api.Failing:
		head += " " + text.Percent(n.Value)
	}
	one := item{Tone: "bad", Head: []cell{own(strings.TrimSpace(head)), own("since " + clock(n.Since)), said(n.Subject)}}
	line := func(name string, value cell) {
		if value.Text != "" {
			one.Lines = append(one.Lines, fact{name, value})
		}
	}
	for i := range r.Problems {
		if cause := r.Problems[i].Need; n.Cause != "" && cause != nil && cause.Key == n.Cause {
			line("Follows from", own(kindWords(cause.Kind)+" since "+clock(cause.Since)))
		}
	}
	for _, evidence := range n.Evidence {
		line("Evidence", said(evidence))
	}
	for i := range n.Before {
		line("Preceded by", said(n.Before[i].Text+", at "+r.at(n.Before[i].Time)))
	}
	if len(n.Before) == 0 {
		line("Preceded by", own("no change that was seen"))
	}
	if n.GPUHours != nil {
		line("GPU-hours since", own(text.Number(n.GPUHours)))
	}
	line("Next", said(n.Next))
	if n.Command != "" {
		one.Commands = []string{text.Escape(n.Command)}
	}
	return one
}

// left says how many rows of a list the report leaves out.
func (r *Report) left(list string) [][]cell {
	if n := r.LeftOut[list]; n > 0 {
		return [][]cell{{own(strconv.Itoa(n) + " more are left out.")}}
	}
	return nil
}

func (r *Report) changes() section {
	s := section{ID: "changes", Title: "Changes", Notes: r.left("changes")}
	if len(r.Changes) > 0 {
		s.Tables = []table{r.changeTable("Changes of the run, its service and its hosts, the newest first", r.Changes)}
	}
	return s
}

func (r *Report) changeTable(caption string, changes []api.Change) table {
	t := table{Caption: caption, Heads: []string{"time", "what"}}
	for i := range changes {
		t.Rows = append(t.Rows, []cell{own(r.at(changes[i].Time)), said(changes[i].Text)})
	}
	return t
}

func (r *Report) failures() section {
	s := section{ID: "failures", Title: "Failures", Notes: r.left("failures")}
	for i := range r.Failures {
		f := &r.Failures[i]
		one := item{Head: []cell{said(f.Class), own(counted(float64(f.Count), "time"))}}
		line := func(name string, value cell) {
			if value.Text != "" {
				one.Lines = append(one.Lines, fact{name, value})
			}
		}
		line("Message", said(f.Message))
		line("Operation", said(f.Operation))
		line("Version", said(f.Version))
		if f.FirstSeen != nil && f.LastSeen != nil {
			line("Seen", own(r.at(*f.FirstSeen)+" to "+r.at(*f.LastSeen)))
		}
		line("Trace", said(f.TraceID))
		if f.Command == "" {
			line("Reproduction", own("there is none"))
		} else {
			line("Needs", said(strings.Join(f.Requires, ", ")))
			line("Fill in", said(strings.Join(f.Fill, ", ")))
			one.Commands = []string{text.Escape(f.Command)}
		}
		s.Items = append(s.Items, one)
	}
	return s
}

func (r *Report) curves() section {
	s := section{ID: "curves", Title: "Curves"}
	x := axis{}
	for i := range r.Curves {
		if c := &r.Curves[i]; len(c.Times) > 0 && len(c.Values) == len(c.Times) {
			of := rangeOf(c.Times)
			if x == (axis{}) {
				x = of
			}
			x = axis{min(x.from, of.from), max(x.to, of.to)}
		}
	}
	for i := range r.Curves {
		if c := &r.Curves[i]; len(c.Times) > 0 && len(c.Values) == len(c.Times) {
			s.Figures = append(s.Figures, r.curve(c, x, r.Marks))
		}
	}
	if len(s.Figures) == 0 {
		s.Notes = [][]cell{{own("There is no curve: no number of the run was seen over time.")}}
	}
	if len(r.Marks) > 0 {
		t := table{Caption: "Marks on the curves", Heads: []string{"mark", "time", "kind", "what"}, Number: []bool{true, false, false, false}}
		for i, m := range r.Marks {
			t.Rows = append(t.Rows, []cell{own(strconv.Itoa(i + 1)), own(r.at(m.Time)), own(kindWords(m.Kind)), said(m.Text)})
		}
		s.Tables = []table{t}
	}
	return s
}

// time says what the run's time went to.
func (r *Report) time() section {
	s := section{ID: "time", Title: "Time"}
	for _, of := range []struct {
		caption string
		seconds map[string]float64
	}{
		{"By state of the run, since the page first saw it", r.Spent.States},
		{"By use, of all ranks together", r.Spent.Uses},
	} {
		if b := barOf(of.caption, of.seconds); len(b.Parts) > 0 {
			s.Bars = append(s.Bars, b)
		}
	}
	if len(r.Phases) > 0 && (r.Comparison == nil || r.Comparison.With == nil) {
		t := table{Caption: "Phases of a step, mean of the whole run", Heads: []string{"phase", "time"}, Number: []bool{false, true}}
		for _, p := range r.Phases {
			t.Rows = append(t.Rows, []cell{said(p.Name), own(number(p.Value, "s"))})
		}
		s.Tables = append(s.Tables, t)
	}
	if len(r.Numbers) > 0 && (r.Comparison == nil || r.Comparison.With == nil) {
		t := table{Caption: "Numbers of the whole run", Heads: []string{"number", "value"}, Number: []bool{false, true}}
		for _, n := range r.Numbers {
			t.Rows = append(t.Rows, []cell{own(title(numberTitles, n.Name)), own(number(n.Value, n.Unit))})
		}
		s.Tables = append(s.Tables, t)
	}
	return s
}

// barOf returns the parts of a whole, the largest first.
func barOf(caption string, seconds map[string]float64) bar {
	b := bar{Caption: caption}
	whole := 0.0
	for _, v := range seconds {
		whole += max(0, v)
	}
	for _, name := range slices.Sorted(maps.Keys(seconds)) {
		v := seconds[name]
		if share := v / whole; v > 0 && whole > 0 {
			word := text.Words(name)
			if name == mlattr.RunStalled {
				word = text.Words(api.LooksHung)
			}
			b.Parts = append(b.Parts, part{Name: word, Shade: shades[name], Share: share, Value: text.Percent(&share) + ", " + text.Seconds(&v)})
		}
	}
	slices.SortStableFunc(b.Parts, func(a, b part) int { return cmp.Compare(b.Share, a.Share) })
	return b
}

// shades are the colors of states and uses: 0 for none of these.
var shades = map[string]int{
	mlattr.RunRunning: 1, "productive": 1, mlattr.RunStalled: 2, "rework": 2, "data_load": 3, "checkpoint": 4, "checkpoint_restore": 5,
	"validation": 6, "queue": 7, "startup": 8,
}

func (r *Report) ranks() section {
	s := section{ID: "ranks", Title: "Ranks", Notes: r.left("ranks")}
	if len(r.MissingRanks) > 0 {
		s.Notes = append(s.Notes, []cell{own("Ranks that sent nothing:"), said(ranges(r.MissingRanks))})
	}
	if len(r.Ranks) == 0 {
		return s
	}
	s.Tables = []table{r.rankTable()}
	return s
}

// alike is the number of ranks from which on those that did the same are one row.
const alike = 4

// rankTable returns the ranks, those that differ from the others first.
func (r *Report) rankTable() table {
	t := table{Caption: "What each rank did last", Heads: []string{"rank", "host", "GPU", "steps", "last step", "last finished span", "at", "use", "power"}, Number: []bool{true, false, true, true, false, false, false, true, true}}
	var same [][]*api.Rank
	for i := range r.Ranks {
		one := &r.Ranks[i]
		at := slices.IndexFunc(same, func(group []*api.Rank) bool {
			return group[0].LastSpan == one.LastSpan && numberOf(group[0].Steps) == numberOf(one.Steps)
		})
		if at < 0 {
			at = len(same)
			same = append(same, nil)
		}
		same[at] = append(same[at], one)
	}
	slices.SortStableFunc(same, func(a, b []*api.Rank) int { return cmp.Compare(len(a), len(b)) })
	for _, group := range same {
		if len(group) > alike {
			t.Rows = append(t.Rows, r.rankRow(group))
			continue
		}
		for _, one := range group {
			t.Rows = append(t.Rows, r.rankRow([]*api.Rank{one}))
		}
	}
	return t.withoutEmpty()
}

// rankRow returns the row of ranks that did the same.
func (r *Report) rankRow(group []*api.Rank) []cell {
	var names, hosts, indexes []string
	var use, power []float64
	var step, span time.Time
	for _, one := range group {
		names = append(names, one.Rank)
		for _, of := range []struct {
			list *[]string
			text string
		}{{&hosts, one.Host}, {&indexes, one.GPUIndex}} {
			if of.text != "" && !slices.Contains(*of.list, of.text) {
				*of.list = append(*of.list, of.text)
			}
		}
		if one.Utilization != nil {
			use = append(use, *one.Utilization)
		}
		if one.Power != nil {
			power = append(power, *one.Power)
		}
		step, span = latest(step, one.LastStep), latest(span, one.LastSpanTime)
	}
	return []cell{
		said(ranges(names)), said(strings.Join(hosts, ", ")), said(ranges(indexes)), own(text.Count(group[0].Steps)), own(r.at(step)),
		said(group[0].LastSpan), own(r.at(span)), own(between(use, "1")), own(between(power, "W")),
	}
}

func latest(a time.Time, b *time.Time) time.Time {
	if b != nil && b.After(a) {
		return *b
	}
	return a
}

// between writes the least and the largest of some numbers.
func between(values []float64, unit string) string {
	if len(values) == 0 {
		return ""
	}
	a := rangeOf(values)
	if least, most := number(a.from, unit), number(a.to, unit); least != most {
		return least + " to " + most
	}
	return number(a.to, unit)
}

// ranges writes names, whole numbers in a row as "0-16".
func ranges(names []string) string { return strings.Join(words.Ranges(names, 3), ", ") }

// withoutEmpty leaves out the columns that no row has.
func (t table) withoutEmpty() table {
	for column := range slices.Backward(t.Heads) {
		if slices.ContainsFunc(t.Rows, func(row []cell) bool { return row[column].Text != "" }) {
			continue
		}
		t.Heads = slices.Delete(slices.Clone(t.Heads), column, column+1)
		if column < len(t.Number) {
			t.Number = slices.Delete(slices.Clone(t.Number), column, column+1)
		}
		for i := range t.Rows {
			t.Rows[i] = slices.Delete(t.Rows[i], column, column+1)
		}
	}
	return t
}

func (r *Report) costs() section {
	s := section{ID: "cost", Title: "Cost"}
	if len(r.Costs) == 0 {
		s.Notes = [][]cell{{own("The cost is not known: no GPU of the run is known, and no cost of its requests is known.")}}
		return s
	}
	t := table{Caption: "Cost, as far as it is known", Heads: []string{"amount", "of", "covers"}, Number: []bool{true, false, false}}
	for _, c := range r.Costs {
		covers := own(c.Basis)
		if c.Name == costUsage {
			covers = said(c.Basis)
		}
		t.Rows = append(t.Rows, []cell{own(text.Number(&c.Value)), own(c.Unit), covers})
	}
	s.Tables = []table{t}
	return s
}

func (r *Report) settings() section {
	s := section{ID: "settings", Title: "Settings and versions"}
	if len(r.Settings) == 0 {
		return s
	}
	t := table{Caption: "Settings and versions", Heads: []string{"attribute", "value"}}
	for _, one := range r.Settings {
		t.Rows = append(t.Rows, []cell{said(one.Name), said(one.Value)})
	}
	s.Tables = []table{t}
	return s
}

func (r *Report) missing() section {
	s := section{ID: "missing", Title: "What is missing and why", Notes: r.left("missing")}
	if len(r.Missing) == 0 {
		return s
	}
	t := table{Caption: "What this report cannot say", Heads: []string{"what", "why", "what changes it"}}
	for i := range r.Missing {
		m := &r.Missing[i]
		t.Rows = append(t.Rows, []cell{said(m.What), said(m.Why), said(m.Fix)})
	}
	s.Tables = []table{t.withoutEmpty()}
	return s
}
