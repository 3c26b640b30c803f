package report

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/text"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
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
	both := []string{"#this run", "#the other run", "#difference"}
	s.Tables = slices.Concat(
		numberTable("Numbers of the whole runs", append([]string{"number"}, both...), c.Run.Numbers, c.With.Numbers, title),
		numberTable("Phases of a step, means of the whole runs", append([]string{"phase"}, both...), c.Run.Phases, c.With.Phases, said), settingTable(c))
	// The section of changes has those of the run itself.
	if slices.ContainsFunc(c.Changes, func(one api.Change) bool {
		return !slices.ContainsFunc(r.Changes, func(known api.Change) bool { return known.Key == one.Key })
	}) {
		caption := "Changes between the starts of the two runs and since, the newest first"
		s.Tables = append(s.Tables, r.changeTable(caption, c.Changes[:min(len(c.Changes), maxRows)])...)
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
		return said + ": " + number(p.Run, "") + " here, " + number(p.With, "") + " in the other run."
	}
}

// numberTable returns the numbers of a run, beside those of the other one if there are
// columns for them.
func numberTable(caption string, heads []string, run, with []api.RunNumber, name func(string) cell) []table {
	all := slices.Concat(run, mlattr.Where(slices.Values(with), func(n api.RunNumber) bool { return valueOf(run, n.Name) == nil }))
	return tableOf(caption, heads, all, func(_ int, n *api.RunNumber) []cell {
		here, there := valueOf(run, n.Name), valueOf(with, n.Name)
		return []cell{name(n.Name), own(number(here, n.Unit)), own(number(there, n.Unit)), own(text.Change(here, there))}
	})
}

// valueOf returns the number with a name, nil if there is none.
func valueOf(numbers []api.RunNumber, name string) *float64 {
	if n := mlattr.Find(numbers, func(n *api.RunNumber) bool { return n.Name == name }); n != nil {
		return &n.Value
	}
	return nil
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

// axis is the range of numbers that a figure shows.
type axis struct{ from, to float64 }

func rangeOf(lists ...[]float64) axis {
	a := axis{math.Inf(1), math.Inf(-1)}
	for _, v := range slices.Concat(lists...) {
		a.from, a.to = min(a.from, v), max(a.to, v)
	}
	return a
}

// share returns where a value is on the axis, between 0 and 1.
func (a axis) share(v float64) float64 {
	if a.to <= a.from {
		return 0.5
	}
	return min(1, max(0, (v-a.from)/(a.to-a.from)))
}

// leastGap is the least time in seconds without a value that interrupts a line.
const leastGap = 150

// path returns the path of a curve in a box of 1000 by 100. It is interrupted where
// the distance to the next value is larger than gap.
func path(at, values []float64, x, y axis, gap float64) string {
	var out strings.Builder
	for i, v := range values {
		if i == 0 || at[i]-at[i-1] > gap {
			out.WriteByte('M')
		} else {
			out.WriteByte('L')
		}
		out.WriteString(coordinate(1000*x.share(at[i])) + " " + coordinate(100-100*y.share(v)))
		if len(values) == 1 {
			out.WriteString("h1")
		}
	}
	return out.String()
}

func coordinate(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

// gapOf returns the distance that interrupts a curve: three times its usual one.
func gapOf(at []float64) float64 {
	var apart []float64
	for i := 1; i < len(at); i++ {
		apart = append(apart, at[i]-at[i-1])
	}
	return max(leastGap, 3*shared.Median(apart))
}

// curve returns the figure of a curve over time, with the marks that have a number.
func (r *Report) curve(c *api.Curve, x axis) figure {
	y := rangeOf(c.Values)
	f := figureOf(title(c.Name), y, c.Unit, line{Path: path(c.Times, c.Values, x, y, gapOf(c.Times))})
	f.Says = own("from " + f.Bottom + " to " + f.Top + ", last " + number(&c.Values[len(c.Values)-1], c.Unit))
	f.Left, f.Right = r.at(time.Unix(int64(x.from), 0)), r.at(time.Unix(int64(x.to), 0))
	for i, m := range r.Marks {
		if at := float64(m.Time.Unix()); at >= x.from && at <= x.to && x.to > x.from {
			f.Marks = append(f.Marks, figureMark{i + 1, cmp.Or(markTones[m.Kind], "warn"), x.share(at)})
		}
	}
	return f
}

// figureOf returns a figure with its axis of values.
func figureOf(title cell, y axis, unit string, lines ...line) figure {
	return figure{Title: title, Lines: lines, Top: number(&y.to, unit), Bottom: number(&y.from, unit)}
}

// markTones are the colors of marks that are no problems.
var markTones = map[string]string{"change": "change", "failure": "bad"}

// axes are what two runs are compared by.
var axes = []struct {
	name, title, unit string
	of                func(*api.ProfileCurve) []float64
}{
	{"steps", "by step", "{step}", func(c *api.ProfileCurve) []float64 { return c.Steps }},
	{"epochs", "by epoch", "epoch", func(c *api.ProfileCurve) []float64 { return c.Epochs }},
	{"elapsed", "by time since the start", "s", func(c *api.ProfileCurve) []float64 { return c.Elapsed }},
}

// pair returns the figure of a curve of two runs over one axis. ok is false if one of
// them has no such axis.
func pair(name string, by int, c *api.Comparison) (f figure, ok bool) {
	a, b := c.Run.Curve(name), c.With.Curve(name)
	if a == nil || b == nil {
		return f, false
	}
	atA, atB := axes[by].of(a), axes[by].of(b)
	x, y := rangeOf(atA, atB), rangeOf(a.Values, b.Values)
	if len(atA) == 0 || len(atB) == 0 || x.to <= x.from {
		return f, false
	}
	f = figureOf(own(title(name).Text+" "+axes[by].title), y, a.Unit,
		line{"this run", path(atA, a.Values, x, y, math.Inf(1))}, line{"the other run", path(atB, b.Values, x, y, math.Inf(1))})
	f.Says = own("this run last " + number(&a.Values[len(a.Values)-1], a.Unit) + ", the other one " + number(&b.Values[len(b.Values)-1], a.Unit))
	f.Left, f.Right = position(x.from, axes[by].unit), position(x.to, axes[by].unit)
	if p := c.Parting; p != nil && p.Parted && p.At != nil && p.Curve == name && p.By == axes[by].name {
		f.Marks = []figureMark{{Number: 1, Kind: "bad", At: x.share(*p.At)}}
	}
	return f, true
}

// position writes a position on an axis.
func position(v float64, unit string) string {
	switch unit {
	case "s":
		return number(&v, unit)
	case "epoch":
		return "epoch " + strconv.FormatFloat(v, 'f', -1, 64)
	default:
		return "step " + number(&v, unit)
	}
}
