package mlmetricsconnector

import (
	"slices"
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/change"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/checkpoints"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/ending"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/pace"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/ranks"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/wallclock"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

const (
	// maxClocks limits the ranks whose run time is attributed.
	maxClocks = 8192
	// maxSetBack is how long a client may send only late spans before its clock
	// is considered set back.
	maxSetBack = 5 * time.Minute
	// maxSteps limits the steps of each rank that wait for an emission.
	maxSteps = 1024
	// warmupSteps are the steps of an attempt after a restart that are not compared
	// with others: kernels are compiled and caches filled again.
	warmupSteps = 10
	// maxPause is the longest pause that a run may make again.
	maxPause = 30 * time.Minute
)

// phaseOther is the ml.phase of the time of a step without a span.
const phaseOther = "other"

// clocks attributes the time of each rank of each run. It is safe for
// concurrent use.
type clocks struct {
	timeouts

	mu    sync.Mutex
	byRun map[clockKey]*runClock
	// runs has what is concluded about runs. Only emissions use it.
	runs map[streams.RunKey]*runVerdict
	// hosts compares the hosts of runs. Only emissions use it.
	hosts ranks.Hosts
	// history gets the attempts of runs. It is nil if nobody wants to know of
	// changes. Only emissions use it.
	history *change.History
	// withheld reports whether nothing is concluded from silence. Only emissions use it.
	withheld bool
}

// timeouts are those of the configuration.
type timeouts struct {
	// firstStep is Config.FirstStepTimeout, stall Config.StallTimeout, and idle
	// Config.IdleTimeout.
	firstStep, stall, idle time.Duration
}

type clockKey struct {
	resource streams.Resource
	run      streams.Run
}

// runClock is the clock of one rank.
type runClock struct {
	mu sync.Mutex
	wallclock.Clock
	attempts attempts
	// begun is the number of attempts that were seen.
	begun    int64
	restarts restarts
	rework   rework
	totals   wallclock.Totals
	// spent is the time since the previous emission, pace the newest steps.
	spent  wallclock.Spent
	pace   pace.Steps
	phases pace.Phases
	timing string
	// warmup is the number of steps until steps are compared again, without what
	// was left out.
	warmup  int
	without exclusions
	// before is the arrival of the latest span before the latest silence that was
	// longer than the rank's patience, tookGPUs when its run took GPUs after it.
	before, tookGPUs time.Time
	// onDemand is that of the program.
	onDemand bool
	// starts reports whether the attempt has taken no step, after one that has;
	// began is when it began.
	starts bool
	began  time.Time
	// saves are the checkpoints, steps is the number of ends of steps and stepped
	// the arrival of the latest one.
	saves   checkpoints.Saves
	steps   int64
	stepped time.Time
	// world, some and tokens are those of the program.
	world  int64
	some   bool
	tokens float64
	// moved is when the rank's own metrics last changed, zero if they never did or
	// it has none, and between is how long they may stay the same.
	moved   time.Time
	between time.Duration
	// spanStepped is the arrival of the latest span that ended a step.
	spanStepped time.Time
	// pause is the longest checkpoint or validation of the attempt: a span arrives
	// at its end. latest is the phase of the latest span.
	pause  time.Duration
	latest wallclock.Phase
	// forgotten reports whether the clock was removed; holders must look up
	// another one.
	forgotten bool
	// arrived is the arrival of the latest span, by the collector's clock.
	arrived time.Time
	// since is when the rank was first seen, by a span or its metrics, and
	// heard when its metrics were last seen.
	since, heard time.Time
	// settled is the value of Newest at the previous emission. Spans of
	// parallel work have all arrived since.
	settled int64
	// accepted is the arrival of the latest span that was not late.
	accepted time.Time
	// waited is the end of the silence that was attributed to unknown.
	waited time.Time
	// worked is the end of the latest span, ended that of the latest span of a
	// whole training, or 0.
	worked, ended int64
	// ending is what the spans say about the end of the program.
	ending ending.Ending
}

// exclusions is what was left out of the comparison of steps.
type exclusions struct{ checkpoints, validations, demand, restarts bool }

func newClocks(cfg *Config) *clocks {
	return &clocks{
		timeouts: timeouts{firstStep: cfg.FirstStepTimeout, stall: cfg.StallTimeout, idle: cfg.IdleTimeout},
		byRun:    make(map[clockKey]*runClock),
		runs:     make(map[streams.RunKey]*runVerdict),
	}
}

// observe adds the times of spans that arrived at now. It counts the spans of
// ranks beyond the limit.
func (c *clocks) observe(store *streams.Store, units []unit, now time.Time) (over streams.Overflowed) {
	// The spans of a process are adjacent, so its clock is looked up once.
	var source *streams.Source
	var key clockKey
	var clock *runClock
	for i := range units {
		u := &units[i]
		trains := u.works() || u.activity.endsRun
		// The run _OTHER is many runs that ml_guard has not admitted.
		if u.source.Run.ID == "" || u.source.Run.ID == mlattr.Other || !trains && !u.activity.root {
			continue
		}
		if u.source != source {
			source, key = u.source, clockKey{u.source.Resource, u.source.Run}
			clock = c.known(key)
		}
		if !trains {
			if clock != nil {
				clock.root(u)
			}
			continue
		}
		if clock == nil {
			clock = c.of(key)
		}
		var updates []streams.Update
		for clock != nil {
			var live bool
			if updates, live = clock.observe(key, u, now); live {
				break
			}
			clock = c.of(key)
		}
		if clock == nil {
			over.Runs++
		} else if len(updates) > 0 {
			over.Add(store.Apply(updates, now))
		}
	}
	return over
}

// known returns the clock of a rank, or nil if there is none.
func (c *clocks) known(key clockKey) *runClock {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.byRun[key]
}

// of returns the clock of a rank, or nil beyond the limit.
func (c *clocks) of(key clockKey) *runClock {
	c.mu.Lock()
	defer c.mu.Unlock()
	clock, known := c.byRun[key]
	if known {
		return clock
	}
	if len(c.byRun) >= maxClocks {
		return nil
	}
	clock = &runClock{Clock: wallclock.Clock{Least: c.stall.Nanoseconds()}}
	// Clone, so that the names do not keep the request in memory.
	c.byRun[clockKey{key.resource.Clone(), key.run.Clone()}] = clock
	return clock
}

// observe adds a span. It returns updates if so many steps have ended that they
// cannot wait for the next emission, and if an attempt begins. live is false
// for a clock that was removed, which adds nothing.
func (c *runClock) observe(key clockKey, u *unit, now time.Time) (updates []streams.Update, live bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.forgotten {
		return nil, false
	}
	shows := &u.activity
	begun, old := c.attempts.see(shows.attemptOf(u), c.worked, c.ended)
	updates = c.begin(key, begun, now)
	if old {
		return updates, true
	}
	c.timing = u.timing
	c.describe(&shows.program)
	if c.since.IsZero() {
		c.since = now
	}
	c.arrive(now)
	c.ending.See(u.ending(), c.worked)
	if shows.endsRun {
		c.ended = max(c.ended, shows.span.End)
		return updates, true
	}
	c.note(u, now)
	c.worked = max(c.worked, shows.span.End)
	rises := shows.step > c.rework.newest && c.rework.newest > 0
	again := c.rework.see(shows.step)
	if shows.timed {
		span := shows.span
		if again && span.State == wallclock.Productive {
			span.State = wallclock.Rework
		}
		c.observeSpan(span, rises, now)
	}
	if u.endsStep {
		c.EndStep(shows.span.End, u.is&isOptimizer == 0, &c.totals)
	}
	if len(c.totals.Steps) >= maxSteps {
		updates = append(updates, c.take(key.source(), now)...)
	}
	return updates, true
}

// root adds a span that has no parent and is no work.
func (c *runClock) root(u *unit) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ending.See(u.ending(), c.worked)
}

