package report

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
)

// axis is the range of numbers that a figure shows.
type axis struct{ from, to float64 }

func rangeOf(lists ...[]float64) axis {
	a := axis{math.Inf(1), math.Inf(-1)}
	for _, list := range lists {
		for _, v := range list {
			a.from, a.to = min(a.from, v), max(a.to, v)
		}
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
	if len(apart) == 0 {
		return leastGap
	}
	slices.Sort(apart)
	return max(leastGap, 3*apart[len(apart)/2])
}

// curve returns the figure of a curve over time, with the marks that have a number.
func (r *Report) curve(c *api.Curve, x axis, marks []api.Mark) figure {
	y := rangeOf(c.Values)
	f := figureOf(title(curveTitles, c.Name), y, c.Unit, line{Path: path(c.Times, c.Values, x, y, gapOf(c.Times))})
	f.Says = own("from " + f.Bottom + " to " + f.Top + ", last " + number(c.Values[len(c.Values)-1], c.Unit))
	f.Left, f.Right = r.at(time.Unix(int64(x.from), 0)), r.at(time.Unix(int64(x.to), 0))
	for i, m := range marks {
		if at := float64(m.Time.Unix()); at >= x.from && at <= x.to && x.to > x.from {
			f.Marks = append(f.Marks, figureMark{i + 1, cmp.Or(markTones[m.Kind], "warn"), x.share(at)})
		}
	}
	return f
}

// figureOf returns a figure with its axis of values.
func figureOf(title string, y axis, unit string, lines ...line) figure {
	return figure{Title: own(title), Lines: lines, Top: number(y.to, unit), Bottom: number(y.from, unit)}
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
	f = figureOf(title(curveTitles, name)+" "+axes[by].title, y, a.Unit,
		line{"this run", path(atA, a.Values, x, y, math.Inf(1))}, line{"the other run", path(atB, b.Values, x, y, math.Inf(1))})
	f.Says = own("this run last " + number(a.Values[len(a.Values)-1], a.Unit) + ", the other one " + number(b.Values[len(b.Values)-1], a.Unit))
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
		return number(v, unit)
	case "epoch":
		return "epoch " + strconv.FormatFloat(v, 'f', -1, 64)
	default:
		return "step " + number(v, unit)
	}
}
