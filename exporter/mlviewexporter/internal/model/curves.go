package model

import (
	"encoding/binary"
	"math"
	"strconv"
	"time"
)

// curveID is one of the numbers of a run that are kept over time.
type curveID uint8

const (
	curveLoss curveID = iota
	curveStepTime
	curveTokenRate
	curveGoodput
	curveUtilization
	curveMemory
	curvePower
	curveValidation
	curveLearningRate
	curveSampleRate
	// curveSteps and curveEpoch say at which step and epoch the others are. They are
	// exact up to 16 million steps.
	curveSteps
	curveEpoch
	curveCount
)

// isAxis reports whether the numbers are those that others are compared by.
func (id curveID) isAxis() bool { return id == curveSteps || id == curveEpoch }

// curveNames are the names and units of curves, in the order that they are shown.
var curveNames = [curveCount]struct{ name, unit string }{
	curveLoss:        {"loss", ""},
	curveStepTime:    {"step_time", "s"},
	curveTokenRate:   {"token_rate", "{token}/s"},
	curveGoodput:     {"goodput", "1"},
	curveUtilization: {"gpu_utilization", "1"},
	curveMemory:      {"gpu_memory", "By"},
	curvePower:       {"power", "W"},

	curveValidation:   {"validation_loss", ""},
	curveLearningRate: {"learning_rate", ""},
	curveSampleRate:   {"sample_rate", "{sample}/s"},
	curveSteps:        {"steps", "{step}"},
	curveEpoch:        {"epoch", "{epoch}"},
}

// values are the numbers of a run at one time, NaN if unknown.
type values [curveCount]float32

// fineFor is how long each point of a curve is kept. Older ones are means of a
// minute.
const fineFor = 10 * time.Minute

// curves are the numbers of a run over time. They grow as they fill.
type curves struct {
	fine, coarse points
	// minute has the points of the current minute.
	minute minute
}

// minute has the sums of the numbers since a time.
type minute struct {
	from uint32
	sum  [curveCount]float64
	n    [curveCount]int
}

func (m *minute) add(v *values) {
	for id, value := range v {
		if value == value {
			m.sum[id] += float64(value)
			m.n[id]++
		}
	}
}

// end adds the means to points, unless none is known, and begins another minute.
func (m *minute) end(to *points, limit int, from uint32) {
	var mean values
	known := false
	for id := range mean {
		mean[id] = float32(math.NaN())
		if m.n[id] > 0 {
			mean[id], known = float32(m.sum[id]/float64(m.n[id])), true
		}
	}
	if known {
		to.add(m.from, &mean, limit)
	}
	*m = minute{from: from}
}

// points are numbers at times, which are Unix seconds.
type points struct {
	times []uint32
	// values are nil for a number that has never been known.
	values [curveCount][]float32
}

// add adds the numbers at a time, and removes the oldest beyond limit.
func (p *points) add(at uint32, v *values, limit int) {
	p.times = trim(append(p.times, at), limit)
	for i, value := range v {
		if p.values[i] == nil {
			if value != value {
				continue
			}
			p.values[i] = make([]float32, len(p.times)-1, len(p.times))
			for j := range p.values[i] {
				p.values[i][j] = float32(math.NaN())
			}
			p.values[i] = append(p.values[i], value)
			continue
		}
		p.values[i] = trim(append(p.values[i], value), limit)
	}
}

// trim removes the oldest elements beyond limit, a quarter of limit at once.
func trim[T any](all []T, limit int) []T {
	if len(all) <= limit+limit/4 {
		return all
	}
	return all[:copy(all, all[len(all)-limit:])]
}

// add adds the numbers at a time.
func (c *curves) add(now time.Time, v *values, interval, history time.Duration) {
	at := uint32(now.Unix())
	if n := len(c.fine.times); n > 0 && at <= c.fine.times[n-1] {
		return // the clock went back
	}
	c.fine.add(at, v, finePoints(interval))
	if at-c.minute.from >= 60 {
		c.minute.end(&c.coarse, coarsePoints(history), at-at%60)
	}
	c.minute.add(v)
}

// finePoints and coarsePoints are the largest numbers of points.
func finePoints(interval time.Duration) int  { return max(60, int(fineFor/interval)) }
func coarsePoints(history time.Duration) int { return max(1, int(history/time.Minute)) }

// restore sets the curves of a new run to what was kept over a restart.
func (c *curves) restore(fine, coarse *savedPoints, now time.Time, interval, history time.Duration) {
	c.fine, c.coarse = fine.restored(now, finePoints(interval)), coarse.restored(now, coarsePoints(history))
	n := len(c.fine.times)
	if n == 0 {
		return
	}
	// The minute that the restart has interrupted.
	c.minute.from = c.fine.times[n-1] - c.fine.times[n-1]%60
	for i, at := range c.fine.times {
		if at >= c.minute.from {
			v := c.fine.at(i, math.MaxInt64)
			c.minute.add(&v)
		}
	}
}

// evenly returns the numbers of all times in one resolution: means of a minute, or, of
// a run that began within fineFor, each point. The numbers of steps end at until.
func (c *curves) evenly(until int64) points { return c.all(until, 60) }