// works reports whether a span is work of a training.
func (u *unit) works() bool { return u.activity.timed || u.endsStep }

// ending returns what a span says about the end of its program.
func (u *unit) ending() *ending.Span {
	a := &u.activity
	return &ending.Span{
		Trace: u.trace, Start: a.span.Start, End: a.span.End, Root: a.root, Work: u.works(), Train: a.endsRun,
		Failure: u.errorType, Operation: u.operation,
	}
}

// begin begins so many attempts, and returns the update that counts them. The first
// one begins with the first that is seen of the rank.
func (c *runClock) begin(key clockKey, begun int64, now time.Time) []streams.Update {
	if c.arrived.IsZero() {
		begun = 1
	} else if begun > 0 {
		c.restart()
		c.starts, c.began = c.steps > 0, now
		c.restarts.add(begun, now)
	}
	if begun == 0 {
		return nil
	}
	c.begun += begun
	c.saves.Restart(now, c.steps)
	return []streams.Update{{Source: key.source(), Series: series.RunAttempts, Count: begun}}
}

// describe keeps what a resource reveals about the rank's program.
func (c *runClock) describe(p *program) {
	c.Idle, c.NoStartup, c.Born = p.idles, p.noStartup, p.born
	c.onDemand, c.some = p.onDemand, p.some
	if p.world > 0 {
		c.world = p.world
	}
	if p.tokens > 0 {
		c.tokens = p.tokens
	}
}

