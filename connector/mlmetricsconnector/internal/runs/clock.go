package runs

import (
	"cmp"
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/checkpoints"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/wallclock"
)

const (
	// maxSetBack is how long a client may send only late spans before its clock
	// is considered set back.
	maxSetBack = time.Minute
	// maxSteps limits the steps of each rank that wait for an emission.
	maxSteps = 1024
	// maxPause is the longest pause that a run may make again.
	maxPause = 30 * time.Minute
)

// clock is the clock of one rank.
type clock struct {
	mu sync.Mutex
	Kept
	// spent is the time since the previous emission.
	spent   wallclock.Spent
	program Program
	arrivals
	progress
	comparison
	// saves are the checkpoints.
	saves checkpoints.Saves
	// settled is the value of Newest at the previous emission. Spans of
	// parallel work have all arrived since.
	settled int64
	// late are the spans since the latest one that was not late.
	late []wallclock.Span
	// ending is what the spans say about the end of the program.
	ending ending
	// forgotten reports whether the clock was removed; holders must look up
	// another one.
	forgotten bool
}

// arrivals are times by the collector's clock.
type arrivals struct {
	// since is when the rank was first seen, by a span or its metrics, and
	// heard when its metrics were last seen.
	since, heard time.Time
	// arrived is the arrival of the latest span, accepted that of the latest one that
	// was not late.
	arrived, accepted time.Time
	// before is the arrival of the latest span before the latest silence that was
	// longer than the rank's patience, tookGPUs when its run took GPUs after it, and
	// resumed the end of the latest silence of half of the patience.
	before, tookGPUs, resumed time.Time
	silences                  Silences
	// waited is the end of the silence that was attributed to unknown.
	waited time.Time
}

// progress is how far the rank has come.
type progress struct {
	// steps is the number of ends of steps, stepped the arrival of the latest one, and
	// spanStepped that of the latest span that was one.
	steps                int64
	stepped, spanStepped time.Time
	// counted is the number of steps by all rules.
	counted int64
	// moved is when the rank's own metrics last changed, zero if they never did or
	// it has none, and between is how long they may stay the same.
	moved   time.Time
	between time.Duration
	// pause is the longest checkpoint or validation of the attempt: a span arrives at its
	// end. latest is the phase of the latest span.
	pause  time.Duration
	latest wallclock.Phase
}

// observe adds a span of the training, or one that has no parent and is no work. It returns updates if so many steps have ended that they
// cannot wait for the next emission, and if an attempt begins. live is false
// for a clock that was removed, which adds nothing.
func (c *clock) observe(s *Span, now time.Time) (updates []streams.Update, live bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !s.trains():
		c.ending.see(s, c.Worked)
		return nil, true
	case c.forgotten:
		return nil, false
	}
	begun, old := c.Attempts.see(s, c.Worked, c.Ended)
	if begun == 0 && !old && c.beginsAgain(s) {
		begun = 1
	}
	updates = c.begin(begun, now)
	if old {
		return updates, true
	}
	c.Timing = s.Timing
	c.describe(&s.Program)
	c.since = cmp.Or(c.since, now)
	c.arrive(now, begun > 0)
	c.ending.see(s, c.Worked)
	if s.EndsRun {
		c.Ended = max(c.Ended, s.Time.End)
		return updates, true
	}
	c.counted += s.Steps
	c.note(s, now)
	c.Worked = max(c.Worked, s.Time.End)
	rises := s.Step > c.Rework.Newest && c.Rework.Newest > 0
	again := c.Rework.see(s.Step)
	if s.Timed {
		span := s.Time
		if again && span.State == wallclock.Productive {
			span.State = wallclock.Rework
		}
		c.observeSpan(span, rises, now)
	}
	if s.EndsStep {
		c.EndStep(s.Time.End, !s.Optimizes, &c.Totals)
	}
	if len(c.Totals.Steps) >= maxSteps {
		updates = append(updates, c.take(now)...)
	}
	return updates, true
}

