package model

import (
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
	// minute has the sums of the points since minuteFrom.
	minuteFrom uint32
	sum        [curveCount]float64
	n          [curveCount]int
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
	c.fine.add(at, v, max(60, int(fineFor/interval)))
	if at-c.minuteFrom >= 60 {
		c.endMinute(history)
		c.minuteFrom = at - at%60
	}
	for i, value := range v {
		if value == value {
			c.sum[i] += float64(value)
			c.n[i]++
		}
	}
}

func (c *curves) endMinute(history time.Duration) {
	var mean values
	known := false
	for i := range mean {
		mean[i] = float32(math.NaN())
		if c.n[i] > 0 {
			mean[i], known = float32(c.sum[i]/float64(c.n[i])), true
		}
	}
	if known {
		c.coarse.add(c.minuteFrom, &mean, max(1, int(history/time.Minute)))
	}
	c.sum, c.n = [curveCount]float64{}, [curveCount]int{}
}

// rows returns the curves that have values: means of a minute, and each point of
// the last ten minutes.
func (c *curves) rows(now time.Time) []Curve {
	rows := []Curve{}
	from := uint32(max(0, now.Add(-fineFor).Unix()))
	if n := len(c.fine.times); n > 0 {
		from = max(from, c.fine.times[0])
	}
	for id, name := range curveNames {
		if curveID(id).isAxis() {
			continue
		}
		row := Curve{Name: name.name, Unit: name.unit, Times: []float64{}, Values: []float64{}}
		take := func(p *points, wanted func(uint32) bool) {
			for i, value := range p.values[id] {
				if at := p.times[i]; value == value && wanted(at) {
					row.Times, row.Values = append(row.Times, float64(at)), append(row.Values, exact(value))
				}
			}
		}
		take(&c.coarse, func(at uint32) bool { return at+60 <= from })
		take(&c.fine, func(at uint32) bool { return at >= from })
		if len(row.Times) > 0 {
			rows = append(rows, row)
		}
	}
	return rows
}

// dueRuns are the runs that have new numbers, which are recorded together once
// all of an emission have arrived.
type dueRuns struct {
	since map[*run]time.Time
	next  time.Time
}

// due notes that a run has new numbers.
func (d *dueRuns) due(r *run, now time.Time) {
	if d.since == nil {
		d.since = make(map[*run]time.Time)
	}
	if _, known := d.since[r]; known {
		return
	}
	if len(d.since) == 0 {
		d.next = now
	}
	d.since[r] = now
}

func (d *dueRuns) forget(r *run) { delete(d.since, r) }

// record adds the numbers of the runs that have had new ones for an interval to
// their curves.
func (d *dueRuns) record(s *Store, now time.Time) {
	if len(d.since) == 0 || now.Sub(d.next) < s.settings.Interval {
		return
	}
	s.holdGPUs(now)
	next := now
	for r, since := range d.since {
		if now.Sub(since) >= s.settings.Interval {
			var row Run
			r.addNumbers(&row, now)
			v := r.numbers(&row)
			r.curves.add(since, &v, s.settings.Interval, s.settings.History)
			r.noteHardware()
			r.spend(&row, since)
			s.keepGood(r, now)
			delete(d.since, r)
		} else if since.Before(next) {
			next = since
		}
	}
	d.next = next
}

// numbers returns the numbers of a run that are kept over time.
func (r *run) numbers(row *Run) (v values) {
	for i := range v {
		v[i] = float32(math.NaN())
	}
	for id, value := range map[curveID]*float64{
		curveLoss: row.Loss, curveStepTime: row.StepTime, curveTokenRate: row.TokenRate,
		curveGoodput: row.Goodput, curveUtilization: row.GPUUtilization, curveValidation: row.ValidationLoss,
		curveLearningRate: row.LearningRate, curveSampleRate: row.SampleRate, curveSteps: row.Steps, curveEpoch: row.Epoch,
	} {
		if value != nil {
			v[id] = float32(*value)
		}
	}
	var memory, power total
	for _, held := range r.gpus {
		memory.add(held.memory)
		if watts := held.gpu.number(GPUPower); watts != nil {
			power.add(*watts * held.share)
		}
	}
	if memory.n > 0 {
		v[curveMemory] = float32(memory.sum)
	}
	if power.n > 0 {
		v[curvePower] = float32(power.sum)
	}
	return v
}

// exact returns the number with the digits that a float32 has.
func exact(v float32) float64 {
	exact, _ := strconv.ParseFloat(strconv.FormatFloat(float64(v), 'g', -1, 32), 64)
	return exact
}
