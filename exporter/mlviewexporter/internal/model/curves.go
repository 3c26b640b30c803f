package model

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
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
func (c *curves) restore(fine, coarse *exportedPoints, now time.Time, interval, history time.Duration) {
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

// lastNumbers has the last losses of a run.
type lastNumbers struct {
	// steps is the sum of the times of the last steps of all ranks, and stepped when
	// the page learnt of the newest one.
	steps   float64
	stepped time.Time
	// loss is that of the newest step, validation the newest one, nil if unknown.
	loss, validation *float64
}

// noteLast takes over the numbers of a run that the page learnt of at r.due. It learns of a
// step after it, and a sender has a clock of its own, so the time of the last step does not
// tell which numbers are of it.
func (r *run) noteLast(row *Run) {
	steps := 0.0
	for _, one := range r.streams {
		if one.series == LastStep {
			steps += one.value
		}
	}
	if row.ValidationLoss != nil {
		r.last.validation = row.ValidationLoss
	}
	if steps == 0 || steps != r.last.steps {
		r.last.steps, r.last.stepped, r.last.loss = steps, r.due, row.Loss
	}
}

// stepsEnd returns when the numbers of steps end, in Unix seconds: with the last step
// of a run in a state in which it takes none any more, else never.
func (r *run) stepsEnd(state string) int64 {
	switch state {
	case mlattr.RunStalled, mlattr.RunSilent, mlattr.RunFailed, mlattr.RunEnded:
		if r.last.steps != 0 {
			return r.last.stepped.Unix()
		}
	}
	return math.MaxInt64
}

// dueRuns are the runs that have new numbers, which are recorded together once
// all of an emission have arrived.
type dueRuns struct {
	// runs are in the order of run.due. Those that were removed meanwhile are not due.
	runs []*run
}

// due notes that a run has new numbers.
func (d *dueRuns) due(r *run, now time.Time) {
	if r.due.IsZero() {
		r.due = now
		d.runs = append(d.runs, r)
	}
}

// record adds the numbers of the runs that have had new ones for an interval to
// their curves.
func (d *dueRuns) record(s *Store, now time.Time) {
	early := func(r *run) bool { return !r.due.IsZero() && now.Sub(r.due) < s.settings.Interval }
	if len(d.runs) == 0 || early(d.runs[0]) {
		return
	}
	s.holdGPUs(now)
	n := 0
	for ; n < len(d.runs) && !early(d.runs[n]); n++ {
		r := d.runs[n]
		if r.due.IsZero() {
			continue
		}
		var row Run
		r.addNumbers(&row, now)
		v := r.numbers(&row)
		r.curves.add(r.due, &v, s.settings.Interval, s.settings.History)
		r.noteLast(&row)
		r.noteHardware()
		r.spend(&row, r.due)
		s.keepGood(r, now)
		r.due = time.Time{}
	}
	d.runs = slices.Delete(d.runs, 0, n)
}

// numbers returns the numbers of a run that are kept over time.
func (r *run) numbers(row *Run) (v values) {
	for i := range v {
		v[i] = float32(math.NaN())
	}
	for id, value := range [curveCount]*float64{
		curveLoss: row.Loss, curveStepTime: row.StepTime, curveTokenRate: row.TokenRate,
		curveGoodput: row.Goodput, curveUtilization: row.GPUUtilization, curveValidation: row.ValidationLoss,
		curveLearningRate: row.LearningRate, curveSampleRate: row.SampleRate, curveSteps: row.Steps, curveEpoch: row.Epoch,
	} {
		if value != nil {
			v[id] = float32(*value)
		}
	}
	// What senders held back at the start would count as if it were fast.
	if r.ratesOver > 0 && r.ratesOver < rateWindow/2 {
		v[curveTokenRate], v[curveSampleRate] = float32(math.NaN()), float32(math.NaN())
	}
	var memory, power total
	for _, held := range r.gpus {
		if held.silent {
			continue
		}
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
