// Package curves keeps the numbers of a run over time.
package curves

import (
	"encoding/binary"
	"math"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
)

// ID is one of the numbers of a run that are kept over time.
type ID uint8

// definition describes one of them.
type definition struct {
	// Constant is the name of its ID, Name that of its curve, which has the Unit.
	Constant, Name, Unit string
	// Axis reports whether others are compared by it, Steps whether it ends with the last step:
	// other numbers are those of what a run holds.
	Axis, Steps bool
}

// Values are the numbers of a run at one time, NaN if unknown.
type Values [Count]float32

// unknown is a number that nobody has reported.
var unknown = float32(math.NaN())

// fineFor is how long each point of a curve is kept. Older ones are means of a
// minute.
const fineFor = 10 * time.Minute

// Set are the numbers of a run over time. They grow as they fill.
type Set struct {
	Fine, Coarse points
	// low and high are the extremes of Coarse, which has their times.
	low, high points
	// minute has the points of the current minute.
	minute minute
}

// minute has the sums of the numbers since a time.
type minute struct {
	from      uint32
	sum       [Count]float64
	low, high Values
	n         [Count]int
}

func (m *minute) add(v *Values) {
	for id, value := range v {
		if value == value {
			if m.n[id] == 0 {
				m.low[id], m.high[id] = value, value
			}
			m.sum[id] += float64(value)
			m.low[id], m.high[id] = min(m.low[id], value), max(m.high[id], value)
			m.n[id]++
		}
	}
}

// end adds the means and the extremes to points, unless none is known, and begins another
// minute.
func (m *minute) end(to, low, high *points, limit int, from uint32) {
	var mean Values
	known := false
	for id := range mean {
		if m.n[id] > 0 {
			mean[id], known = float32(m.sum[id]/float64(m.n[id])), true
		} else {
			mean[id], m.low[id], m.high[id] = unknown, unknown, unknown
		}
	}
	if known {
		to.add(m.from, &mean, limit)
		low.add(m.from, &m.low, limit)
		high.add(m.from, &m.high, limit)
	}
	*m = minute{from: from}
}

// points are numbers at times, which are Unix seconds.
type points struct {
	Times []uint32
	// values are nil for a number that has never been known.
	values [Count][]float32
}

// add adds the numbers at a time, and removes the oldest beyond limit.
func (p *points) add(at uint32, v *Values, limit int) {
	p.Times = trim(append(p.Times, at), limit)
	for i, value := range v {
		if p.values[i] == nil && value == value {
			p.values[i] = slices.Repeat([]float32{unknown}, len(p.Times)-1)
		}
		if p.values[i] != nil {
			p.values[i] = trim(append(p.values[i], value), limit)
		}
	}
}

// trim removes the oldest elements beyond limit, a quarter of limit at once.
func trim[T any](all []T, limit int) []T {
	if len(all) <= limit+limit/4 {
		return all
	}
	return all[:copy(all, all[len(all)-limit:])]
}

// Add adds the numbers at a time.
func (c *Set) Add(now time.Time, v *Values, interval, history time.Duration) {
	at := uint32(now.Unix())
	if n := len(c.Fine.Times); n > 0 && at <= c.Fine.Times[n-1] {
		return // the clock went back
	}
	c.Fine.add(at, v, finePoints(interval))
	if at-c.minute.from >= 60 {
		c.minute.end(&c.Coarse, &c.low, &c.high, coarsePoints(history), at-at%60)
	}
	c.minute.add(v)
}

// finePoints and coarsePoints are the largest numbers of points.
func finePoints(interval time.Duration) int  { return max(60, int(fineFor/interval)) }
func coarsePoints(history time.Duration) int { return max(1, int(history/time.Minute)) }

// Restore sets the curves of a new run to what was kept over a restart, without the
// extremes of minutes.
func (c *Set) Restore(fine, coarse *SavedPoints, now time.Time, interval, history time.Duration) {
	c.Fine, c.Coarse = fine.restored(now, finePoints(interval)), coarse.restored(now, coarsePoints(history))
	c.low, c.high = c.Coarse.before(math.MaxInt64), c.Coarse.before(math.MaxInt64)
	n := len(c.Fine.Times)
	if n == 0 {
		return
	}
	// The minute that the restart has interrupted.
	c.minute.from = c.Fine.Times[n-1] - c.Fine.Times[n-1]%60
	for i, at := range c.Fine.Times {
		if at >= c.minute.from {
			v := c.Fine.at(i, math.MaxInt64)
			c.minute.add(&v)
		}
	}
}

// all returns the means of minutes, and after them means of a number of seconds, or, of a
// run that began within fineFor, each point. low and high are the extremes of means. The
// numbers of steps end at until.
func (c *Set) all(until int64, seconds uint32) (all, low, high points) {
	if !c.isLong() {
		return c.Fine.before(until), low, high
	}
	whole := c.Coarse.Times[len(c.Coarse.Times)-1] + 60
	if len(c.Fine.Times) > 0 {
		whole = c.Fine.Times[0] + 59 - (c.Fine.Times[0]+59)%60
	}
	for i, at := range c.Coarse.Times {
		if at < whole {
			for _, of := range [...]struct{ from, to *points }{{&c.Coarse, &all}, {&c.low, &low}, {&c.high, &high}} {
				v := of.from.at(i, until)
				of.to.add(at, &v, math.MaxInt/2)
			}
		}
	}
	sums := minute{from: whole}
	for i, at := range c.Fine.Times {
		if at < whole {
			continue
		}
		if at-sums.from >= seconds {
			sums.end(&all, &low, &high, math.MaxInt/2, at-at%seconds)
		}
		v := c.Fine.at(i, until)
		sums.add(&v)
	}
	sums.end(&all, &low, &high, math.MaxInt/2, 0)
	return all, low, high
}

