package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/text"
)

// method says how the first step is found at which two runs part.
const method = "Both curves are smoothed by a running median of 9 values. They part where they are further apart than 3 standard errors and 1 % " +
	"for 5 positions in a row. The noise is estimated by the median of absolute deviations."

// compared shows the run beside another one.
func (r *Report) compared() section {
	c := r.Comparison
	s := section{ID: "compared", Title: "Compared with the last good run"}
	if c == nil {
		return section{}
	}
	if c.With == nil {
		s.Notes = [][]cell{{own(c.Why)}}
		return s
	}
	if c.Basis == api.BasisChosen {
		s.Title = "Compared with another run"
	}
	with := &c.With.Run
	s.Notes = [][]cell{
		{own("The other run is"), said(with.ID), own("of"), said(cmp.Or(with.Service, "an unknown service")), own("from " + clock(with.FirstSeen) + " to " + clock(with.LastSeen) + ".")},
		{own(parted(c.Parting))},
	}
	if p := c.Parting; p != nil && p.Positions > 0 {
		s.Notes = append(s.Notes, []cell{own(method)})
	}
	s.Tables = append(s.Tables, numberTable("Numbers of the whole runs", "number", c.Run.Numbers, c.With.Numbers, func(name string) cell { return own(title(numberTitles, name)) }),
		numberTable("Phases of a step, means of the whole runs", "phase", c.Run.Phases, c.With.Phases, said))
	s.Tables = append(s.Tables, settingTable(c))
	// The section of changes has those of the run itself.
	if slices.ContainsFunc(c.Changes, func(one api.Change) bool {
		return !slices.ContainsFunc(r.Changes, func(known api.Change) bool { return known.Key == one.Key })
	}) {
		s.Tables = append(s.Tables, r.changeTable("Changes between the starts of the two runs and since, the newest first", c.Changes[:min(len(c.Changes), maxChanges)]))
	}
	s.Tables = slices.DeleteFunc(s.Tables, func(t table) bool { return len(t.Rows) == 0 })
	for by := range axes {
		if f, ok := pair("loss", by, c); ok {
			s.Figures = append(s.Figures, f)
		}
	}
	for _, name := range []string{"validation_loss", "step_time", "token_rate", "sample_rate", "learning_rate", "goodput"} {
		for by := range axes {
			if f, ok := pair(name, by, c); ok {
				s.Figures = append(s.Figures, f)
				break
			}
		}
	}
	return s
}

// parted says where the runs part.
func parted(p *api.Parting) string {
	if p == nil {
		return "The losses cannot be compared: a run has none."
	}
	unit := "{step}"
	if p.By == "elapsed" {
		unit = "s"
	}
	switch {
	case p.Positions == 0:
		return "The losses have fewer than 20 positions in common and are not compared."
	case !p.Parted || p.At == nil:
		return "The losses do not part between " + position(p.From, unit) + " and " + position(p.To, unit) + "."
	default:
		said := "The losses part at " + position(*p.At, unit)
		if p.Time != nil {
			said += ", at " + clock(*p.Time)
		}
		return said + ": " + number(numberOf(p.Run), "") + " here, " + number(numberOf(p.With), "") + " in the other run."
	}
}

// numberTable returns the numbers of both runs beside each other.
func numberTable(caption, head string, run, with []api.RunNumber, name func(string) cell) table {
	t := table{Caption: caption, Heads: []string{head, "this run", "the other run", "difference"}, Number: []bool{false, true, true, true}}
	other := make(map[string]*api.RunNumber, len(with))
	for i := range with {
		other[with[i].Name] = &with[i]
	}
	for i := range run {
		one := &run[i]
		row := []cell{name(one.Name), own(number(one.Value, one.Unit)), {}, {}}
		if beside := other[one.Name]; beside != nil {
			row[2], row[3] = own(number(beside.Value, beside.Unit)), own(text.Change(&one.Value, &beside.Value))
			delete(other, one.Name)
		}
		t.Rows = append(t.Rows, row)
	}
	for i := range with {
		if one := &with[i]; other[one.Name] != nil {
			t.Rows = append(t.Rows, []cell{name(one.Name), {}, own(number(one.Value, one.Unit)), {}})
		}
	}
	return t
}

// settingTable returns the settings that differ.
func settingTable(c *api.Comparison) table {
	t := table{Caption: "Settings that differ; " + counted(float64(c.Equal), "setting") + " are equal", Heads: []string{"attribute", "this run", "the other run"}}
	if c.Equal == 1 {
		t.Caption = strings.Replace(t.Caption, "are equal", "is equal", 1)
	}
	for _, one := range c.Settings {
		t.Rows = append(t.Rows, []cell{said(one.Name), said(one.Run), said(one.With)})
	}
	return t
}