// arrive records that something of the rank's work arrived.
func (c *runClock) arrive(now time.Time) {
	if !now.After(c.arrived) {
		return
	}
	if c.silent(now) {
		c.before = c.arrived
	}
	c.arrived, c.waited = now, now
}

// note keeps what the detectors need of a span.
func (c *runClock) note(u *unit, now time.Time) {
	span := &u.activity.span
	if u.endsStep {
		c.steps++
		c.stepped, c.spanStepped, c.starts = now, now, false
	}
	if !u.activity.timed {
		return
	}
	if span.End >= c.worked {
		c.latest = span.Phase
	}
	switch span.State {
	case wallclock.Checkpointing:
		c.saves.Save(now, c.steps)
	case wallclock.Validating:
		c.saves.Validate(c.steps)
	case wallclock.Restoring:
	default:
		return
	}
	c.pause = max(c.pause, min(time.Duration(span.End-span.Start), maxPause))
}

// observeSpan adds a span. The client's clock was set back if a late span has a
// higher step number than all before, or if only late spans arrived for
// maxSetBack; time is then attributed from there.
func (c *runClock) observeSpan(span wallclock.Span, rises bool, now time.Time) {
	if c.Observe(span, &c.totals) {
		c.accepted = now
		return
	}
	if span.Start <= 0 || span.End < span.Start || !rises && now.Sub(c.accepted) <= maxSetBack {
		return
	}
	c.SetBack(&c.totals)
	c.settled, c.accepted, c.worked = 0, now, span.End
	c.Observe(span, &c.totals)
}

// restart begins a new attempt.
func (c *runClock) restart() {
	c.Restart(c.over(), &c.totals)
	c.settled, c.ended, c.ending = 0, 0, ending.Ending{}
	c.rework.restart()
	c.warmup, c.pause = warmupSteps, 0
}

// expect creates clocks for ranks that hold GPUs and send metrics, so that a
// run that hangs before its first span has a state.
func (c *clocks) expect(metrics *seenMetrics, now time.Time) {
	for key, seen := range metrics.waiting(now) {
		if clock := c.of(key); clock != nil {
			clock.expect(seen)
		}
	}
}

// expect records that metrics of the rank arrived.
func (c *runClock) expect(seen firstAndLast) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.since.IsZero() {
		c.since = seen.first
	}
	c.heard = seen.last
}

