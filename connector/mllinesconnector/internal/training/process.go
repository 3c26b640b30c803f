// Package training makes spans of what the lines of a training process say: its steps, its
// checkpoints and validations, its end.
package training

import (
	"cmp"
	"math"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector/internal/format"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

const (
	// maxSteps is the largest number of steps of a line that become spans.
	maxSteps = 1000
	// maxFirst is the highest number of a first line whose earlier steps are assumed to
	// be part of it: a program is rarely found by its collector before.
	maxFirst = 100
	// slack is how far the time of a line may be from the end of its step, by the stated
	// duration of steps, so that the stated one counts.
	slack = 2 * time.Second
	// fastest is the least time of a step, in seconds, of which the print of its bar is not
	// left out, whatever its rate was before: tqdm prints at most ten times a second.
	fastest = 0.5
	// maxOpen is how long a checkpoint or a validation may take.
	maxOpen = 12 * time.Hour
	// A program that starts again takes at least startup. Before, a lower number is that
	// of a rank that is behind, by less than maxBehind lines.
	startup, maxBehind = 2 * time.Second, 20
	// waits is how long numbers wait for the bar that says which step they are of.
	waits = 2 * time.Second
)

// Process is one training process, by its lines so far. It is not safe for concurrent use.
type Process struct {
	State
	// key identifies the process, and trace its attempt.
	key   string
	trace [16]byte
	// After is the end of the newest step of the attempt before, zero if none is known.
	After time.Time
	// bar is the newest bar, of those with the total of the training once that is known.
	// numbers wait for the next one, since waiting.
	bar   format.Reading
	barAt Moment
	// redrawn is a step that may be printed again.
	numbers, redrawn     format.Reading
	numbersAt, redrawnAt Moment
	waiting              time.Time
	// burst are steps that wait for the last of the lines that are read together, burstFrom is
	// when the first came and burstIn the newest.
	burst              []stepLine
	burstFrom, burstIn time.Time
	// open has the beginnings of what has not ended.
	open map[format.Kind]time.Time

	spans ptrace.SpanSlice
}

// Moment is when a line was printed: by the program's clock, if it states the time.
type Moment struct {
	Time time.Time
	// Late is how much later than Time it may have been.
	Late time.Duration
	// Read is true if Time is only when the line was read.
	Read bool
}

// NewProcess returns a process without lines.
func NewProcess(key string) *Process {
	p := &Process{key: key, open: make(map[format.Kind]time.Time), spans: ptrace.NewSpanSlice()}
	p.Restore(State{})
	return p
}

// Restore makes a new process go on from a state.
func (p *Process) Restore(s State) { p.State, p.trace = s, traceOf(p.key, s.Attempt) }

// Trains reports whether any line was one of training.
func (p *Process) Trains() bool { return p.Format != "" }

// Name is the name of the newest format, or that of what reads lines without one.
func (p *Process) Name() string { return cmp.Or(p.Format, "training") }

// Waits reports whether something waits for further lines.
func (p *Process) Waits() bool { return !p.waiting.IsZero() || len(p.burst) > 0 }

// Held returns the number of lines of steps that wait, which Flush ends.
func (p *Process) Held() int { return len(p.burst) }

// Read adds what a line says.
func (p *Process) Read(r *format.Reading, at Moment, now time.Time) {
	p.Format = r.Format().Name
	p.Began = cmp.Or(p.Began, at.Time)
	switch kind := r.Kind(); kind {
	case format.Step, format.Numbers, format.Bar, format.Epoch:
		p.burstIn = now
	default:
		p.settle()
		p.Flush()
	}
	switch kind := r.Kind(); kind {
	case format.Step:
		if r.Redrawn {
			p.redraw(r, at, now)
			return
		}
		p.settle()
		p.readStep(r, at)
	case format.Numbers:
		p.settle()
		p.numbers, p.numbersAt, p.waiting = *r, at, now
		if p.bar.Rule != nil && p.barAt == at && p.bar.Or(format.Smoothed, 0) >= fastest {
			p.settle() // no step is without a print of its bar
		}
	case format.Bar:
		if total := r.Or(format.Total, 0); p.Total == 0 || p.Total == total {
			p.bar, p.barAt = *r, at
			p.settle()
		}
	case format.Epoch:
		p.settle()
		p.Epoch = p.epochOf(r)
	case format.Start:
		p.again()
		p.Began, p.From = at.Time, at.Time
	case format.Restore:
		p.again()
		p.open[kind] = at.Time
	case format.Resume, format.Restored:
		p.again()
		p.finish(format.Restore, r, at)
		if number, ok := r.Get(format.StepNumber); ok && number >= 0 && number <= mlattr.MaxCount {
			p.Step = int64(number)
			if r.FromNext {
				p.Step = max(p.Step-1, 0)
			}
		}
	case format.End:
		if !p.Ended {
			p.finishTraining(at.Time, nil)
		}
	case format.Save, format.Evaluate:
		p.open[kind] = at.Time
		if !r.Format().Has(kind + 1) {
			p.finish(kind, r, at)
		}
	case format.Saved, format.Evaluated:
		p.finish(kind-1, r, at)
	}
}

// Fail adds the failure that ended the process.
func (p *Process) Fail(f *failure.Failure, at time.Time) {
	p.settle()
	p.Flush()
	p.finishTraining(at, f)
}

// finishTraining ends the training, not before its newest step: the time of a line may be
// without a fraction.
func (p *Process) finishTraining(at time.Time, f *failure.Failure) {
	at = shared.Later(at, p.End)
	s := p.add(mlattr.PhaseTrain, mlattr.PhaseTrain, 0, shared.Earlier(p.Began, at), at)
	if f != nil {
		writeFailure(f, s)
	}
	p.Ended = true
}

// Tick ends what has waited for long enough, or all.
func (p *Process) Tick(now time.Time, all bool) {
	if !p.waiting.IsZero() && (all || now.Sub(p.waiting) >= waits) {
		p.settle()
	}
	if all || now.Sub(p.burstIn) >= burst || now.Sub(p.burstFrom) >= longest {
		p.Flush()
	}
}

// redraw reads a step of which the last print counts. It ended at the first.
func (p *Process) redraw(r *format.Reading, at Moment, now time.Time) {
	number, _ := r.Get(format.StepNumber)
	if before := &p.redrawn; before.Rule == nil || p.waiting.IsZero() || before.Or(format.StepNumber, -1) != number || before.Or(format.EpochNumber, -1) != r.Or(format.EpochNumber, -1) {
		p.settle()
		p.redrawnAt, p.waiting = at, now
	}
	p.redrawn = *r
}

// settle adds the step of what waits: one that could be printed again, or numbers, whose
// step is that of the newest bar.
func (p *Process) settle() {
	if p.waiting.IsZero() {
		return
	}
	p.waiting = time.Time{}
	if r := p.redrawn; r.Rule != nil {
		p.redrawn = format.Reading{}
		p.readStep(&r, p.redrawnAt)
		return
	}
	r := p.numbers
	if p.bar.Rule == nil {
		// Nobody says which step it is.
		writeValues(&r, p.add("numbers", "", 0, p.numbersAt.Time, p.numbersAt.Time).Attributes())
		return
	}
	bar := p.bar
	if number, _ := bar.Get(format.StepNumber); int64(number) <= p.Step && p.Interval > 0 && int64(number) > p.Step-p.Interval {
		return // numbers that are of no step of their own
	}
	p.Total = bar.Or(format.Total, 0)
	bar.Rule = r.Rule
	r.Merge(&bar)
	p.readStep(&r, p.numbersAt)
}

// again begins another attempt if the process has taken steps or ended.
func (p *Process) again() {
	p.settle()
	p.Flush()
	if p.Interval == 0 && !p.Ended {
		return
	}
	next := State{Format: p.Format, Attempt: p.Attempt + 1}
	*p = Process{key: p.key, After: p.End, open: p.open, spans: p.spans}
	p.Restore(next)
	clear(p.open)
}

func (p *Process) epochOf(r *format.Reading) float64 {
	epoch, ok := r.Get(format.EpochNumber)
	switch {
	case !ok:
		return p.Epoch
	case r.EpochFromZero:
		return math.Floor(epoch) + 1
	default:
		return epoch
	}
}

// numberOf returns the number of a step among all of the training, and of how many steps
// the line is.
func (p *Process) numberOf(r *format.Reading, at Moment) (number, steps int64) {
	stated, _ := r.Get(format.StepNumber)
	if !(stated >= 0 && stated <= mlattr.MaxCount) {
		return 0, 0
	}
	number = int64(stated)
	if r.FromZero {
		number++
	}
	if number == 0 {
		return 0, 0 // a bar that begins again
	}
	if r.InEpoch {
		epoch, total := p.epochOf(r), r.Or(format.Total, 0)
		switch {
		case epoch >= 1 && epoch*total <= mlattr.MaxCount && total > 0:
			p.Base = int64(epoch-1) * int64(total)
		case number < p.InEpoch || epoch > p.Epoch && number <= p.InEpoch:
			p.Base = p.Step
		}
		p.InEpoch, p.Epoch = number, epoch
		number += p.Base
	}
	switch {
	case r.ByTime && number >= p.Step:
		return number, 1
	case r.ByTime, number == p.Step:
		return number, 0 // the steps had their lines
	case number < p.Step:
		last := max(p.Interval, 1)
		behind := p.Step - number
		if at.Time.Sub(p.End) < startup && behind < maxBehind*last && (number > last || behind < 3*last) {
			return number, 0 // of a rank that is behind
		}
		p.again()
		return number, min(last, number)
	case p.Step > 0:
		return number, number - p.Step
	case number <= maxFirst:
		return number, number
	default:
		return number, 1
	}
}

// finish adds the span of what a line of the kind began.
func (p *Process) finish(kind format.Kind, r *format.Reading, at Moment) {
	start, open := p.open[kind]
	delete(p.open, kind)
	seconds, stated := r.Get(format.Seconds)
	switch {
	case stated && seconds > 0 && seconds < maxOpen.Seconds():
		start = at.Time.Add(-time.Duration(seconds * 1e9))
	case !open || at.Time.Sub(start) > maxOpen || start.After(at.Time):
		start = at.Time
	}
	operation, phase := "save_checkpoint", mlattr.PhaseCheckpoint
	switch kind {
	case format.Save:
	case format.Restore:
		if !open && !stated {
			return
		}
		operation = "load_checkpoint"
	default:
		operation, phase = "evaluate", mlattr.PhaseValidation
	}
	p.From = at.Time
	s := p.add(operation, phase, 0, start, at.Time)
	s.Attributes().PutStr(mlattr.Operation, operation)
	writeValues(r, s.Attributes())
}

// State is what goes on of a process when its collector starts again.
type State struct {
	// Format is the name of the newest format, "" if no line was one of training. Attempt
	// counts restarts.
	Format  string `json:"format"`
	Attempt uint64 `json:"attempt,omitempty"`
	// Step is the number of the newest step, 0 if unknown, and Interval the number of steps
	// of the newest line. In formats that number the steps of an epoch, Base is the number
	// of steps before the epoch and InEpoch the newest number within it.
	Step     int64   `json:"step,omitempty"`
	Interval int64   `json:"interval,omitempty"`
	Base     int64   `json:"base,omitempty"`
	InEpoch  int64   `json:"in_epoch,omitempty"`
	Epoch    float64 `json:"epoch,omitempty"`
	// Total is that of the bars of the training, 0 if unknown.
	Total float64 `json:"total,omitempty"`
	// Elapsed is the time that the program states for the newest step, nil if none. What it
	// points to never changes.
	Elapsed *float64 `json:"elapsed,omitempty"`
	// Began is when the training began, as far as the lines say. End is the end of the
	// newest step, and From when the next one may have begun.
	Began time.Time `json:"began,omitzero"`
	From  time.Time `json:"from,omitzero"`
	End   time.Time `json:"end,omitzero"`
	Ended bool      `json:"ended,omitempty"`
	// Seen is the minute of the newest line, set when the state is kept, so that one in which
	// nothing else has changed is not written with each line.
	Seen time.Time `json:"seen"`
}
