package mlmetricsconnector

import (
	"math"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/bound"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/change"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/checkpoints"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/pace"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/ranks"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/wallclock"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// rankState is the state of one rank, from the one that matters least for its
// run.
type rankState uint8

const (
	rankEnded rankState = iota
	rankUnknown
	// rankSilent is a rank that is stalled and whose run holds no GPU, has not held one
	// for long, or holds GPUs that were not read any more when it had stalled.
	rankSilent
	// rankFailed is a rank whose program has ended with an error.
	rankFailed
	rankRunning
	rankStalled
)

// runStates are the values of series.RunStateLabel for the state of a run.
var runStates = [...]string{
	rankEnded: mlattr.RunEnded, rankUnknown: mlattr.RunUnknown, rankSilent: mlattr.RunSilent,
	rankFailed:  mlattr.RunFailed,
	rankRunning: mlattr.RunRunning, rankStalled: mlattr.RunStalled,
}

// over reports whether the rank's program has come to its end.
func (s rankState) over() bool { return s == rankEnded || s == rankFailed }

// rankReport is what one rank shows about its run.
type rankReport struct {
	// known is false for a rank of which nothing is known yet.
	known bool
	// rank and host are its labels, empty if it has none. moved reports whether a
	// newer span of the same rank came from another host, or its run has it no
	// longer; missing whether it has stopped while the others go on.
	rank, host     string
	moved, missing bool
	state          rankState
	// since is when the rank was first seen, alive when its last span arrived,
	// and seen when its last data arrived.
	since, alive, seen time.Time
	// spent is its time since the previous emission.
	spent wallclock.Spent
	steps pace.StepTimes
	// number is the launcher's count of restarts, if numbered.
	restarts restarts
	number   int64
	numbered bool
	// attempts is the number of attempts that were seen.
	attempts int64
	clock    *runClock
	// failure is the class of the error with which a failed rank ended, and failed
	// the operation that failed, "" if unknown.
	failure, failed string

	// stepped is when its last step arrived, lastEnd the end of its last span by
	// its own clock and latest the phase of that span.
	stepped time.Time
	lastEnd int64
	latest  wallclock.Phase
	// patience is how long it may be silent, pause its longest checkpoint or
	// validation.
	patience, pause time.Duration
	// world is the number of the ranks of its run, 0 if unknown, and some reports
	// whether only some of them may send. tokens is the number of tokens of a step
	// of all of them, 0 if unknown.
	world  int
	some   bool
	tokens float64
	// load is how long it loads data in a step, if timed.
	load    pace.Typical
	timed   bool
	without exclusions
	// saved is when its last checkpoint arrived, missed the one that is late, and
	// saves reports whether it has a usual interval.
	saved       time.Time
	missed      checkpoints.Overdue
	late, saves bool
}

// runVerdict is what is concluded about a run from its ranks. It is not safe for
// concurrent use.
type runVerdict struct {
	// ranks are those of this emission, seen is when the newest data of any of
	// them arrived, and shown the same at the previous emission: steps are attributed
	// one emission late.
	ranks       []rankReport
	seen, shown time.Time

	window wallclock.Window
	// state is the state at the previous emission, since its beginning.
	state rankState
	since time.Time
	// number is the launcher's newest count of restarts, restarts those that it
	// counted, on whatever host.
	number   int64
	numbered bool
	restarts restarts
	// counted is the number of restarts that the launcher counted.
	counted int64
	// longer is since when steps take clearly longer than usual, which is what was
	// usual then; slow and looping are the onsets of problems. They are zero
	// without them.
	longer, slow, looping time.Time
	usual                 float64
	// slowReported reports whether the slow run is a problem.
	slowReported bool
	// throttled is the GPU whose lower clocks are reported.
	throttled gpus.Key
	// telemetry is the fraction of the ranks that send. some reports whether only
	// some of them may.
	telemetry float64
	some      bool
}

// runFacts is what an emission knows of a run besides its ranks.
type runFacts struct {
	timeouts
	// held reports whether the run holds GPU memory, heldSince since when, zero if
	// unknown. released reports whether it did and holds none now: it was stopped as
	// a whole, and a span of it that arrives late does not show that a rank goes on.
	held, released bool
	heldSince      time.Time
	// use is what it has of GPUs, if inUse, gpus has each of them, and hosts the
	// hosts whose GPUs are read.
	use   gpus.Use
	inUse bool
	gpus  []gpus.State
	hosts map[string]bool
	// silent is when its GPUs were last read, if the hosts of all of them are silent, else
	// zero. silentHost is the first host of its GPUs that is silent, or "", and heard when
	// that has last sent anything.
	silent, heard time.Time
	silentHost    string
	// stuck are the ranks that the others wait for, as NCCL says.
	stuck []ranks.Stuck
	// withheld reports whether nothing is concluded from silence.
	withheld bool
}

// asOf is the time until which something is known of the run's GPUs.
func (f *runFacts) asOf(now time.Time) time.Time {
	if f.silent.IsZero() {
		return now
	}
	return f.silent
}

// begin forgets the ranks of the previous emission.
func (v *runVerdict) begin() {
	v.ranks, v.seen, v.shown, v.some = v.ranks[:0], time.Time{}, v.seen, false
}

// verdict returns what the last emission concluded about a run, or nil.
func (c *clocks) verdict(run streams.RunKey) *runVerdict { return c.runs[run] }

// add adds a rank.
func (v *runVerdict) add(rank *rankReport, now time.Time) {
	if rank.seen.After(v.seen) {
		v.seen = rank.seen
	}
	v.some = v.some || rank.some
	if rank.numbered {
		if v.numbered && rank.number > v.number {
			v.restarts.add(rank.number-v.number, now)
			v.counted += min(rank.number-v.number, maxAttemptGap)
		}
		v.number, v.numbered = max(v.number, rank.number), true
	}
	v.ranks = append(v.ranks, *rank)
}

// conclude adds the updates of the run's series, and reports its problems.
func (v *runVerdict) conclude(e *emission, facts *runFacts) {
	v.move()
	for i := range v.ranks {
		if rank := &v.ranks[i]; !rank.moved {
			v.window.Add(&rank.spent, e.now)
		}
	}
	v.concludeMissing(e, facts)
	v.settle(facts, e.now)
	for state, name := range runStates {
		e.choose(series.RunState, name, v.state == rankState(state)) // #nosec G115 -- one of six
	}
	e.at(series.RunStateTimestamp, v.since)
	e.at(series.RunLastData, v.seen)
	v.concludeHang(e, facts)
	v.concludeSilent(e, facts)
	v.concludeFailed(e)
	utilization := -1.0
	if facts.inUse {
		utilization = facts.use.Utilization
	}
	v.concludeTime(e, utilization)
	v.concludeSteps(e, facts)
	v.concludeCheckpoints(e)
	if facts.silent.IsZero() {
		v.concludeThrottle(e, facts)
		v.concludeMemory(e, facts)
	}
	v.concludeRestarts(e)
}

// move marks ranks that run elsewhere now, as after a restart on another host: a
// rank is where its newest span came from.
func (v *runVerdict) move() {
	newest := make(map[string]time.Time, len(v.ranks))
	for i := range v.ranks {
		if rank := &v.ranks[i]; rank.alive.After(newest[rank.rank]) {
			newest[rank.rank] = rank.alive
		}
	}
	for i := range v.ranks {
		rank := &v.ranks[i]
		rank.moved = rank.rank != "" && rank.alive.Before(newest[rank.rank])
	}
}

// settle determines the state of the run, the worst of its ranks. A rank is not
// stalled before its run has held GPUs for the rank's patience: after a preemption, it
// may load a checkpoint.
func (v *runVerdict) settle(facts *runFacts, now time.Time) {
	state, first := rankEnded, v.since.IsZero()
	var since, alive time.Time
	for i := range v.ranks {
		rank := &v.ranks[i]
		if rank.moved || rank.missing {
			continue
		}
		if rank.state == rankStalled && (!facts.held || now.Sub(facts.heldSince) <= rank.patience) {
			rank.state = rankSilent
		}
		if rank.state >= state {
			if rank.state > state {
				alive = time.Time{}
			}
			state = rank.state
			if rank.alive.After(alive) {
				alive = rank.alive
			}
		}
		if since.IsZero() || rank.since.Before(since) {
			since = rank.since
		}
	}
	if facts.withheld && !first && !v.state.over() && (state == rankStalled || state == rankSilent) {
		state = v.state
	}
	switch {
	case state == rankStalled, state == rankSilent, state.over():
		v.since = alive
	case first:
		v.since = since
	case state != v.state:
		v.since = now
	}
	v.state = state
}

// concludeTime adds the fractions of the run's time and what bounds it.
func (v *runVerdict) concludeTime(e *emission, utilization float64) {
	ratios, ok := v.window.Ratios(e.now)
	if !ok {
		return
	}
	for state, ratio := range ratios {
		if ratio >= 0 {
			e.value(series.RunTimeRatio, ratio, wallclock.State(state).String()) // #nosec G115 -- the index of a state
		}
	}
	of := func(state wallclock.State) float64 { return max(ratios[state], 0) }
	e.value(series.RunGoodput, of(wallclock.Productive))
	is := bound.Of(bound.Evidence{
		Checkpoint: of(wallclock.Checkpointing) + of(wallclock.Restoring),
		DataLoad:   of(wallclock.LoadingData), Productive: of(wallclock.Productive), Utilization: utilization,
	})
	for _, each := range bound.All {
		e.choose(series.RunBound, string(each), each == is)
	}
}

// concludeRestarts adds a restart loop.
func (v *runVerdict) concludeRestarts(e *emission) {
	since, loops := v.restarts.loop(e.now)
	for i := range v.ranks {
		if !loops {
			since, loops = v.ranks[i].restarts.loop(e.now)
		}
	}
	if !loops || v.state.over() {
		v.looping = time.Time{}
		return
	}
	if v.looping.IsZero() {
		v.looping = since
	}
	e.problem(problem.Problem{
		Kind: mlattr.ProblemRestartLoop, Onset: v.looping, GPUs: e.gpus, Telemetry: math.NaN(),
		Value: loopOf, Usual: math.NaN(), Unit: "{attempt}", Window: loopTime,
	})
}

// attempts returns how many attempts of the run were seen.
func (v *runVerdict) attempts() int64 {
	attempts := v.counted + 1
	for i := range v.ranks {
		attempts = max(attempts, v.ranks[i].attempts)
	}
	return attempts
}

// conclude adds the verdicts on all runs and GPUs to the store and the board, and
// removes those of runs without ranks.
func (c *clocks) conclude(store *streams.Store, board *problem.Board, facts *gpuFacts, now time.Time) (over streams.Overflowed) {
	// owners has the program of each run, preferably one that trains, and named that of
	// a service.
	owners, trains, named := store.Owners(), make(map[string]bool, len(c.runs)), make(map[gpus.Run]streams.Resource, len(c.runs))
	for key, run := range c.runs {
		if len(run.ranks) == 0 {
			delete(c.runs, key)
			continue
		}
		if !trains[key.ID] || key.Resource.Compare(owners[key.ID]) < 0 {
			owners[key.ID] = key.Resource
		}
		of := runOf(key)
		trains[key.ID], named[of] = true, key.Resource
		use, holds := facts.uses[of]
		e := emission{source: streams.Source{Resource: key.Resource, Run: streams.Run{ID: key.ID}}, now: now, shown: run.shown, gpus: use.GPUs, board: board}
		e.interval = time.Duration(run.stepTimes().Recent * float64(time.Second))
		e.addUse(use, holds)
		held := facts.holdOf(of)
		if !held.silent.IsZero() {
			e.gpus = float64(len(facts.states[of]))
		}
		run.conclude(&e, &runFacts{
			timeouts: c.timeouts, held: held.now, heldSince: held.since, released: held.released,
			use: use, inUse: holds, gpus: facts.states[of], hosts: facts.hosts,
			stuck: facts.stuck[key.ID], silent: held.silent, silentHost: facts.holding[of].Host, heard: facts.heard[facts.holding[of].Host],
			withheld: c.withheld,
		})
		c.hosts.Compare(key.Resource.Service+"/"+key.ID, run.loads(), c.stall, now)
		if c.history != nil {
			c.history.Attempts(change.Subject{Resource: key.Resource, Run: key.ID}, run.attempts(), now)
		}
		over.Add(store.Apply(e.updates, run.seen))
	}
	ownerOf := func(run, service string) streams.Resource {
		if owner, known := named[gpus.Run{ID: run, Service: service}]; known {
			return owner
		}
		if owner, known := owners[run]; known {
			return owner
		}
		return streams.Resource{Service: service}
	}
	for run, use := range facts.uses {
		if !trains[run.ID] {
			e := emission{source: streams.Source{Resource: ownerOf(run.ID, run.Service), Run: streams.Run{ID: run.ID}}, now: now}
			e.addUse(use, true)
			over.Add(store.Apply(e.updates, now))
		}
	}
	over.Add(c.concludeGPUs(store, board, facts, ownerOf, now))
	over.Add(c.concludeSilence(store, board, facts, ownerOf, now))
	c.concludeHosts(board, now)
	return over
}

// concludeGPUs adds the idle time and the prices of GPUs to the store, and their problems to the
// board. ownerOf returns the program of a run.
func (c *clocks) concludeGPUs(store *streams.Store, board *problem.Board, facts *gpuFacts, ownerOf func(run, service string) streams.Resource, now time.Time) (over streams.Overflowed) {
	for key, idle := range facts.idle {
		e := emission{source: streams.Source{Run: streams.Run{Host: key.Host}}, now: now}
		e.value(series.GPUIdleTime, idle.For.Seconds(), key.ID)
		if c.idle > 0 && idle.For >= c.idle {
			board.Report(problem.Problem{
				Kind: mlattr.ProblemHeldIdle, Onset: idle.Since, GPUs: 1, Telemetry: math.NaN(),
				Subject: problem.Subject{Host: key.Host, GPU: key.ID}, Evident: idle.Seen, Holder: idle.Holder,
				Value: idle.For.Seconds(), Usual: math.NaN(), Unit: "s",
			})
		}
		over.Add(store.Apply(e.updates, now))
	}
	for key, price := range facts.prices {
		e := emission{source: streams.Source{Run: streams.Run{Host: key.Host}}, now: now}
		e.value(series.GPUPrice, price, key.ID)
		over.Add(store.Apply(e.updates, now))
	}
	for key, failure := range facts.failed {
		runs := slices.DeleteFunc(slices.Clone(failure.Held), func(v gpus.Victim) bool { return v.Run == "" })
		if len(runs) == 0 {
			runs = append(failure.Held, gpus.Victim{})[:1]
		}
		for _, held := range runs {
			board.Report(problem.Problem{
				Kind: mlattr.ProblemGPUFailed, Onset: failure.Since, Evident: failure.Seen, GPUs: 1,
				Subject: problem.Subject{Resource: ownerOf(held.Run, held.Owner.Service), Run: held.Run, Host: key.Host, GPU: key.ID},
				Holder:  held.Owner, Value: math.NaN(), Usual: math.NaN(), Telemetry: math.NaN(),
			})
		}
	}
	return over
}

// emission collects updates of one source for one emission.
type emission struct {
	source  streams.Source
	now     time.Time
	updates []streams.Update

	// board has the problems of the source. shown is when the newest data arrived that
	// they are concluded from, interval the usual time of a step, and gpus what the
	// source has of GPUs.
	board    *problem.Board
	shown    time.Time
	interval time.Duration
	gpus     float64
}

// value adds the value of a series.
func (e *emission) value(id series.ID, value float64, labels ...string) {
	e.updates = append(e.updates, updateOf(&e.source, id, value, e.now, labels...))
}

// at adds a time.
func (e *emission) at(id series.ID, at time.Time, labels ...string) {
	e.value(id, float64(at.UnixNano())/1e9, labels...)
}

// choose adds 1 for the current value of a label, and 0 for another.
func (e *emission) choose(id series.ID, label string, is bool) {
	value := 0.0
	if is {
		value = 1
	}
	e.value(id, value, label)
}

// problem reports a problem of the source.
func (e *emission) problem(p problem.Problem) {
	p.Subject = problem.Subject{Resource: e.source.Resource, Run: e.source.Run.ID}
	if kind, _ := mlattr.ProblemNamed(p.Kind); !kind.FromSilence && p.Evident.IsZero() {
		p.Evident, p.Interval = e.shown, e.interval
	}
	e.board.Report(p)
}

// addUse adds what a run has of GPUs.
func (e *emission) addUse(use gpus.Use, holds bool) {
	if !holds {
		return
	}
	e.value(series.RunGPUs, use.GPUs)
	if use.Utilization >= 0 {
		e.value(series.RunGPUUtilization, use.Utilization)
	}
	if use.Price >= 0 {
		e.value(series.RunGPUPrice, use.Price)
	}
}
