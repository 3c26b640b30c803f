package report

import (
	"cmp"
	"slices"

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
	of := said(cmp.Or(with.Service, "an unknown service"))
	s.Notes = [][]cell{
		{own("The other run is"), said(with.ID), own("of"), of, own("from " + clock(with.FirstSeen) + " to " + clock(with.LastSeen) + ".")},
		{own(parted(c.Parting))},
	}
	if p := c.Parting; p != nil && p.Positions > 0 {
		s.Notes = append(s.Notes, []cell{own(method)})
	}
	ofNumber := func(name string) cell { return own(title(numberTitles, name)) }
	s.Tables = slices.Concat(
		numberTable("Numbers of the whole runs", "number", c.Run.Numbers, c.With.Numbers, ofNumber),
		numberTable("Phases of a step, means of the whole runs", "phase", c.Run.Phases, c.With.Phases, said), settingTable(c))
	// The section of changes has those of the run itself.
	if slices.ContainsFunc(c.Changes, func(one api.Change) bool {
		return !slices.ContainsFunc(r.Changes, func(known api.Change) bool { return known.Key == one.Key })
	}) {
		caption := "Changes between the starts of the two runs and since, the newest first"
		s.Tables = append(s.Tables, r.changeTable(caption, c.Changes[:min(len(c.Changes), maxChanges)])...)
	}
	for _, name := range []string{"loss", "validation_loss", "step_time", "token_rate", "sample_rate", "learning_rate", "goodput"} {
		for by := range axes {
			if f, ok := pair(name, by, c); ok {
				if s.Figures = append(s.Figures, f); name != "loss" {
					break
				}
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
	unit := cmp.Or(map[string]string{"elapsed": "s"}[p.By], "{step}")
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
		return said + ": " + number(api.Value(p.Run), "") + " here, " + number(api.Value(p.With), "") + " in the other run."
	}
}

// numberTable returns the numbers of both runs beside each other.
func numberTable(caption, head string, run, with []api.RunNumber, name func(string) cell) []table {
	var rows [][]cell
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
		rows = append(rows, row)
	}
	for i := range with {
		if one := &with[i]; other[one.Name] != nil {
			rows = append(rows, []cell{name(one.Name), {}, own(number(one.Value, one.Unit)), {}})
		}
	}
	return tableOf(caption, []string{head, "#this run", "#the other run", "#difference"}, rows, func(_ int, row *[]cell) []cell { return *row })
}

// settingTable returns the settings that differ.
func settingTable(c *api.Comparison) []table {
	are := " are equal"
	if c.Equal == 1 {
		are = " is equal"
	}
	caption := "Settings that differ; " + counted(float64(c.Equal), "setting") + are
	return tableOf(caption, []string{"attribute", "this run", "the other run"}, c.Settings, func(_ int, one *api.SettingPair) []cell {
		return []cell{said(one.Name), said(one.Run), said(one.With)}
	})
}
