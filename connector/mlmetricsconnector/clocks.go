package mlmetricsconnector

import (
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/wallclock"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

const (
	// maxClocks bounds the processes of runs whose time is divided.
	maxClocks = 8192
	// maxSetBack is for how long a client may send only what is too late.
	maxSetBack = 5 * time.Minute
	// maxSteps bounds the steps of each that wait for an emission.
	maxSteps = 1024
	// quietBeforeStep is for how long a run that is overdue must have sent no span
	// of training to be stalled before its first step.
	quietBeforeStep = 5 * time.Minute
)

// Values of series.RunStateLabel for the state of a run.
const (
	runRunning = "running"
	runStalled = "stalled"
	runEnded   = "ended"
	runUnknown = "unknown"
)

var runStates = [...]string{runRunning, runStalled, runEnded, runUnknown}

// phaseOther is the ml.phase of the time of a step without a span.
const phaseOther = "other"

// clocks divides the time of each process of each run. It is safe for
// concurrent use.
type clocks struct {
	// firstStep is Config.FirstStepTimeout.
	firstStep time.Duration

	mu    sync.Mutex
	byRun map[clockKey]*runClock
}

type clockKey struct {
	resource streams.Resource
	run      streams.Run
}

// runClock is the clock of one process of a run.
type runClock struct {
	mu sync.Mutex
	wallclock.Clock
	attempts attempts
	rework   rework
	totals   wallclock.Totals
	timing   string
	// forgotten is true once the clock is no longer among the live ones: who
	// still has it must look for another.
	forgotten bool
	// arrived is when the newest span came in, by the collector's clock.
	arrived time.Time
	// since is when the process was seen first, by a span or its metrics, and
	// heard when its metrics were seen last.
	since, heard time.Time
	// settled is what Newest was at the last emission. Spans that are sent
	// side by side have all come in since.
	settled int64
	// accepted is when the newest span came in that was not too late.
	accepted time.Time
	// waited is up to when silence was called unknown.
	waited time.Time
	// worked is the end of the newest span, ended that of the newest span of a
	// whole training, or 0.
	worked, ended int64
}

func newClocks(firstStep time.Duration) *clocks {
	return &clocks{firstStep: firstStep, byRun: make(map[clockKey]*runClock)}
}

// observe adds what spans say about time, all of which arrived at now. The
// runs of spans that it has no room for are counted.
func (c *clocks) observe(store *streams.Store, units []unit, now time.Time) (over streams.Overflowed) {
	// Spans of a process come together, so that its clock is looked for once.
	var key clockKey
	var clock *runClock
	for i := range units {
		u := &units[i]
		// The runs that ml_guard has not admitted are many in one.
		if u.source.Run.ID == "" || u.source.Run.ID == mlattr.Other || !u.activity.timed && !u.endsStep && !u.activity.endsRun {
			continue
		}
		if next := (clockKey{u.source.Resource, u.source.Run}); clock == nil || next != key {
			key, clock = next, c.of(next)
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

// of returns the clock of a process, or nil where there are too many.
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
	clock = &runClock{}
	// What was received must not be kept alive by its names.
	c.byRun[clockKey{key.resource.Clone(), key.run.Clone()}] = clock
	return clock
}

// observe adds a span. It returns what the run's series change by where so
// many steps have ended that they cannot wait for the next emission, and where
// an attempt begins. A clock that was forgotten is not live and adds nothing.
func (c *runClock) observe(key clockKey, u *unit, now time.Time) (updates []streams.Update, live bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.forgotten {
		return nil, false
	}
	shows := &u.activity
	begun, old := c.attempts.see(shows.attemptOf(u), c.worked, c.ended)
	if c.arrived.IsZero() {
		begun = 1
	} else if begun > 0 {
		c.restart()
	}
	if begun > 0 {
		updates = append(updates, streams.Update{Source: key.source(), Series: series.RunAttempts, Count: begun})
	}
	if old {
		return updates, true
	}
	c.timing = u.timing
	c.Idle, c.NoStartup, c.Born = shows.idles, shows.noStartup, shows.born
	if c.since.IsZero() {
		c.since = now
	}
	if now.After(c.arrived) {
		c.arrived, c.waited = now, now
	}
	if shows.endsRun {
		c.ended = max(c.ended, shows.span.End)
		return updates, true
	}
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

// observeSpan adds a span. Where one is too late whose step has a higher number
// than all before, or where for so long only such have come that are too late, the
// client's clock was set back, and the time is divided from there.
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

// restart begins another attempt.
func (c *runClock) restart() {
	c.Restart(c.over(), &c.totals)
	c.settled, c.ended = 0, 0
	c.rework.restart()
}

// expect notes the processes of runs that hold GPUs and whose metrics came, so
// that one that hangs before its first span has a state as well.
func (c *clocks) expect(metrics *seenMetrics, now time.Time) {
	for key, seen := range metrics.waiting(now) {
		if clock := c.of(key); clock != nil {
			clock.expect(seen)
		}
	}
}

// expect notes that metrics of the process came.
func (c *runClock) expect(seen firstAndLast) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.since.IsZero() {
		c.since = seen.first
	}
	c.heard = seen.last
}

// advance divides the time that has gone by, adds the result to the store, says
// there how each run is, and forgets processes of which nothing has come for
// longer than expiration and whose run holds no GPU; 0 means that none is
// forgotten.
func (c *clocks) advance(store *streams.Store, holds func(run string) bool, expiration time.Duration, now time.Time, last bool) (over streams.Overflowed) {
	standings := make(map[streams.RunKey]streams.Standing)
	for key, clock := range c.all(expiration, holds, now) {
		held := holds(key.run.ID)
		updates, state, seen := clock.advance(key, c.firstStep, held, now, last)
		// As of when the run was last heard of: its state does not keep its
		// series alive.
		over.Add(store.Apply(updates, seen))
		run := streams.RunKey{Resource: key.resource, ID: key.run.ID}
		standings[run] = max(standings[run], standing(state, held))
	}
	store.Judge(standings, holds)
	return over
}

// standing says what the state of one process means for its run when there is no
// room for another.
func standing(state string, held bool) streams.Standing {
	switch {
	case state == runEnded:
		return streams.Ended
	case state == runStalled && held:
		return streams.Hung
	case state == runStalled:
		return streams.Silent
	case state == runRunning, held:
		return streams.Running
	default:
		return streams.NotJudged
	}
}

// forgetRuns ends the clocks of runs that gave way to others.
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

// forget reports whether nothing has come after a time, and ends the clock if so.
// One that is so new that nothing has come yet goes on.
func (c *runClock) forget(since time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	newest := c.lastHeard()
	c.forgotten = !newest.IsZero() && !newest.After(since)
	return c.forgotten
}

// lastHeard is when a span of the process came last, or metrics where none has.
func (c *runClock) lastHeard() time.Time {
	if c.arrived.IsZero() {
		return c.heard
	}
	return c.arrived
}

// advance returns what the run's series change by, its state, and when it was
// last heard of.
func (c *runClock) advance(key clockKey, firstStep time.Duration, held bool, now time.Time, last bool) (updates []streams.Update, state string, seen time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lastHeard().IsZero() {
		return nil, runUnknown, now // its first span is about to be added
	}
	until := c.settled
	c.settled = c.Newest()
	if last {
		until = c.settled
	}
	c.Advance(until, &c.totals)
	state = c.state(firstStep, held, now)
	if last || until == c.settled && (state == runEnded || c.quiet(now)) {
		c.Finish(&c.totals)
	}
	if state == runStalled && !c.arrived.IsZero() && now.After(c.waited) {
		c.Wait(now.Sub(c.waited).Nanoseconds(), &c.totals)
		c.waited = now
	}

	source := key.source()
	updates = c.take(source, now)
	for _, possible := range runStates {
		value := 0.0
		if possible == state {
			value = 1
		}
		updates = append(updates, updateOf(source, series.RunState, value, now, possible))
	}
	return updates, state, c.lastHeard()
}

// source is whose series change with the clock.
func (k *clockKey) source() *streams.Source {
	return &streams.Source{Resource: k.resource, Run: k.run}
}

// updateOf is one of a series of the run.
func updateOf(source *streams.Source, id series.ID, value float64, now time.Time, labels ...string) streams.Update {
	u := streams.Update{Source: source, Series: id, Value: value, At: now.UnixNano()}
	copy(u.Labels[:], labels)
	return u
}

// take returns what the run's time and steps change by, and forgets it.
func (c *runClock) take(source *streams.Source, now time.Time) (updates []streams.Update) {
	add := func(id series.ID, value float64, labels ...string) {
		updates = append(updates, updateOf(source, id, value, now, labels...))
	}
	for used, nanoseconds := range c.totals.States {
		if nanoseconds > 0 {
			add(series.RunTime, float64(nanoseconds)/1e9, wallclock.State(used).String())
		}
	}
	for i := range c.totals.Steps {
		step := &c.totals.Steps[i]
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

// state says how the run is. Silence is measured by the collector's clock, so
// that a client's clock that is wrong stalls nothing. held is true where the run's
// processes hold GPUs.
func (c *runClock) state(firstStep time.Duration, held bool, now time.Time) string {
	switch {
	case c.over():
		return runEnded
	case !c.Stepped():
		overdue := firstStep > 0 && now.Sub(c.since) > firstStep
		if held && overdue && now.Sub(c.arrived) > quietBeforeStep {
			return runStalled
		}
		return runUnknown
	case now.Sub(c.arrived).Nanoseconds() > c.Patience():
		return runStalled
	default:
		return runRunning
	}
}

// quiet says whether nothing has come for longer than a step usually takes, and
// for a minute, so that no other optimizer of the newest step is awaited.
func (c *runClock) quiet(now time.Time) bool {
	return now.Sub(c.arrived).Nanoseconds() > c.Patience()/5
}

// over says whether the client has said that the training is over. Work after
// that is another attempt's.
func (c *runClock) over() bool { return c.ended > 0 && c.ended >= c.worked }
