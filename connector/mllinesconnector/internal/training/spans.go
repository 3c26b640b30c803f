package training

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"io"
	"math"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector/internal/format"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// Made returns the number of spans since the previous MoveTo.
func (p *Process) Made() int { return p.spans.Len() }

// MoveTo moves the spans since the previous call to others.
func (p *Process) MoveTo(to ptrace.SpanSlice) { p.spans.MoveAndAppendTo(to) }

// add adds a span of the process's trace, with its phase, one of the Phase values of mlattr,
// and the number of its step, 0 for none. Its ids are the same when its lines are read again.
func (p *Process) add(name, phase string, number int64, start, end time.Time) ptrace.Span {
	if start.Unix() < 0 {
		start = end // a clock that was never set
	}
	var id [8]byte
	binary.BigEndian.PutUint64(id[:], hash(string(p.trace[:])+name, uint64(number), uint64(end.UnixNano()))) // #nosec G115 -- hashed
	s := p.spans.AppendEmpty()
	s.SetTraceID(p.trace)
	s.SetSpanID(id)
	s.SetName(name)
	s.SetKind(ptrace.SpanKindInternal)
	s.SetStartTimestamp(pcommon.NewTimestampFromTime(start))
	s.SetEndTimestamp(pcommon.NewTimestampFromTime(end))
	mlattr.PutText(s.Attributes(), mlattr.Phase, phase)
	if number > 0 {
		s.Attributes().PutInt(mlattr.Step, number)
	}
	return s
}

// writeFailure writes why a training ended.
func writeFailure(f *failure.Failure, s ptrace.Span) {
	attrs := s.Attributes()
	s.Status().SetCode(ptrace.StatusCodeError)
	s.Status().SetMessage(f.Message)
	if f.Rank >= 0 {
		attrs.PutInt(mlattr.RankGlobal, f.Rank)
	}
	mlattr.PutText(attrs, mlattr.HostName, f.Host)
	if f.LocalRank >= 0 {
		attrs.PutInt(mlattr.RankLocal, f.LocalRank)
	}
	event := s.Events().AppendEmpty()
	event.SetName(mlattr.ExceptionEvent)
	event.SetTimestamp(s.EndTimestamp())
	event.Attributes().PutStr(mlattr.ExceptionType, f.Class)
	event.Attributes().PutStr(mlattr.ExceptionMessage, f.Message)
	mlattr.PutText(event.Attributes(), "exception.stacktrace", f.Stack)
}

// writeValues writes what a line says of a step.
func writeValues(r *format.Reading, attrs pcommon.Map) {
	for _, of := range [...]struct {
		value format.Value
		key   string
	}{
		{format.Loss, mlattr.Loss}, {format.ValLoss, mlattr.ValLoss}, {format.LearningRate, mlattr.LearningRate}, {format.GradNorm, mlattr.GradientNorm},
		{format.TokensPerSecond, mlattr.TokensPerSecond}, {format.SamplesPerSecond, mlattr.SamplesPerSecond},
	} {
		if number, ok := r.Get(of.value); ok {
			attrs.PutDouble(of.key, number)
		}
	}
	if _, ok := r.Get(format.Loss); ok {
		attrs.PutStr(mlattr.LossScope, mlattr.LossScopeBatch)
	}
	_, tokens := r.Get(format.TokensPerSecond)
	_, samples := r.Get(format.SamplesPerSecond)
	if r.Scope != "" && (tokens || samples) {
		attrs.PutStr(mlattr.ThroughputScope, r.Scope)
	}
	if epoch, ok := r.Get(format.EpochNumber); ok && epoch >= 0 && epoch < mlattr.MaxCount {
		attrs.PutInt(mlattr.Epoch, int64(epoch))
	}
}

func traceOf(key string, attempt uint64) (id [16]byte) {
	binary.BigEndian.PutUint64(id[:8], hash(key, attempt))
	binary.BigEndian.PutUint64(id[8:], hash(key, ^attempt))
	return id
}

// hash is FNV-1a, which is the same in each process. It is never 0.
func hash(text string, numbers ...uint64) uint64 {
	h := fnv.New64a()
	_, _ = io.WriteString(h, text) // a hash does not fail
	for _, n := range numbers {
		_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, n))
	}
	return max(h.Sum64(), 1)
}

const (
	// maxBurst is the number of lines of steps that wait for the last of those that are read
	// together, burst how long nothing follows it, and longest how long they wait for it at
	// most: a program may print all the time.
	maxBurst, burst, longest = 8192, time.Second, 3 * time.Second
)

// stepLine is a line of steps.
type stepLine struct {
	reading *format.Reading
	at      Moment
	// number is that of its last step, steps how many steps it is of, and before the number
	// of the step before them.
	number, steps, before int64
	// each is the stated duration of one step, 0 if there is none.
	each time.Duration
}