// advance attributes the elapsed time, adds it and what is concluded about each
// run to the store and the board, and removes ranks without data for longer than expiration
// whose run holds no GPU; 0 removes none.
func (c *clocks) advance(store *streams.Store, board *problem.Board, facts *gpuFacts, expiration time.Duration, now time.Time, last bool) (over streams.Overflowed) {
	standings := make(map[streams.RunKey]streams.Standing)
	for _, run := range c.runs {
		run.begin()
	}
	for key, clock := range c.all(expiration, facts.holds, now) {
		run := streams.RunKey{Resource: key.resource, ID: key.run.ID}
		held := facts.holdOf(runOf(run))
		// Of a host that is not read, nobody knows what its processes hold.
		held.released = held.released && facts.hosts[key.run.Host]
		updates, rank := clock.advance(key, c.timeouts, held, now, last)
		// Applied as of the rank's latest data, so that its time does not keep
		// its series alive.
		over.Add(store.Apply(updates, rank.seen))
		standings[run] = max(standings[run], standing(rank.state, held.now))
		if !rank.known {
			continue
		}
		if c.runs[run] == nil {
			c.runs[run] = &runVerdict{}
		}
		c.runs[run].add(&rank, now)
	}
	store.Judge(standings, facts.holds)
	over.Add(c.conclude(store, board, facts, now))
	return over
}

// standing returns what the state of one rank means for its run when a run must
// be replaced.
func standing(state rankState, held bool) streams.Standing {
	switch {
	case state.over():
		return streams.Ended
	case state == rankStalled && held:
		return streams.Hung
	case state == rankStalled, state == rankSilent:
		return streams.Silent
	case state == rankRunning, held:
		return streams.Running
	default:
		return streams.NotJudged
	}
}

// forgetRuns removes the clocks of replaced runs.
func (c *clocks) forgetRuns(evicted streams.Evicted) {
	if len(evicted) == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, clock := range c.byRun {
		at, is := evicted[streams.RunKey{Resource: key.resource, ID: key.run.ID}]
		if is && clock.forget(at) {
			delete(c.byRun, key)
		}
	}
}

// all returns the live clocks, so that no lock is held while they advance.
func (c *clocks) all(expiration time.Duration, holds func(run string) bool, now time.Time) map[clockKey]*runClock {
	c.mu.Lock()
	defer c.mu.Unlock()
	live := make(map[clockKey]*runClock, len(c.byRun))
	for key, clock := range c.byRun {
		if expiration > 0 && !holds(key.run.ID) && clock.forget(now.Add(-expiration)) {
			delete(c.byRun, key)
			continue
		}
		live[key] = clock
	}
	return live
}

// services returns those that train a run with an id, else its owner.
func (c *clocks) services(owners map[string]streams.Resource) map[string][]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	services := make(map[string][]string)
	for key := range c.byRun {
		if id, service := key.run.ID, key.resource.Service; !slices.Contains(services[id], service) {
			services[id] = append(services[id], service)
		}
	}
	for id, owner := range owners {
		if services[id] == nil {
			services[id] = []string{owner.Service}
		}
	}
	return services
}

// forget reports whether nothing has arrived after since, and if so removes the
// clock. A new clock without data stays.
func (c *runClock) forget(since time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	newest := c.lastHeard()
	c.forgotten = !newest.IsZero() && !newest.After(since)
	return c.forgotten
}

// lastHeard returns the arrival of the rank's latest span, or of its metrics if
// there is no span.
func (c *runClock) lastHeard() time.Time {
	if c.arrived.IsZero() {
		return c.heard
	}
	return c.arrived
}

