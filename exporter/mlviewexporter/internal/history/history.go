// Package history keeps the last minutes of the page as a whole: what each GPU did, and
// the tokens and costs of all that runs. It knows only States.
package history

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

const (
	// columns is the number of steps that are kept.
	columns = 60
	// maxRows is how many rows of GPUs a History has, maxGPUs how many GPUs are kept.
	maxRows = 128
	maxGPUs = 16_384
)

// Set is the past in steps of one length.
type Set struct {
	step   int64
	newest int64 // the number of the newest step
	gpus   map[gpu]*[columns]cell
	curves [len(curveNames)][columns]measure
	// cost is what requests had cost in all at a time.
	cost float64
	at   time.Time
}

// New returns an empty Set with steps of a length.
func New(step time.Duration) *Set {
	return &Set{step: int64(step / time.Second), gpus: make(map[gpu]*[columns]cell)}
}

type gpu struct{ host, index, id string }

// cell is what a GPU, or those of a host, did in a step: the worst that any did, and how
// much they were used.
type cell struct {
	use      float32
	n        uint16
	activity uint8
}

func (c *cell) add(use float32, n uint16, activity uint8) {
	c.use, c.n, c.activity = c.use+use, c.n+min(n, math.MaxUint16-c.n), max(c.activity, activity)
}

// activities are what a GPU does, the worst last.
var activities = []string{"", gpus.Free, gpus.Working, gpus.NoData, api.HeldIdle, api.Slow, api.LooksHung, gpus.Failed}

// troubled is the first of activities that is a problem.
const troubled = 4

// measure is a number in a step.
type measure struct {
	sum, low, high float64
	n              int
}

func (m *measure) add(v float64) {
	if m.n == 0 {
		m.low, m.high = v, v
	}
	m.sum, m.low, m.high, m.n = m.sum+v, min(m.low, v), max(m.high, v), m.n+1
}

var curveNames = [...]struct{ name, unit string }{{"token_rate", "{token}/s"}, {"model_token_rate", "{token}/s"}, {"cost_rate", "USD/h"}}

// Add adds what a State says to the step of its time. A State that is older than the
// newest step is left out.
func (s *Set) Add(state *api.State) {
	step := state.Time.Unix() / s.step
	if step < s.newest {
		return
	}
	for at := max(s.newest+1, step-columns+1); at <= step; at++ {
		for _, row := range s.gpus {
			row[at%columns] = cell{}
		}
		for i := range s.curves {
			s.curves[i][at%columns] = measure{}
		}
	}
	if step > s.newest {
		maps.DeleteFunc(s.gpus, func(_ gpu, row *[columns]cell) bool { return *row == [columns]cell{} })
	}
	s.newest = step
	for i := range state.GPUs {
		g := &state.GPUs[i]
		key := gpu{g.Host, g.Index, g.ID}
		row := s.gpus[key]
		if row == nil {
			if len(s.gpus) >= maxGPUs {
				continue
			}
			row = new([columns]cell)
			s.gpus[key] = row
		}
		use, n := float32(0), uint16(0)
		if g.Utilization != nil && g.NoDataSince == nil {
			use, n = float32(*g.Utilization), 1
		}
		row[step%columns].add(use, n, uint8(max(0, slices.Index(activities, g.Activity)))) // #nosec G115 -- few
	}
	s.measure(state, step%columns)
}