// begin begins so many attempts, and returns the update that counts them. The first
// one begins with the first that is seen of the rank.
func (c *clock) begin(begun int64, now time.Time) []streams.Update {
	if c.Attempted == 0 {
		begun = 1
	} else if begun > 0 {
		c.restart()
		c.starts, c.began = c.steps > 0, now
		c.restarts.add(begun, now)
	}
	if begun == 0 {
		return nil
	}
	c.Attempted += begun
	c.saves.Restart(now, c.steps)
	return []streams.Update{{Source: c.Key.source(), Series: series.RunAttempts, Count: begun}}
}

// describe keeps what a resource reveals about the rank's program.
func (c *clock) describe(p *Program) {
	world, tokens := c.program.World, c.program.Tokens
	c.program = *p
	c.program.World, c.program.Tokens = cmp.Or(p.World, world), cmp.Or(p.Tokens, tokens)
	if world > 0 && world != c.program.World || tokens > 0 && tokens != c.program.Tokens {
		// Fewer ranks take longer for the same batch, and so does a larger batch.
		c.comparison = comparison{without: c.without}
	}
	c.Idle, c.NoStartup, c.Born = p.Idles, p.NoStartup, p.Born
}

// arrive records that something of the rank's work arrived, of a new attempt or not.
func (c *clock) arrive(now time.Time, begun bool) {
	if !now.After(c.arrived) {
		return
	}
	if c.silent(now) {
		c.before = c.arrived
		if !c.arrived.IsZero() && !begun {
			c.silences.add(now.Sub(c.arrived))
		}
	}
	if !c.arrived.IsZero() && now.Sub(c.arrived) > c.patience()/2 {
		c.resumed = now
	}
	c.arrived, c.waited = now, now
}

// Silences are those of a rank that were longer than its patience and ended by themselves,
// within an attempt.
type Silences struct {
	Number            int
	Longest, Shortest time.Duration
}

func (s *Silences) add(d time.Duration) {
	if s.Longest = max(s.Longest, d); s.Number == 0 || d < s.Shortest {
		s.Shortest = d
	}
	s.Number++
}

// Usual returns the longest one that the run may make again, half an hour at most.
func (s *Silences) Usual() time.Duration { return min(s.Longest, maxPause) }

// Irregular reports whether they differ as those of a notebook, where somebody decides
// when it goes on.
func (s *Silences) Irregular() bool { return s.Number >= 3 && s.Longest >= 3*s.Shortest }

// Often reports whether a program that was seen for a time is silent every other hour, or
// was seen for less: it may be a notebook.
func (s *Silences) Often(seen time.Duration) bool {
	return seen < time.Duration(s.Number+1)*2*time.Hour
}

