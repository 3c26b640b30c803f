package runs

import (
	"strconv"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/checkpoints"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/pace"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/ranks"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/wallclock"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// State is the state of a rank or of a run.
type State uint8

// The states, from the one that matters least for the run of a rank.
const (
	Ended State = iota
	Unknown
	// Silent is that of a rank that is stalled and whose run holds no GPU, has not held
	// one for long, or holds GPUs that were not read any more when it had stalled.
	Silent
	// Failed is that of a rank whose program has ended with an error.
	Failed
	Running
	Stalled
)

// states are the values of series.RunStateLabel.
var states = [...]string{
	Ended: mlattr.RunEnded, Unknown: mlattr.RunUnknown, Silent: mlattr.RunSilent,
	Failed: mlattr.RunFailed, Running: mlattr.RunRunning, Stalled: mlattr.RunStalled,
}

// Over reports whether the program has come to its end.
func (s State) Over() bool { return s == Ended || s == Failed }

// standing returns what the state of one rank means for its run when a run must
// be replaced.
func (s State) standing(held bool) streams.Standing {
	switch {
	case s.Over():
		return streams.Ended
	case s == Silent, s == Stalled && !held:
		return streams.Silent
	case s == Running, held:
		return streams.Running
	default:
		return streams.NotJudged
	}
}

// Rank is what one rank shows about its run at an emission.
type Rank struct {
	// Name and Host are its labels, empty if it has none. Moved reports whether a
	// newer span of the same rank came from another host, or its run has it no
	// longer; Missing whether it has stopped while the others go on.
	Name, Host     string
	Moved, Missing bool
	State          State
	// Since is when the rank was first seen, Alive when its last span arrived,
	// and Seen when its last data arrived.
	Since, Alive, Seen time.Time
	Speed
	Breaks
	// Failure is the error with which a failed rank ended.
	Failure Failure
	Last    Last
	Program Program
	Saves   Saves

	attempt Attempt
	// spent is its time since the previous emission.
	spent wallclock.Spent
	clock *clock
}

// Speed is how long the steps of a rank take, without what was left out.
type Speed struct {
	Steps pace.StepTimes
	// Shift is how the level of its step times has changed, and Drift how it has wandered.
	Shift, Drift pace.Shift
	// Own is what it does in a step before it may wait for others: it loads data, then the
	// forward pass too, and the backward pass. Its Step is 0 if that is unknown.
	Own     [3]pace.Typical
	Without Exclusions
}

// Breaks are the times in which a rank takes no step.
type Breaks struct {
	// Patience is how long it may be silent, Pause its longest checkpoint or validation.
	Patience, Pause time.Duration
	// Resumed is when the rank went on after its latest silence of half of its Patience.
	Resumed  time.Time
	Silences Silences
}

// Failure is the class of an error, and its message and the operation that failed, "" if
// unknown.
type Failure struct {
	Class, Message, Operation string
	// At is when it failed, by the client's clock.
	At time.Time
}

// Last is what a rank did last.
type Last struct {
	// Steps is the number of its steps, Stepped when the last one arrived.
	Steps   int64
	Stepped time.Time
	// End is the end of its last span by its own clock, 0 if there is none, and Phase
	// the phase of that span.
	End   int64
	Phase wallclock.Phase
}

// Saves are the checkpoints of a rank.
type Saves struct {
	// Last is when the last one arrived, Missed the one that is Late. Regular reports
	// whether they have a usual interval.
	Last          time.Time
	Missed        checkpoints.Overdue
	Late, Regular bool
}

// Phase returns the phase of the rank's last span, or "".
func (r *Rank) Phase() string {
	if r.Last.End == 0 || r.Last.Phase == wallclock.NoPhase {
		return ""
	}
	return r.Last.Phase.String()
}

// member returns the rank as the rules about missing ranks see it. world is the number
// of ranks of the run, 0 if unknown, and attempt the launcher's newest count of restarts.
func (r *Rank) member(world int, attempt int64) ranks.Rank {
	number, err := strconv.Atoi(r.Name)
	if err != nil {
		number = -1
	}
	// The ranks of an earlier attempt, and those that a smaller world has no
	// longer, have left.
	r.Moved = r.Moved || number >= 0 && (r.attempt.Attempts.Numbered && r.attempt.Attempts.Number < attempt || world > 0 && number >= world)
	return ranks.Rank{
		Number: number, Alive: r.Alive, Stepped: r.Last.Stepped, Resumed: r.Resumed,
		Silent: r.State == Stalled || r.State == Silent, Patience: r.Patience,
		Gone: r.Moved || r.State.Over() || number < 0,
	}
}

// stateAsOf returns the state of the rank. If its run's GPUs are not read any more, it
// is stalled only if it was when they were last read: nobody knows what came after.
func (c *clock) stateAsOf(limits Timeouts, held gpus.Held, now time.Time) State {
	state := c.state(limits, held, now)
	if held.Silent.IsZero() || state.Over() {
		return state
	}
	state = c.state(limits, held, held.Silent)
	if c.silent(now) && (state == Running || state == Unknown) {
		return Silent
	}
	return state
}

// state returns the state of the rank. Silence is measured by the collector's
// clock, so that a wrong clock of a client stalls nothing. Before the first step of
// an attempt, and after the run has taken GPUs again, the first step counts.
func (c *clock) state(limits Timeouts, held gpus.Held, now time.Time) State {
	again := held.Again.After(c.arrived)
	switch {
	case c.over(), c.left(held, now):
		if c.failure().Class != "" {
			return Failed
		}
		return Ended
	case !c.Stepped() && c.moved.IsZero() || c.starts && held.Now || again:
		begun := shared.Later(c.since, c.began, held.Again)
		overdue := limits.FirstStep > 0 && now.Sub(begun) > limits.FirstStep
		if held.Now && overdue && now.Sub(c.arrived) > limits.Stall {
			return Stalled
		}
		return Unknown
	case c.silent(now):
		return Stalled
	case c.starts:
		return Unknown
	default:
		return Running
	}
}

// silent reports whether nothing has arrived for longer than the rank's patience.
func (c *clock) silent(now time.Time) bool { return now.Sub(c.arrived) > c.patience() }

// patience returns how long nothing may arrive of a rank that works. Without spans
// of steps its metrics decide, which put many steps together.
func (c *clock) patience() time.Duration {
	patience := time.Duration(c.Patience())
	if c.byMetrics() {
		patience = max(patience, c.between)
	}
	return patience
}

// quiet reports whether nothing has arrived for longer than a typical step and
// for a fifth of the stall timeout, so that no other optimizer of the latest step is expected.
func (c *clock) quiet(now time.Time) bool { return now.Sub(c.arrived) > c.patience()/5 }

// over reports whether the client has ended the training. Later work belongs to
// a new attempt.
func (c *clock) over() bool { return c.Ended > 0 && c.Ended >= c.Worked }

// left reports whether the rank's program has come to its end without a span of the
// whole training: a root around all its work has ended, or it has released its GPUs, or
// its last span failed, and nothing follows.
func (c *clock) left(held gpus.Held, now time.Time) bool {
	switch {
	case held.Now || c.program.OnDemand || c.Worked == 0:
		return false
	case c.ending.isClosed(c.Worked):
		return c.quiet(now)
	}
	return (c.failure().Class != "" || held.Released) && c.silent(now)
}

// failure returns the error with which the program ended, if it did.
func (c *clock) failure() Failure { return c.ending.failed(c.Worked, c.Ended) }

// Program is what a resource reveals about how its client records run time.
type Program struct {
	// Born is the start of the run's process, PID its id, 0 if unknown.
	Born, PID int64
	// Idles reports whether time without a span is time without work.
	Idles bool
	// OnDemand reports whether the process works when it is asked to, for many
	// runs, so that time without a span says nothing about its speed.
	OnDemand bool
	// NoStartup reports whether time before the first productive moment may be
	// something other than startup.
	NoStartup bool
	// Restarts is the launcher's count of restarts; Numbered reports whether
	// there is one.
	Restarts int64
	Numbered bool
	// World is the number of ranks of the run, 0 if unknown, and SomeSend reports
	// whether only some of them may send.
	World    int64
	SomeSend bool
	// Stage is its stage of a pipeline, "" if unknown.
	Stage string
	// Tokens is the number of tokens of a step of all ranks, 0 if unknown.
	Tokens float64
}

// Span is what a span reveals about the time of its run.
type Span struct {
	Program
	// Source is the rank, and Trace the trace of the span.
	Source *streams.Source
	Trace  [16]byte
	// Timed reports whether Time has a duration that counts.
	Timed bool
	// Time has the client's times, even if Timed is false.
	Time wallclock.Span
	// EndsRun reports whether the span is that of the whole training.
	EndsRun bool
	// EndsStep reports whether a step ends with the span, and Optimizes whether it is
	// an optimizer.
	EndsStep, Optimizes bool
	// Steps is how many steps are counted with it.
	Steps int64
	// Step is the number of the step within the run, 0 if the client does not
	// number steps that way.
	Step int64
	// Root reports whether the span has no parent and may be that of a program that
	// trains.
	Root bool
	// OneTrace reports whether a process of the client has one trace for its
	// whole life.
	OneTrace bool
	// Timing is the label for what was timed.
	Timing string
	// Operation is its ml.operation, Failure the class of its error, "" if it has none, and
	// Message what the error says.
	Operation, Failure, Message string
}

// works reports whether a span is work of a training.
func (s *Span) works() bool { return s.Timed || s.EndsStep }

// trains reports whether it is that, or the training itself.
func (s *Span) trains() bool { return s.works() || s.EndsRun }