// advance returns the updates of the rank's series, and what the rank shows about
// its run.
func (c *runClock) advance(key clockKey, limits timeouts, held hold, now time.Time, last bool) (updates []streams.Update, rank rankReport) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lastHeard().IsZero() {
		return nil, rankReport{seen: now} // its first span is about to be added
	}
	until := c.settled
	c.settled = c.Newest()
	if last {
		until = c.settled
	}
	c.Advance(until, &c.totals)
	if !c.before.IsZero() && held.since.After(c.before) && !held.since.Equal(c.tookGPUs) {
		// It was preempted, as far as its client lets one know.
		c.tookGPUs, c.warmup = held.since, warmupSteps
	}
	state := c.stateAsOf(limits, held, now)
	if state.over() && c.ending.Closed(c.worked) && c.silent(now) {
		c.ended = max(c.ended, c.worked) // later work is another attempt
	}
	if last || until == c.settled && (state.over() || c.quiet(now)) {
		c.Finish(&c.totals)
	}
	if (state == rankStalled || state == rankSilent) && !c.arrived.IsZero() && now.After(c.waited) {
		c.Wait(now.Sub(c.waited).Nanoseconds(), &c.totals)
		c.waited = now
	}
	updates = c.take(key.source(), now)
	rank = c.report(state, now)
	rank.rank, rank.host = key.run.Rank, key.run.Host
	return updates, rank
}

// report returns what the rank shows about its run since the previous call.
func (c *runClock) report(state rankState, now time.Time) rankReport {
	rank := rankReport{
		known: true, state: state, since: c.since, alive: c.arrived, seen: c.lastHeard(),
		spent: c.spent, steps: c.pace.Times(), clock: c,
		restarts: c.restarts, attempts: c.begun, numbered: c.attempts.numbered, number: c.attempts.number,
		stepped: c.stepped, patience: c.patience(), pause: c.pause,
		latest: c.latest, world: int(c.world), some: c.some, tokens: c.tokens, without: c.without,
		saved: c.saves.Last(), lastEnd: c.worked,
	}
	if state == rankFailed {
		rank.failure, rank.failed, _ = c.ending.Failed(c.worked, c.ended)
	}
	rank.load, rank.timed = c.phases.Typical(int(wallclock.DataLoad))
	rank.missed, rank.late, rank.saves = c.saves.Overdue(now, c.steps)
	if rank.alive.IsZero() {
		rank.alive = c.since
	}
	c.spent = wallclock.Spent{}
	return rank
}

// source returns the source of the clock's updates.
func (k *clockKey) source() *streams.Source {
	return &streams.Source{Resource: k.resource, Run: k.run}
}

// updateOf returns an update of a series of the run.
func updateOf(source *streams.Source, id series.ID, value float64, now time.Time, labels ...string) streams.Update {
	u := streams.Update{Source: source, Series: id, Value: value, At: now.UnixNano()}
	copy(u.Labels[:], labels)
	return u
}

// take returns the updates of the run's time and steps, and clears them.
func (c *runClock) take(source *streams.Source, now time.Time) (updates []streams.Update) {
	add := func(id series.ID, value float64, labels ...string) {
		updates = append(updates, updateOf(source, id, value, now, labels...))
	}
	c.spent.Add(&c.totals.States)
	for used, nanoseconds := range c.totals.States {
		if nanoseconds > 0 {
			add(series.RunTime, float64(nanoseconds)/1e9, wallclock.State(used).String())
		}
	}
	for i := range c.totals.Steps {
		step := &c.totals.Steps[i]
		c.compare(step)
		for phase, nanoseconds := range step.Phases {
			if nanoseconds > 0 {
				add(series.StepDuration, float64(nanoseconds)/1e9, wallclock.Phase(phase).String(), c.timing)
			}
		}
		add(series.StepDuration, float64(step.Other)/1e9, phaseOther, c.timing)
		add(series.StepDuration, float64(step.Whole)/1e9, series.WholeStep, c.timing)
	}
	c.totals = wallclock.Totals{}
	return updates
}