// all returns the means of minutes, and after them means of a number of seconds, or, of a
// run that began within fineFor, each point. The numbers of steps end at until.
func (c *curves) all(until int64, seconds uint32) (all points) {
	if !c.isLong() {
		return c.fine.before(until)
	}
	whole := c.coarse.times[len(c.coarse.times)-1] + 60
	if len(c.fine.times) > 0 {
		whole = c.fine.times[0] + 59 - (c.fine.times[0]+59)%60
	}
	for i, at := range c.coarse.times {
		if at < whole {
			v := c.coarse.at(i, until)
			all.add(at, &v, math.MaxInt/2)
		}
	}
	sums := minute{from: whole}
	for i, at := range c.fine.times {
		if at < whole {
			continue
		}
		if at-sums.from >= seconds {
			sums.end(&all, math.MaxInt/2, at-at%seconds)
		}
		v := c.fine.at(i, until)
		sums.add(&v)
	}
	sums.end(&all, math.MaxInt/2, 0)
	return all
}

// isLong reports whether there are means of minutes of which there are no points any
// more.
func (c *curves) isLong() bool {
	return len(c.coarse.times) > 0 && (len(c.fine.times) == 0 || c.coarse.times[0]+60 <= c.fine.times[0])
}

// at returns the numbers at an index, those of steps only up to a time.
func (p *points) at(i int, until int64) (v values) {
	for id := range v {
		v[id] = float32(math.NaN())
		if p.values[id] != nil && (!curveID(id).ofSteps() || int64(p.times[i]) <= until) {
			v[id] = p.values[id][i]
		}
	}
	return v
}

// before returns the points, of the numbers of steps those up to a time.
func (p *points) before(until int64) (all points) {
	for i, at := range p.times {
		v := p.at(i, until)
		all.add(at, &v, math.MaxInt/2)
	}
	return all
}

// known returns the values of a number that are known, from a time on.
func (p *points) known(id curveID, from uint32) (times, values []float64) {
	times, values = []float64{}, []float64{}
	for i, value := range p.values[id] {
		if at := p.times[i]; value == value && at >= from {
			times, values = append(times, float64(at)), append(values, exact(value))
		}
	}
	return times, values
}

// ofSteps reports whether the number is one of steps, and not of what a run holds.
func (id curveID) ofSteps() bool {
	switch id {
	case curveLoss, curveStepTime, curveTokenRate, curveValidation, curveLearningRate, curveSampleRate:
		return true
	}
	return false
}

// rows returns the curves that have values. The numbers of steps end at until, in Unix
// seconds.
func (c *curves) rows(now time.Time, until int64) []Curve {
	rows := []Curve{}
	all, fine := c.evenly(until), c.fine.before(until)
	for id, name := range curveNames {
		if curveID(id).isAxis() {
			continue
		}
		row := Curve{Name: name.name, Unit: name.unit}
		if row.Times, row.Values = all.known(curveID(id), 0); len(row.Times) == 0 {
			continue
		}
		if c.isLong() {
			if times, values := fine.known(curveID(id), uint32(max(0, now.Add(-fineFor).Unix()))); len(times) > 0 {
				row.Fine = &FinePoints{times, values}
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// exact returns the number with the digits that a float32 has.
func exact(v float32) float64 {
	exact, _ := strconv.ParseFloat(strconv.FormatFloat(float64(v), 'g', -1, 32), 64)
	return exact
}

// savedPoints are points of curves: times, and values by the name of their curve, as
// little-endian numbers of 32 bits.
type savedPoints struct {
	Times  []byte            `json:"times"`
	Values map[string][]byte `json:"values"`
}

// size is the number of bytes of the points.
func (p *points) size() int {
	n := 4 * len(p.times)
	for _, values := range p.values {
		n += 4 * len(values)
	}
	return n
}

func (p *points) saved() *savedPoints {
	if len(p.times) == 0 {
		return nil
	}
	out := &savedPoints{Values: make(map[string][]byte)}
	for _, at := range p.times {
		out.Times = binary.LittleEndian.AppendUint32(out.Times, at)
	}
	for id, values := range p.values {
		var data []byte
		for _, value := range values {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(value))
		}
		if data != nil {
			out.Values[curveNames[id].name] = data
		}
	}
	return out
}

// restored returns the newest points until now that saved has written, none if they are not whole or not in their order.
func (e *savedPoints) restored(now time.Time, limit int) (p points) {
	if e == nil || len(e.Times)%4 != 0 {
		return points{}
	}
	var times []uint32
	for i := 0; i < len(e.Times); i += 4 {
		at := binary.LittleEndian.Uint32(e.Times[i:])
		if i > 0 && at <= times[len(times)-1] {
			return points{}
		}
		times = append(times, at)
	}
	// As many as add keeps.
	for i := max(0, len(times)-limit-limit/4); i < len(times) && int64(times[i]) <= now.Unix(); i++ {
		var v values
		for id, curve := range curveNames {
			v[id] = float32(math.NaN())
			if data := e.Values[curve.name]; len(data) == len(e.Times) {
				if value := math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:])); !math.IsInf(float64(value), 0) {
					v[id] = value
				}
			}
		}
		p.add(times[i], &v, limit)
	}
	return p
}