// isLong reports whether there are means of minutes of which there are no points any
// more.
func (c *Set) isLong() bool {
	return len(c.Coarse.Times) > 0 && (len(c.Fine.Times) == 0 || c.Coarse.Times[0]+60 <= c.Fine.Times[0])
}

// at returns the numbers at an index, those of steps only up to a time.
func (p *points) at(i int, until int64) (v Values) {
	for id := range v {
		v[id] = unknown
		if p.values[id] != nil && (!definitions[id].Steps || int64(p.Times[i]) <= until) {
			v[id] = p.values[id][i]
		}
	}
	return v
}

// before returns the points, of the numbers of steps those up to a time.
func (p *points) before(until int64) (all points) {
	for i, at := range p.Times {
		v := p.at(i, until)
		all.add(at, &v, math.MaxInt/2)
	}
	return all
}

// known returns the values of a number that are known, from a time on.
func (p *points) known(id ID, from uint32) (times, values []float64) {
	times, values = []float64{}, []float64{}
	for i, value := range p.values[id] {
		if at := p.Times[i]; value == value && at >= from {
			times, values = append(times, float64(at)), append(values, api.Exact(value))
		}
	}
	return times, values
}

// Rows returns the curves that have values. The numbers of steps end at until, in Unix
// seconds.
func (c *Set) Rows(now time.Time, until int64) (rows []api.Curve) {
	all, low, high := c.all(until, 60)
	fine := c.Fine.before(until)
	for id, of := range definitions {
		if of.Axis {
			continue
		}
		row := api.Curve{Name: of.Name, Unit: of.Unit}
		if row.Times, row.Values = all.known(ID(id), 0); len(row.Times) == 0 {
			continue
		}
		if c.isLong() {
			_, row.Low = low.known(ID(id), 0)
			_, row.High = high.known(ID(id), 0)
			if times, values := fine.known(ID(id), uint32(max(0, now.Add(-fineFor).Unix()))); len(times) > 0 {
				row.Fine = &api.FinePoints{Times: times, Values: values}
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// SavedPoints are points of curves: times, and values by the name of their curve, as
// little-endian numbers of 32 bits.
type SavedPoints struct {
	Times  []byte            `json:"times"`
	Values map[string][]byte `json:"values"`
}

// Size is the number of bytes of the points.
func (p *points) Size() int {
	n := 4 * len(p.Times)
	for _, values := range p.values {
		n += 4 * len(values)
	}
	return n
}

// Saved returns the points for Restore, nil without any.
func (p *points) Saved() *SavedPoints {
	if len(p.Times) == 0 {
		return nil
	}
	out := &SavedPoints{Times: encoded(p.Times), Values: make(map[string][]byte)}
	for id, values := range p.values {
		if len(values) > 0 {
			out.Values[definitions[id].Name] = encoded(values)
		}
	}
	return out
}

func encoded(numbers any) []byte {
	data, _ := binary.Append(nil, binary.LittleEndian, numbers) // They have a fixed size.
	return data
}

// restored returns the newest points until now that saved has written, none if they are not whole or not in their order.
func (e *SavedPoints) restored(now time.Time, limit int) (p points) {
	if e == nil || len(e.Times)%4 != 0 {
		return points{}
	}
	var times []uint32
	for at := range slices.Chunk(e.Times, 4) {
		times = append(times, binary.LittleEndian.Uint32(at))
		if n := len(times); n > 1 && times[n-1] <= times[n-2] {
			return points{}
		}
	}
	// As many as add keeps.
	for i := max(0, len(times)-limit-limit/4); i < len(times) && int64(times[i]) <= now.Unix(); i++ {
		var v Values
		for id, curve := range definitions {
			v[id] = unknown
			if data := e.Values[curve.Name]; len(data) == len(e.Times) {
				if value := math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:])); !math.IsInf(float64(value), 0) {
					v[id] = value
				}
			}
		}
		p.add(times[i], &v, limit)
	}
	return p
}

// fewMinutes are too few means of minutes to see where two curves part: twice the positions
// that a judgement needs, because two runs may have half of them in common.
const fewMinutes = 40

// Profile returns the curves that have values, each in one resolution but for runs of few
// minutes, whose last points are single ones. Times are counted from start. The numbers of
// steps end at until, in Unix seconds.
func (c *Set) Profile(start time.Time, until int64) (rows []api.ProfileCurve) {
	all, _, _ := c.all(until, 60)
	if len(all.Times) < fewMinutes {
		all, _, _ = c.all(until, 1)
	}
	from := float64(start.Unix())
	steps, epochs := all.axis(Steps), all.axis(Epoch)
	for id, of := range definitions {
		if of.Axis || all.values[id] == nil {
			continue
		}
		row := api.ProfileCurve{Name: of.Name, Unit: of.Unit}
		for i, value := range all.values[id] {
			if value != value {
				continue
			}
			row.Elapsed, row.Values = append(row.Elapsed, max(0, float64(all.Times[i])-from)), append(row.Values, float64(value))
			if steps != nil {
				row.Steps = append(row.Steps, steps[i])
			}
			if epochs != nil {
				row.Epochs = append(row.Epochs, epochs[i])
			}
		}
		if len(row.Values) > 0 {
			rows = append(rows, row)
		}
	}
	return rows
}

// axis returns the values of steps or epochs without gaps, nil if none is known.
// Between two values the earlier one counts, before the first one 0.
func (p *points) axis(id ID) []float64 {
	if p.values[id] == nil {
		return nil
	}
	axis, last := make([]float64, len(p.Times)), 0.0
	for i, value := range p.values[id] {
		if value == value {
			last = api.Exact(value)
		}
		axis[i] = last
	}
	return axis
}
