package sample

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/processor/mlsampleprocessor/internal/rule"
)

const (
	// maxRuns limits the runs, maxRanks the ranks of a run, and maxSteps the steps
	// of a rank and the decided groups of a run, which late spans may belong to.
	maxRuns, maxRanks, maxSteps = 1024, 4096, 64
	// unlikeNumbers is how far apart, in nanoseconds, two ranks may begin a step with
	// one number, or show a restart.
	unlikeNumbers = int64(60e9)
	// unknownStep is the tolerance, in nanoseconds, while no step is known.
	unknownStep = int64(5e8)
)

// patience is how many times the usual step a step without an end waits for its
// next span, if that is longer than the configured wait. forgotten is after how
// long without spans the retained steps of a run are removed.
const (
	patience  = 3
	forgotten = int64(time.Hour)
)

// run is the steps of a run.
type run struct {
	cfg    *Config
	memory *memory
	key    uint64
	ranks  map[uint64]*rank
	// groups are in the order of their beginnings.
	groups []*group
	// retained are the groups that are, in the order of their decisions.
	retained  []*group
	durations rule.Durations
	attempt   int64
	// begun is the number of groups since the run or its last restart began.
	begun int
	// restarted is when the run restarted, 0 if it has not.
	restarted int64
	// seen is when the last span arrived.
	seen int64
}

// rank is one process of a run.
type rank struct {
	run   *run
	host  uint64
	steps []*step
	trace TraceID
	// excluded is time after the current step that is not the next one's.
	excluded int64
	// forwards and optimizers report whether the rank has shown such spans.
	forwards, optimizers bool
}

// step is one step of a rank.
type step struct {
	rank  *rank
	group *group
	// begin is the end of the step before, and end that of the last optimizer, 0
	// while there is none. excluded is time of checkpoints and validations.
	begin, end, excluded int64
	number               int64
	units                []*Unit
}

// group is the steps that the ranks of a run take at the same time.
type group struct {
	run           *run
	steps         []*step
	begin, number int64
	state         state
	count         int64
	// created and arrived are when its first and last span arrived, over when the
	// first of its steps had ended.
	created, arrived, over int64
	why                    reasons
	queued                 bool
}

// has reports whether the group has a recent step of a rank.
func (g *group) has(r *rank) bool {
	recent := r.steps[max(0, len(r.steps)-maxSteps):]
	return slices.ContainsFunc(recent, func(s *step) bool { return s.group == g })
}

// observe adds what is known of a unit of the group.
func (g *group) observe(u *Unit, now int64) {
	g.arrived = max(g.arrived, now)
	g.why |= u.why & (1<<Failed | 1<<Marked)
}

// rankOf returns the rank of a source.
func (r *run) rankOf(source *Source) *rank {
	key := source.Rank
	if _, known := r.ranks[key]; !known && len(r.ranks) >= maxRanks {
		key %= maxRanks
	}
	return shared.Entry(r.ranks, key, func() *rank { return &rank{run: r, host: source.Host} })
}

// isOn reports whether a rank of the run is on a host.
func (r *run) isOn(host uint64) bool {
	return len(mlattr.Where(maps.Values(r.ranks), func(of *rank) bool { return of.host == host })) > 0
}

// advance returns the step that a span of the rank belongs to. Spans must come in
// the order of their ends; one that does not goes to the step of its time.
func (r *rank) advance(sp *Span, now int64) *step {
	r.detectRestart(sp)
	var current *step
	if n := len(r.steps); n > 0 {
		current = r.steps[n-1]
	}
	switch {
	case current == nil:
		current = r.begin(nil, sp, now)
	case sp.Step > 0 && current.number > 0 && sp.Step != current.number:
		if same := r.numbered(sp); same != nil {
			return same
		}
		if sp.Step < current.number && sp.Start >= current.begin {
			r.run.restart(sp.Start)
		}
		current = r.begin(current, sp, now)
	case sp.End <= current.begin-unlikeNumbers: // a clock was set back
		current = r.begin(nil, sp, now)
	case sp.End <= current.begin:
		return r.at(sp.End)
	case r.beginsStep(current, sp):
		current = r.begin(current, sp, now)
	}
	r.observe(current, sp, now)
	return current
}

// detectRestart lets the run begin again.
func (r *rank) detectRestart(sp *Span) {
	if sp.Source.Attempt > r.run.attempt {
		r.run.attempt = sp.Source.Attempt
		r.run.restart(sp.Start)
	}
	if sp.Source.OneTrace && sp.Trace != r.trace {
		if r.trace != (TraceID{}) {
			r.run.restart(sp.Start)
		}
		r.trace = sp.Trace
	}
}