// measure adds the numbers of all runs and models. Costs are those of GPUs by their
// prices, and the increase of those of requests.
func (s *Set) measure(state *api.State, at int64) {
	var sums [len(curveNames)]*float64
	add := func(i int, v *float64) {
		if v != nil {
			sums[i] = api.Finite(*v + api.Value(sums[i]))
		}
	}
	for i := range state.Runs {
		if r := &state.Runs[i]; r.NoDataSince == nil && (r.State == mlattr.RunRunning || r.State == mlattr.RunUnknown) {
			add(0, r.TokenRate)
		}
		if r := &state.Runs[i]; r.NoDataSince == nil {
			add(2, r.GPUPrice)
		}
	}
	var cost *float64
	for i := range state.Models {
		m := &state.Models[i]
		if m.Side == "" || m.Side == mlattr.SideServer {
			add(1, m.InputTokenRate)
			add(1, m.OutputTokenRate)
		}
		if m.Cost != nil {
			cost = api.Finite(*m.Cost + api.Value(cost))
		}
	}
	if cost != nil {
		if took := state.Time.Sub(s.at).Hours(); !s.at.IsZero() && took > 0 && *cost >= s.cost {
			rate := (*cost - s.cost) / took
			add(2, &rate)
		}
		s.cost, s.at = *cost, state.Time
	}
	for i, sum := range sums {
		if sum != nil {
			s.curves[i][at].add(*sum)
		}
	}
}

// Rows returns what is kept, from the first step on of which anything is. Of more than 128
// GPUs the rows are hosts, and of more than 128 hosts those with the most trouble.
func (s *Set) Rows() *api.History {
	out := &api.History{Step: float64(s.step)}
	first := s.newest
	known := func(of func(at int64) bool) {
		for at := max(0, s.newest-columns+1); at < first; at++ {
			if of(at % columns) {
				first = at
			}
		}
	}
	for _, row := range s.gpus {
		known(func(at int64) bool { return row[at].activity > 0 })
	}
	for i := range s.curves {
		known(func(at int64) bool { return s.curves[i][at].n > 0 })
	}
	for at := first; at <= s.newest; at++ {
		out.Times = append(out.Times, float64(at*s.step))
	}
	for i, of := range curveNames {
		c := api.Curve{Name: of.name, Unit: of.unit}
		for at := first; at <= s.newest; at++ {
			if m := &s.curves[i][at%columns]; m.n > 0 {
				c.Times, c.Values = append(c.Times, float64(at*s.step)), append(c.Values, m.sum/float64(m.n))
				c.Low, c.High = append(c.Low, m.low), append(c.High, m.high)
			}
		}
		if len(c.Times) > 0 {
			out.Curves = append(out.Curves, c)
		}
	}
	out.GPUs, out.Hidden = s.rows(first)
	api.MakeLists(out)
	return out
}

func (s *Set) rows(first int64) (rows []api.GPUHistory, hidden int) {
	all, size := s.gpus, make(map[gpu]int)
	if len(all) > maxRows {
		all = make(map[gpu]*[columns]cell)
		for of, cells := range s.gpus {
			host := gpu{host: of.host}
			if all[host] == nil {
				all[host] = new([columns]cell)
			}
			size[host]++
			for i, c := range cells {
				all[host][i].add(c.use, c.n, c.activity)
			}
		}
	}
	order := slices.SortedFunc(maps.Keys(all), func(a, b gpu) int {
		return cmp.Or(cmp.Compare(a.host, b.host), gpus.CompareIndexes(a.index, b.index), cmp.Compare(a.id, b.id))
	})
	if hidden = max(0, len(order)-maxRows); hidden > 0 {
		trouble := func(of gpu) (n int) {
			for _, c := range all[of] {
				if c.activity >= troubled {
					n++
				}
			}
			return n
		}
		worst := slices.Clone(order)
		slices.SortStableFunc(worst, func(a, b gpu) int { return cmp.Compare(trouble(b), trouble(a)) })
		shown := make(map[gpu]bool)
		for _, of := range worst[:maxRows] {
			shown[of] = true
		}
		order = slices.DeleteFunc(order, func(of gpu) bool { return !shown[of] })
	}
	for _, of := range order {
		row := api.GPUHistory{Host: of.host, Index: of.index, GPUs: max(1, size[of])}
		for at := first; at <= s.newest; at++ {
			c := &all[of][at%columns]
			row.Activity = append(row.Activity, activities[c.activity])
			var use *float64
			if c.n > 0 {
				use = api.Finite(math.Round(100*float64(c.use)/float64(c.n)) / 100)
			}
			row.Use = append(row.Use, use)
		}
		rows = append(rows, row)
	}
	return rows, hidden
}