// compare adds a step to those that are compared, without the time of checkpoints
// and validations in it, and without the time in which a program that works on
// demand has nothing to do.
func (c *runClock) compare(step *wallclock.Step) {
	if c.warmup > 0 && c.pace.Known() {
		c.warmup--
		c.without.restarts = true
		return
	}
	saved, validated := step.Phases[wallclock.Checkpoint], step.Phases[wallclock.Validation]
	whole := step.Whole - saved - validated
	c.without.checkpoints = c.without.checkpoints || saved > 0
	c.without.validations = c.without.validations || validated > 0
	var phases [len(step.Phases) + 1]int64
	copy(phases[:], step.Phases[:])
	phases[len(step.Phases)] = step.Other
	phases[wallclock.Checkpoint], phases[wallclock.Validation] = 0, 0
	if c.onDemand {
		c.without.demand = true
		whole -= step.Other
		phases[len(step.Phases)] = 0
	}
	if whole > 0 {
		c.pace.Add(time.Duration(whole))
		c.phases.Add(phases[:], whole)
	}
}

// stateAsOf returns the state of the rank. If its run's GPUs are not read any more, it
// is stalled only if it was when they were last read: nobody knows what came after.
func (c *runClock) stateAsOf(limits timeouts, held hold, now time.Time) rankState {
	state := c.state(limits, held, now)
	if held.silent.IsZero() || state.over() {
		return state
	}
	state = c.state(limits, held, held.silent)
	if c.silent(now) && (state == rankRunning || state == rankUnknown) {
		return rankSilent
	}
	return state
}

// state returns the state of the rank. Silence is measured by the collector's
// clock, so that a wrong clock of a client stalls nothing. Before the first step of
// an attempt, and after the run has taken GPUs again, the first step counts.
func (c *runClock) state(limits timeouts, held hold, now time.Time) rankState {
	again := held.again.After(c.arrived)
	switch {
	case c.over(), c.left(held, now):
		if _, _, failed := c.ending.Failed(c.worked, c.ended); failed {
			return rankFailed
		}
		return rankEnded
	case !c.Stepped() && c.moved.IsZero() || c.starts && held.now || again:
		begun := c.since
		for _, at := range [...]time.Time{c.began, held.again} {
			if at.After(begun) {
				begun = at
			}
		}
		overdue := limits.firstStep > 0 && now.Sub(begun) > limits.firstStep
		if held.now && overdue && now.Sub(c.arrived) > limits.stall {
			return rankStalled
		}
		return rankUnknown
	case c.silent(now):
		return rankStalled
	case c.starts:
		return rankUnknown
	default:
		return rankRunning
	}
}

// silent reports whether nothing has arrived for longer than the rank's patience.
func (c *runClock) silent(now time.Time) bool {
	return now.Sub(c.arrived) > c.patience()
}

// patience returns how long nothing may arrive of a rank that works. Without spans
// of steps its metrics decide, which put many steps together.
func (c *runClock) patience() time.Duration {
	patience := time.Duration(c.Patience())
	if c.byMetrics() {
		patience = max(patience, c.between)
	}
	return patience
}

// quiet reports whether nothing has arrived for longer than a typical step and
// for a fifth of the stall timeout, so that no other optimizer of the latest step is expected.
func (c *runClock) quiet(now time.Time) bool {
	return now.Sub(c.arrived) > c.patience()/5
}

// over reports whether the client has ended the training. Later work belongs to
// a new attempt.
func (c *runClock) over() bool { return c.ended > 0 && c.ended >= c.worked }

// left reports whether the rank's program has come to its end without a span of the
// whole training: a root around all its work has ended, or it has released its GPUs, or
// its last span failed, and nothing follows.
func (c *runClock) left(held hold, now time.Time) bool {
	switch {
	case held.now || c.onDemand || c.worked == 0:
		return false
	case c.ending.Closed(c.worked):
		return c.quiet(now)
	}
	_, _, failed := c.ending.Failed(c.worked, c.ended)
	return (failed || held.released) && c.silent(now)
}
