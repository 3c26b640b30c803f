// Package history keeps the last minutes of the page as a whole: what each GPU did, and
// the tokens and costs of all that runs. It knows only States.
package history

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

const (
	// columns is the number of steps that are kept.
	columns = 60
	// maxKept is how many rows are kept, maxRows how many GPUs or hosts a History has.
	maxKept = 16_384
	maxRows = 128
)

// Set is the past in steps of one length.
type Set struct {
	step   int64
	newest int64 // the number of the newest step
	rows   map[row]*cells
}

// New returns an empty Set with steps of a length.
func New(step time.Duration) *Set {
	return &Set{step: int64(step / time.Second), rows: make(map[row]*cells)}
}

// row is a GPU, a host or a curve.
type row struct{ curve, host, index, id string }

type cells [columns]cell

// cell is a number in a step, and the worst that a GPU did in it.
type cell struct {
	sum, low, high float32
	n              uint32
	activity       uint8
}

func (c *cell) merge(of cell) {
	c.activity = max(c.activity, of.activity)
	switch {
	case c.n == 0:
		c.sum, c.low, c.high = of.sum, of.low, of.high
	case of.n > 0:
		c.sum, c.low, c.high = c.sum+of.sum, min(c.low, of.low), max(c.high, of.high)
	}
	c.n += of.n
}

// troubled is the first of gpus.Activities that is a problem.
const troubled = 4

// Add adds what a State says to the step of its time. A State that is older than the
// newest step is left out.
func (s *Set) Add(state *api.State) {
	step := state.Time.Unix() / s.step
	if step < s.newest {
		return
	}
	for at := max(s.newest+1, step-columns+1); at <= step; at++ {
		for key, kept := range s.rows {
			if kept[at%columns] = (cell{}); *kept == (cells{}) {
				delete(s.rows, key)
			}
		}
	}
	s.newest = step
	for _, g := range state.GPUs {
		s.add(row{host: g.Host, index: g.Index, id: g.ID}, g.Utilization, slices.Index(gpus.Activities, g.Activity))
	}
	for curve, v := range sums(state) {
		s.add(row{curve: curve}, &v, 1)
	}
}

func (s *Set) add(to row, v *float64, activity int) {
	kept := shared.Bounded(&s.rows, to, maxKept, func(key row) row { return key })
	if kept == nil {
		return
	}
	one := cell{activity: uint8(max(0, activity))} // #nosec G115 -- they are few
	if v != nil {
		one.sum, one.low, one.high, one.n = float32(*v), float32(*v), float32(*v), 1
	}
	kept[s.newest%columns].merge(one)
}

// units are those of the curves.
var units = map[string]string{"token_rate": "{token}/s", "model_token_rate": "{token}/s", "gpu_cost_rate": "USD/h", "request_cost": "USD"}

// sums returns the numbers of all runs and models.
func sums(state *api.State) map[string]float64 {
	sums := make(map[string]float64)
	add := func(curve string, v *float64) {
		if v != nil {
			sums[curve] += *v
		}
	}
	for _, r := range state.Runs {
		if r.NoDataSince == nil && r.State == mlattr.RunRunning {
			add("token_rate", r.TokenRate)
		}
		add("gpu_cost_rate", r.GPUPrice)
	}
	for _, m := range state.Models {
		if m.Side == "" || m.Side == mlattr.SideServer {
			add("model_token_rate", m.InputTokenRate)
			add("model_token_rate", m.OutputTokenRate)
		}
		add("request_cost", m.Cost)
	}
	return sums
}

// group is a row of a History: a GPU, those of a host, or a curve.
type group struct {
	row
	cells
	size, trouble int
}

// Rows returns what is kept. Of more than 128 GPUs the rows are hosts, those with the most
// trouble first.
func (s *Set) Rows() *api.History {
	out := &api.History{Step: float64(s.step)}
	all := make(map[row]*group)
	for of, kept := range s.rows {
		if len(s.rows) > maxRows+len(units) {
			of.index, of.id = "", ""
		}
		one := shared.Entry(all, of, func() *group { return &group{row: of} })
		one.size++
		for i := range kept {
			if one.cells[i].merge(kept[i]); kept[i].activity >= troubled {
				one.trouble++
			}
		}
	}
	first := max(0, s.newest-columns+1)
	for at := first; at <= s.newest; at++ {
		out.Times = append(out.Times, float64(at*s.step))
	}
	for _, of := range slices.SortedFunc(maps.Values(all), func(a, b *group) int {
		if a.host != b.host || a.trouble != b.trouble {
			return cmp.Or(cmp.Compare(b.trouble, a.trouble), cmp.Compare(a.host, b.host))
		}
		return cmp.Or(gpus.CompareIndexes(a.index, b.index), cmp.Compare(a.id, b.id), cmp.Compare(a.curve, b.curve))
	}) {
		curve := api.Curve{Name: of.curve, Unit: units[of.curve]}
		gpu := api.GPUHistory{Host: of.host, Index: of.index, GPUs: of.size}
		if of.curve == "" && len(out.GPUs) >= maxRows {
			out.Hidden++
			continue
		}
		for i, at := range out.Times {
			c := &of.cells[(first+int64(i))%columns]
			var mean *float64
			if c.n > 0 {
				mean = new(api.Exact(c.sum / float32(c.n)))
				curve.Times, curve.Values = append(curve.Times, at), append(curve.Values, *mean)
				curve.Low, curve.High = append(curve.Low, api.Exact(c.low)), append(curve.High, api.Exact(c.high))
			}
			gpu.Activity, gpu.Use = append(gpu.Activity, gpus.Activities[c.activity]), append(gpu.Use, mean)
		}
		if of.curve != "" {
			out.Curves = append(out.Curves, curve)
		} else {
			out.GPUs = append(out.GPUs, gpu)
		}
	}
	api.MakeLists(out)
	return out
}
