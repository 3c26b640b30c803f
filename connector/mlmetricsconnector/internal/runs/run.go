package runs

import (
	"math"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/bound"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/ranks"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/wallclock"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// Run is what is known of a run at an emission. It is not safe for concurrent use.
type Run struct {
	Key   streams.RunKey
	Ranks []*Rank
	// State is the state of the run, the worst of its ranks, Since its beginning.
	State State
	Since time.Time
	// Seen is when the newest data of any of the ranks arrived, and Shown the same at
	// the previous emission: steps are attributed one emission late. Interval is the
	// recent time of a step.
	Seen, Shown time.Time
	Interval    time.Duration
	GPUs        GPUs
	// Said is what NCCL says about its ranks, and dumps since it is in its state.
	ranks.Said
	Members Members
	Steps   Steps

	// grown is when the number of ranks that the run should have last rose.
	grown  time.Time
	window wallclock.Window
	// launched has the restarts that the launcher of the run has counted, on whatever host.
	launched Attempt
}

// GPUs is what a run has of GPUs.
type GPUs struct {
	gpus.Used
	// Number is how many it has.
	Number float64
}

// Members are the ranks of a run as the rules about missing ranks see them.
type Members struct {
	All []ranks.Rank
	// World is the number of ranks that the run should have, 0 if unknown or if only
	// some of them send, Expected that of those that should send, and Sending that of
	// those that do.
	World, Expected, Sending int
	// Stopped are the indexes of the ranks that have stopped while others go on, and
	// Few reports whether they are no more than half of them.
	Stopped []int
	Few     bool
}

// Telemetry returns the fraction of the ranks that send, NaN if it is unknown.
func (m *Members) Telemetry() float64 { return float64(m.Sending) / float64(m.Expected) }

// add adds a rank.
func (r *Run) add(rank *Rank, now time.Time) {
	r.Seen = shared.Later(r.Seen, rank.Seen)
	if is := &rank.attempt.Attempts; is.Numbered {
		begun, _ := r.launched.Attempts.count(is.Number)
		r.launched.restarts.add(begun, now)
		r.launched.Attempted += begun
	}
	r.Ranks = append(r.Ranks, rank)
}

// waits is how long a stall lasts before a dump shows that ranks wait: a watchdog writes one after
// its timeout, anybody at any time.
const waits = time.Minute

// Waits reports whether NCCL or dumps say that ranks wait for others.
func (r *Run) Waits() bool {
	return len(r.Stuck) > 0 || r.Wait.Number != "" && r.Wait.At.Sub(r.Since) >= waits
}

// settle determines what the ranks show of the run, and adds its series.
func (r *Run) settle(e *Emission, to *streams.Batch) {
	r.GPUs, r.Said = GPUs{Used: e.GPUs.Runs[RunOf(r.Key)]}, e.Said[r.Key.ID]
	if r.GPUs.Use != nil {
		r.GPUs.Number = r.GPUs.Use.GPUs
	}
	if !r.GPUs.Silent.IsZero() {
		r.GPUs.Number = float64(len(r.GPUs.All))
	}
	r.Interval = time.Duration(r.stepTimes().Recent * float64(time.Second))
	addUse(to, r.GPUs.Use)
	r.move()
	for _, rank := range r.Ranks {
		if !rank.Moved {
			r.window.Add(&rank.spent, e.Now)
		}
	}
	r.count(e.Now)
	r.settleState(e)
	if r.Wait.At.Before(r.Since) {
		r.Wait = ranks.Wait{} // of an earlier hang, or of a healthy moment
	}
	for state, name := range states {
		to.Choose(series.RunState, name, r.State == State(state)) // #nosec G115 -- one of six
	}
	to.Time(series.RunStateTimestamp, r.Since)
	to.Time(series.RunLastData, r.Seen)
	r.addTime(to)
	r.compareSteps()
	r.addSteps(to)
}

// move marks ranks that run elsewhere now, as after a restart on another host: a
// rank is where its newest span came from.
func (r *Run) move() {
	newest := make(map[string]time.Time, len(r.Ranks))
	for _, rank := range r.Ranks {
		newest[rank.Name] = shared.Later(newest[rank.Name], rank.Alive)
	}
	for _, rank := range r.Ranks {
		rank.Moved = rank.Name != "" && rank.Alive.Before(newest[rank.Name])
	}
}

// count determines which ranks are members of the run, and which of them have stopped.
func (r *Run) count(now time.Time) {
	m := Members{All: make([]ranks.Rank, len(r.Ranks))}
	var newest time.Time
	someSend := false
	for _, rank := range r.Ranks {
		someSend = someSend || rank.Program.SomeSend
		if rank.Program.World > 0 && rank.Alive.After(newest) {
			newest, m.World = rank.Alive, int(rank.Program.World)
		}
	}
	if was := r.Members.World; was > 0 && m.World > 0 && m.World != was {
		r.Steps = Steps{}
		if m.World > was {
			r.grown = now
		}
	}
	for i, rank := range r.Ranks {
		m.All[i] = rank.member(m.World, r.launched.Attempts.Number)
		if !m.All[i].Gone {
			m.Expected++
			if !m.All[i].Silent {
				m.Sending++
			}
		}
	}
	if someSend {
		m.World = 0 // the others send nothing, and are not missing
	}
	m.Expected = max(m.Expected, m.World)
	m.Stopped, m.Few = ranks.Stopped(m.All)
	m.Stopped = slices.DeleteFunc(m.Stopped, func(i int) bool { return r.Ranks[i].expected(r.grown, now) })
	for _, i := range m.Stopped {
		r.Ranks[i].Missing = true
	}
	r.Members = m
}

// expected reports whether a rank that was left out of a smaller world has yet to send
// since the world has grown.
func (r *Rank) expected(grown, now time.Time) bool {
	return r.Alive.Before(grown) && now.Sub(grown) <= r.Patience
}

// settleState determines the state of the run, the worst of its ranks. A rank is not
// stalled before its run has held GPUs for the rank's patience: after a preemption, it
// may load a checkpoint.
func (r *Run) settleState(e *Emission) {
	state, first := Ended, r.Since.IsZero()
	var since, alive time.Time
	for _, rank := range r.Ranks {
		if rank.Moved || rank.Missing || rank.expected(r.grown, e.Now) {
			continue
		}
		if rank.State == Stalled && (!r.GPUs.Now || e.Now.Sub(r.GPUs.Since) <= rank.Patience) {
			rank.State = Silent
		}
		if rank.State >= state {
			if rank.State > state {
				alive = time.Time{}
			}
			state, alive = rank.State, shared.Later(alive, rank.Alive)
		}
		since = shared.Earlier(since, rank.Since)
	}
	if e.Withheld && !first && !r.State.Over() && (state == Stalled || state == Silent) {
		state = r.State
	}
	switch {
	case state == Stalled, state == Silent, state.Over():
		r.Since = alive
	case first:
		r.Since = since
	case state != r.State:
		r.Since = e.Now
	}
	r.State = state
}

// addTime adds the fractions of the run's time and what bounds it.
func (r *Run) addTime(to *streams.Batch) {
	ratios, ok := r.window.Ratios(to.Now)
	if !ok {
		return
	}
	for state, ratio := range ratios {
		if ratio >= 0 {
			to.Value(series.RunTimeRatio, ratio, wallclock.State(state).String()) // #nosec G115 -- the index of a state
		}
	}
	of := func(state wallclock.State) float64 { return max(ratios[state], 0) }
	to.Value(series.RunGoodput, of(wallclock.Productive))
	evidence := bound.Evidence{
		Checkpoint: of(wallclock.Checkpointing) + of(wallclock.Restoring),
		DataLoad:   of(wallclock.LoadingData), Productive: of(wallclock.Productive), Utilization: math.NaN(),
	}
	if r.GPUs.Use != nil {
		evidence.Utilization = r.GPUs.Use.Mean()
	}
	is := bound.Of(evidence)
	for _, each := range bound.All {
		to.Choose(series.RunBound, string(each), each == is)
	}
}

// addSteps adds the step times of the median rank, and the tokens of all ranks.
func (r *Run) addSteps(to *streams.Batch) {
	times, tokens := r.Steps.Times, 0.0
	if times.Recent > 0 {
		to.Value(series.RunStepTime, times.Recent, mlattr.WindowRecent)
	}
	if times.Usual > 0 {
		to.Value(series.RunStepTime, times.Usual, mlattr.WindowUsual)
	}
	for _, rank := range r.Ranks {
		if !rank.Moved {
			tokens = max(tokens, rank.Program.Tokens)
		}
	}
	if tokens > 0 && times.Recent > 0 {
		to.Value(series.RunTokenThroughput, tokens/times.Recent, mlattr.BasisSteps)
	}
}

// addUse adds what a run has of GPUs.
func addUse(to *streams.Batch, use *gpus.Use) {
	if use == nil {
		return
	}
	to.Value(series.RunGPUs, use.GPUs)
	if utilization := use.Mean(); utilization >= 0 {
		to.Value(series.RunGPUUtilization, utilization)
	}
	if use.Price >= 0 {
		to.Value(series.RunGPUPrice, use.Price)
	}
}

// LastStep returns how many steps the ranks have taken, as many as the first of them, and
// when the last one arrived.
func (r *Run) LastStep() (steps int64, at time.Time) {
	for _, rank := range r.Ranks {
		steps, at = max(steps, rank.Last.Steps), shared.Later(at, rank.Last.Stepped)
	}
	return steps, at
}

// Attempts returns how many attempts of the run were seen.
func (r *Run) Attempts() int64 {
	attempts := r.launched.Attempted + 1
	for _, rank := range r.Ranks {
		attempts = max(attempts, rank.attempt.Attempted)
	}
	return attempts
}

// Loops returns since when the run, or else one of its ranks, has begun LoopOf new
// attempts within a time; ok is false if none has.
func (r *Run) Loops(within time.Duration, now time.Time) (since time.Time, ok bool) {
	ofRanks := mlattr.Mapped(r.Ranks, func(rank *Rank) restarts { return rank.attempt.restarts })
	all := append([]restarts{r.launched.restarts}, ofRanks...)
	for i := range all {
		if first := all[i].first(); !first.IsZero() && now.Sub(first) <= within {
			return first, true
		}
	}
	return time.Time{}, false
}