// restart lets the run begin again at a time. All ranks restart together, so what
// another one shows soon after is the same restart.
func (r *run) restart(at int64) {
	if at-r.restarted > unlikeNumbers || r.restarted == 0 {
		r.restarted, r.begun = at, 0
	}
}

// beginsStep reports whether a span is the first of another step. Optimizers
// without a forward pass between them end one step together, and so do those
// within each other.
func (r *rank) beginsStep(current *step, sp *Span) bool {
	if current.end == 0 {
		return false
	}
	switch {
	case sp.Role == Load || sp.Role == Forward:
		return sp.End > current.end
	case sp.Role == Work:
		return sp.Start >= current.end
	case r.ends(sp):
		return sp.Start >= current.end && !r.forwards
	default:
		return false
	}
}

// ends reports whether a span ends a step.
func (r *rank) ends(sp *Span) bool {
	return sp.Role == Optimizer || sp.Role == Batch && !r.optimizers
}

// observe adds what a span says about its step.
func (r *rank) observe(s *step, sp *Span, now int64) {
	r.forwards = r.forwards || sp.Role == Forward
	r.optimizers = r.optimizers || sp.Role == Optimizer
	if sp.Role == Checkpoint {
		r.exclude(s, sp)
	}
	if r.ends(sp) {
		s.end = max(s.end, sp.End)
		s.group.over = cmp.Or(s.group.over, now)
	}
	if sp.Step > 0 && s.number == 0 {
		s.setNumber(sp.Step, now)
	}
}

// exclude takes the time of a span out of the current step, or out of the next one if
// the current one is over.
func (r *rank) exclude(current *step, sp *Span) {
	if current.end > 0 && sp.Start >= current.end {
		r.excluded += sp.End - sp.Start
	} else if sp.Start >= current.begin {
		current.excluded += sp.End - sp.Start
	}
}

// begin adds a step after the current one, which may be nil. It begins at the end of
// that one, unless their numbers show that there were others.
func (r *rank) begin(current *step, sp *Span, now int64) *step {
	s := &step{rank: r, begin: sp.Start}
	follows := current != nil && (sp.Step == 0 || current.number == 0 || sp.Step == current.number+1)
	if follows && !sp.Source.OnDemand && current.end > 0 {
		s.begin, s.excluded = current.end, r.excluded
	}
	r.excluded = 0
	r.run.join(s, now)
	r.steps = append(forget(r.steps, func(s *step) bool { return s.group.state != waiting }), s)
	return s
}

// forget removes the oldest of more than maxSteps items that may be removed, a quarter
// of them or more at once, so that it costs little for each.
func forget[T any](items []T, removable func(T) bool) []T {
	if len(items) < 2*maxSteps || !removable(items[len(items)/4]) {
		return items
	}
	n := 0
	for len(items)-n > maxSteps && removable(items[n]) {
		n++
	}
	return slices.Delete(items, 0, n)
}

// at returns the step of a time.
func (r *rank) at(end int64) *step {
	for i := len(r.steps) - 1; i > 0; i-- {
		if r.steps[i].begin < end {
			return r.steps[i]
		}
	}
	return r.steps[0]
}

// numbered returns the recent step with the number of a span, or nil. After a restart
// numbers come again, and such a span begins long after the end of that step. The
// receiver may be nil.
func (r *rank) numbered(sp *Span) *step {
	if r == nil {
		return nil
	}
	for i := len(r.steps) - 1; i >= max(0, len(r.steps)-maxSteps); i-- {
		if s := r.steps[i]; s.number == sp.Step && sp.Start-s.begin < unlikeNumbers && (s.end == 0 || sp.Start <= s.end+r.run.tolerance()) {
			return s
		}
	}
	return nil
}

// tolerance returns how far apart steps of one group may begin, in nanoseconds.
func (r *run) tolerance() int64 {
	if median := r.durations.Median(); median > 0 {
		return int64(median * 1e9 / 2)
	}
	if n := len(r.groups); n > 1 {
		return (r.groups[n-1].begin - r.groups[n-2].begin) / 2
	}
	return unknownStep
}

// join adds a step to the group that begins at about the same time and has no
// step of its rank, or to a new group.
func (r *run) join(s *step, now int64) {
	at := r.indexAt(s.begin)
	var nearest *group
	apart := r.tolerance() + 1
	for i := max(at-1, 0); i < min(at+1, len(r.groups)); i++ {
		if d := max(r.groups[i].begin-s.begin, s.begin-r.groups[i].begin); d < apart {
			nearest, apart = r.groups[i], d
		}
	}
	if nearest == nil || nearest.has(s.rank) {
		nearest = r.insert(s.begin, now)
	}
	nearest.steps = append(nearest.steps, s)
	s.group = nearest
}

// indexAt returns the index of the first group that begins at a time or later.
func (r *run) indexAt(begin int64) int {
	at, _ := slices.BinarySearchFunc(r.groups, begin, func(g *group, begin int64) int { return cmp.Compare(g.begin, begin) })
	return at
}