// note keeps what the detectors need of a span.
func (c *clock) note(s *Span, now time.Time) {
	if s.EndsStep {
		c.steps++
		c.stepped, c.spanStepped, c.starts = now, now, false
	}
	if !s.Timed {
		return
	}
	span := &s.Time
	if span.End >= c.Worked {
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
func (c *clock) observeSpan(span wallclock.Span, rises bool, now time.Time) {
	if c.Observe(span, &c.Totals) {
		c.accepted, c.late = now, nil
		return
	}
	if span.Start <= 0 || span.End < span.Start {
		return
	}
	if len(c.late) < maxSteps {
		c.late = append(c.late, span)
	}
	if !rises && now.Sub(c.accepted) <= maxSetBack {
		return
	}
	c.SetBack(&c.Totals)
	c.settled, c.accepted, c.Worked = 0, now, span.End
	for _, late := range c.late {
		c.Observe(late, &c.Totals)
	}
	c.late = nil
}

// restart begins a new attempt.
func (c *clock) restart() {
	c.Restart(c.over(), &c.Totals)
	c.settled, c.Ended, c.ending = 0, 0, ending{}
	c.Rework.restart()
	c.warmup, c.pause = warmupSteps, 0
}

// forget reports whether nothing has arrived after since, and if so removes the
// clock. A new clock without data stays.
func (c *clock) forget(since time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	newest := cmp.Or(c.lastHeard(), c.Last)
	c.forgotten = !newest.IsZero() && !newest.After(since)
	return c.forgotten
}

// lastHeard returns the arrival of the rank's latest span, or of its metrics if
// there is no span. It is zero for a rank that was not heard since a restart.
func (c *clock) lastHeard() time.Time { return cmp.Or(c.arrived, c.heard) }

// advance returns the updates of the rank's series, and what the rank shows about
// its run. known is false for a rank of which nothing is known yet.
func (c *clock) advance(limits Timeouts, held gpus.Held, e *Emission) (updates []streams.Update, rank *Rank, known bool) {
	now := e.Now
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lastHeard().IsZero() {
		return c.take(now), &Rank{Seen: now}, false // its first span is about to be added
	}
	until := c.settled
	c.settled = c.Newest()
	if e.Last {
		until = c.settled
	}
	c.Advance(until, &c.Totals)
	if !c.before.IsZero() && held.Since.After(c.before) && !held.Since.Equal(c.tookGPUs) {
		// It was preempted, as far as its client lets one know.
		c.tookGPUs, c.warmup, c.silences = held.Since, warmupSteps, Silences{}
	}
	state := c.stateAsOf(limits, held, now)
	if state.Over() && c.ending.isClosed(c.Worked) && c.silent(now) {
		c.Ended = max(c.Ended, c.Worked) // later work is another attempt
	}
	if e.Last && !e.Kept || until == c.settled && (state.Over() || c.quiet(now)) {
		c.Finish(&c.Totals)
	}
	// Of a run that is not heard nobody knows: what comes later may say what it did.
	if state == Stalled && held.Now && !c.arrived.IsZero() && now.After(c.waited) {
		c.Wait(now.Sub(c.waited).Nanoseconds(), &c.Totals)
		c.waited = now
	}
	updates = c.take(now)
	return updates, c.report(state, now), true
}

// report returns what the rank shows about its run since the previous call.
func (c *clock) report(state State, now time.Time) *Rank {
	rank := &Rank{
		Name: c.Key.Run.Rank, Host: c.Key.Run.Host, State: state, Since: c.since, Alive: cmp.Or(c.arrived, c.since), Seen: c.lastHeard(),
		Speed:  c.speed(),
		Breaks: Breaks{Patience: c.patience(), Pause: c.pause, Resumed: c.resumed, Silences: c.silences},
		Last:   Last{Steps: c.counted, Stepped: c.stepped, End: c.Worked, Phase: c.latest}, Program: c.program,
		attempt: c.Attempt, spent: c.spent, clock: c,
	}
	if state == Failed {
		rank.Failure = c.failure()
	}
	rank.Saves.Last = c.saves.Last()
	rank.Saves.Missed, rank.Saves.Late, rank.Saves.Regular = c.saves.Overdue(now, c.steps)
	c.spent = wallclock.Spent{}
	return rank
}

// take returns the updates of the run's time and steps, and clears them.
func (c *clock) take(now time.Time) (updates []streams.Update) {
	source := c.Key.source()
	add := func(id series.ID, value float64, labels ...string) {
		updates = append(updates, streams.ValueAt(source, id, value, now, labels...))
	}
	c.spent.Add(&c.Totals.States)
	for used, nanoseconds := range c.Totals.States {
		if nanoseconds > 0 {
			add(series.RunTime, float64(nanoseconds)/1e9, wallclock.State(used).String())
		}
	}
	for _, step := range c.Totals.Steps {
		c.compare(step, c.program.OnDemand)
		for phase, nanoseconds := range step.Phases {
			if nanoseconds > 0 || phase == int(wallclock.NoPhase) {
				add(series.StepDuration, float64(nanoseconds)/1e9, wallclock.Phase(phase).String(), c.Timing)
			}
		}
		add(series.StepDuration, float64(step.Whole)/1e9, series.WholeStep, c.Timing)
	}
	c.Totals = wallclock.Totals{}
	return updates
}