// readStep reads a line of steps. Where the time of a line is only when it was read, its
// steps wait for those that are read with it: of a file that was written before, their
// durations say when they were.
func (p *Process) readStep(r *format.Reading, at Moment) {
	number, steps := p.numberOf(r, at)
	if steps <= 0 {
		return
	}
	if p.Ended {
		p.again()
	}
	each, stated := r.Get(format.StepSeconds)
	if !stated && p.End.IsZero() {
		each, stated = r.Get(format.Smoothed)
	}
	if elapsed, ok := r.Get(format.Elapsed); ok {
		if !stated && p.Elapsed != nil && elapsed > *p.Elapsed {
			each, stated = (elapsed-*p.Elapsed)/float64(steps), true
		}
		p.Elapsed = &elapsed
	}
	if !(each > 0 && each < maxOpen.Seconds()) {
		each, stated = 0, false
	}
	if r.ByTime && stated && !p.From.IsZero() {
		steps = max(int64(math.Round(at.Time.Sub(p.From).Seconds()/each)), 1)
	}
	before := p.Step
	p.Interval, p.Step, p.From = steps, number, at.Time
	p.missing(r, steps)
	line := stepLine{r, at, number, min(steps, maxSteps), before, time.Duration(each * 1e9)}
	if !at.Read {
		p.Flush()
		p.lay([]stepLine{line})
		return
	}
	reading := *r // its memory is used for the next line
	line.reading = &reading
	if len(p.burst) == 0 {
		p.burstFrom = p.burstIn
	}
	if p.burst = append(p.burst, line); len(p.burst) >= maxBurst {
		p.Flush()
	}
}

// Flush adds the steps that wait.
func (p *Process) Flush() {
	if len(p.burst) > 0 {
		p.lay(p.burst)
		p.burst = nil
	}
}

// lay adds the steps of lines, of which the last ended when its line was printed: the stated
// durations apart, or evenly since the step before. None began before the attempt before it ended.
func (p *Process) lay(lines []stepLine) {
	at := lines[len(lines)-1].at
	end, whole, unstated := at.Time, time.Duration(0), int64(0)
	for i := range lines {
		if whole += lines[i].each * time.Duration(lines[i].steps); lines[i].each == 0 {
			unstated += lines[i].steps
		}
	}
	share, shrink := time.Duration(0), 1.0
	since := p.End
	if since.IsZero() && !p.After.After(end) {
		since = p.After
	}
	if !since.IsZero() {
		gap := max(end.Sub(since), 0)
		if unstated > 0 && !p.End.IsZero() {
			share = max(gap-whole, 0) / time.Duration(unstated)
			whole += share * time.Duration(unstated)
		} else if by := p.End.Add(whole); by.After(end.Add(-slack)) && !by.After(end.Add(at.Late)) {
			// The ends of steps are the stated time apart, whatever the printing took.
			end, gap = by, whole
		}
		if whole > gap {
			shrink, whole = float64(gap)/float64(whole), gap
		}
	}
	next := end.Add(-whole)
	p.Began = shared.Earlier(p.Began, next)
	for i := range lines {
		line := &lines[i]
		each := time.Duration(float64(cmp.Or(line.each, share)) * shrink)
		if i == len(lines)-1 {
			next = end.Add(-each * time.Duration(line.steps)) // without what was rounded
		}
		next = p.addSteps(line, next, each)
	}
	p.End = end
}

// addSteps adds the steps of a line from a time on, and returns their end.
func (p *Process) addSteps(line *stepLine, next time.Time, each time.Duration) time.Time {
	data, batch := time.Duration(line.reading.Or(format.DataSeconds, 0)*1e9), line.reading.Or(format.BatchSize, 0)
	for i := range line.steps {
		left, number := line.steps-1-i, int64(0)
		if line.number-line.before == line.steps || left == 0 {
			number = line.number - left
		}
		s := p.add("train_step", mlattr.PhaseBatch, number, next, next.Add(each))
		if batch >= 1 && batch <= mlattr.MaxCount {
			s.Attributes().PutInt(mlattr.BatchSize, int64(batch))
		}
		if left == 0 {
			writeValues(line.reading, s.Attributes())
		}
		if data > 0 && data <= each {
			p.add(mlattr.PhaseDataLoad, mlattr.PhaseDataLoad, 0, next, next.Add(data)).SetParentSpanID(s.SpanID())
		}
		next = next.Add(each)
	}
	return next
}

// missing adds the loss of a line whose program leaves out a loss that is NaN, unless it
// skipped all steps.
func (p *Process) missing(r *format.Reading, steps int64) {
	if _, ok := r.Get(format.Loss); ok || r.MissingLoss == "" {
		return
	}
	if r.Or(format.NaN, 0) > 0 || r.Or(format.Skipped, 0) < float64(steps) {
		r.Set(format.Loss, math.NaN())
	}
}