// insert adds a group.
func (r *run) insert(begin, now int64) *group {
	g := &group{run: r, begin: begin, created: now, arrived: now}
	r.begun++
	g.why.add(First, r.begun <= r.cfg.Steps.First)
	r.groups = slices.Insert(r.groups, r.indexAt(begin), g)
	return g
}

// setNumber moves the step to the group with its number. A step with another
// number is another step, however close in time.
func (s *step) setNumber(number, now int64) {
	s.number = number
	r, old := s.rank.run, s.group
	var found *group
	for i := len(r.groups) - 1; i >= max(0, len(r.groups)-maxSteps) && found == nil; i-- {
		g := r.groups[i]
		if g.number == number && max(g.begin-s.begin, s.begin-g.begin) < unlikeNumbers && (g == old || !g.has(s.rank) && (g.state == waiting || len(s.units) == 0)) {
			found = g
		}
	}
	switch {
	case found == old:
		return
	case found == nil && old.number == 0:
		old.number = number
		return
	case found == nil:
		found = r.insert(s.begin, now)
		found.number = number
		found.why.add(First, old.why.has(First))
	}
	old.steps = slices.DeleteFunc(old.steps, func(other *step) bool { return other == s })
	found.steps = append(found.steps, s)
	for _, u := range s.units {
		found.observe(u, now)
	}
	if s.end > 0 && found.over == 0 {
		found.over = now
	}
	s.group = found
}

// decide decides the groups of a run that are due at a time, and drops those that are
// retained if it has long had no spans.
func (r *run) decide(at int64) {
	for _, g := range r.groups {
		if g.state == waiting && g.due() <= at {
			g.decide()
		}
	}
	if at-r.seen > forgotten {
		r.dropRetained(0)
	}
}

// due returns when a group is decided.
func (g *group) due() int64 {
	wait := int64(g.run.cfg.Wait)
	if g.over > 0 {
		return g.over + wait
	}
	return g.arrived + max(wait, int64(patience*g.run.durations.Median()*float64(time.Second)))
}

// longest returns the duration of the slowest rank's step, in seconds, or 0 if none is
// known.
func (g *group) longest() float64 {
	longest := int64(0)
	for _, of := range g.steps {
		if of.end > 0 {
			longest = max(longest, of.end-of.begin-of.excluded)
		}
	}
	return float64(longest) / 1e9
}

// reason returns why the group is kept if it is decided now.
func (g *group) reason() Reason {
	why, cfg := g.why, &g.run.cfg.Steps
	why.add(Slow, g.run.durations.Slow(g.longest(), cfg.SlowQuantile, cfg.Slow))
	why.add(Systematic, rule.Step(g.run.key, g.number, g.begin, uint64(cfg.OneIn)))
	return why.first()
}

// decide decides the steps that the ranks took at the same time.
func (g *group) decide() {
	r, reason := g.run, g.reason()
	if longest := g.longest(); longest > 0 {
		r.durations.Add(longest)
	}
	to, count := reason.outcome(r.cfg.Steps.OneIn)
	if to == dropped && r.cfg.Steps.Before > 0 {
		g.settle(retained, 0)
		r.retained = append(r.retained, g)
		r.memory.retained = append(r.memory.retained, g)
	} else {
		g.conclude(reason, to, count)
	}
	r.dropRetained(r.cfg.Steps.Before)
}

// conclude decides the group for good.
func (g *group) conclude(reason Reason, to state, count int64) {
	if g.state == retained {
		g.run.retained = slices.DeleteFunc(g.run.retained, func(other *group) bool { return other == g })
	}
	g.run.memory.counts.Units[Step][reason] += int64(len(g.steps))
	g.settle(to, count)
}

// settle applies a decision to the units of the group.
func (g *group) settle(to state, count int64) {
	g.state, g.count = to, count
	for _, of := range g.steps {
		for _, u := range of.units {
			g.run.memory.settle(u, to, count)
		}
	}
}

// dropRetained drops the oldest retained groups, of more than a number.
func (r *run) dropRetained(most int) {
	for len(r.retained) > most {
		r.retained[0].conclude(Dropped, dropped, 0)
	}
}

// release keeps the steps before a group, or the newest ones for nil. Those that
// were decided already count 0: the sample represents them without these.
func (r *run) release(before *group) {
	left := r.cfg.Steps.Before
	for i := len(r.groups) - 1; i >= 0 && left > 0; i-- {
		g := r.groups[i]
		if before != nil && g.begin >= before.begin {
			continue
		}
		left--
		switch g.state {
		case waiting:
			g.why.add(Before, true)
		case retained:
			g.conclude(Before, kept, 0)
		}
	}
}
