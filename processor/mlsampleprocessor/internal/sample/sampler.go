package sample

import (
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/lastused"
	"github.com/otelcol-ml/otelcol-ml/processor/mlsampleprocessor/internal/rule"
)

// Sampler decides about the spans of all runs and calls. It is safe for concurrent
// use; its lock is never held while spans are encoded, decoded or sent.
type Sampler struct {
	cfg Config

	mu sync.Mutex
	memory
	traces traces
	runs   runs
	calls  calls
	// groups are in the order of their arrival.
	groups []*group
	rare   rule.Rare
}

// New returns an empty Sampler.
func New(cfg Config) *Sampler {
	s := &Sampler{
		cfg: cfg, memory: memory{most: cfg.MaxBytes}, traces: traces{young: make(map[TraceID]*trace), old: make(map[TraceID]*trace)},
		calls: calls{durations: lastused.NewMap[uint64, *rule.Durations](maxOperations), failing: lastused.NewMap[uint64, int64](maxConversations)},
	}
	s.runs = runs{cfg: &s.cfg, memory: &s.memory, byKey: make(map[uint64]*run)}
	return s
}

// Assign returns the unit that each span waits in or is kept with, in units; nil
// means that the span is dropped. order has the spans in the order of their ends.
func (s *Sampler) Assign(spans []Span, order []int32, now time.Time, units []*Unit) {
	at := now.UnixNano()
	s.mu.Lock()
	defer s.mu.Unlock()
	var t *trace
	for _, i := range order {
		sp := &spans[i]
		if t == nil || t.id != sp.Trace {
			t = s.traces.of(sp.Trace, s.waiting)
		}
		if units[i] = s.assign(t, sp, at); units[i] == nil {
			s.counts.Dropped++
		}
	}
	s.makeRoom(0)
}

// assign returns the unit of a span, or nil if it is dropped.
func (s *Sampler) assign(t *trace, sp *Span, now int64) *Unit {
	wanted := t.takeWanted(sp)
	var u *Unit
	switch sp.Role {
	case Lasting, Validation:
		if r := s.runs.knownRank(sp); sp.Role == Validation && r != nil && len(r.steps) > 0 {
			r.exclude(r.steps[len(r.steps)-1], sp)
		}
		return alone(t, sp)
	case NoRole:
		u = s.unitOf(t, sp, now)
	default:
		u = s.unitOfStep(t, s.runs.rankOf(sp, now).advance(sp, now), now)
	}
	if u.state != waiting {
		return s.late(u, sp, wanted, now)
	}
	u.observe(sp)
	s.observe(u, sp, now)
	if wanted {
		return alone(t, sp)
	}
	return u
}

// alone returns a unit for a span that is kept whatever becomes of its unit. The spans
// above it are kept, too, when they arrive.
func alone(t *trace, sp *Span) *Unit {
	t.want(sp.Parent)
	t.alone = remember(t.alone, sp.ID)
	return &Unit{trace: t, state: kept, count: 1}
}

// late returns what becomes of a span whose unit is decided. A failed one is kept.
func (s *Sampler) late(u *Unit, sp *Span, wanted bool, now int64) *Unit {
	if sp.Failed {
		s.failed(u, now)
	}
	switch {
	case u.state == kept || u.state == retained && !sp.Failed && !sp.Marked && !wanted:
		return u
	case sp.Failed || sp.Marked || wanted:
		return alone(u.trace, sp)
	default:
		return nil
	}
}

// observe adds what a span says about its group, its conversation and its run.
func (s *Sampler) observe(u *Unit, sp *Span, now int64) {
	rare := (u.step == nil || sp.Role == Checkpoint) && s.rare.First(sp.Operation, time.Unix(0, now))
	if u.step == nil {
		u.why.add(Rare, rare)
	} else {
		g := u.step.group
		g.why.add(Rare, rare)
		g.observe(u, now)
		s.enqueue(g)
	}
	if sp.Failed || u.why.has(Failed) && sp.Conversation != 0 {
		s.failed(u, now)
	}
}

// failed lets a failure keep what waits of its conversation and the steps before
// it.
func (s *Sampler) failed(u *Unit, now int64) {
	if u.conversation != 0 {
		s.calls.failing.Put(u.conversation, now+int64(s.cfg.Wait))
	}
	if u.step != nil {
		u.step.group.run.release(u.step.group)
	}
}

// unitOf returns the unit of a span that is no phase of training.
func (s *Sampler) unitOf(t *trace, sp *Span, now int64) *Unit {
	if sp.Step > 0 {
		if of := s.runs.knownRank(sp).numbered(sp); of != nil {
			return s.unitOfStep(t, of, now)
		}
	}
	u := t.current
	switch {
	case u == nil:
		t.current = s.newUnit(t, now)
		return t.current
	case u.step != nil && sp.End <= u.step.begin:
		return s.unitOfStep(t, u.step.rank.at(sp.End), now)
	case u.step != nil && u.step.end > 0 && sp.Start >= u.step.end:
		if t.next == nil || t.next.state != waiting {
			t.next = s.newUnit(t, now)
		}
		return t.next
	default:
		return u
	}
}

// unitOfStep returns the unit of a trace in a step.
func (s *Sampler) unitOfStep(t *trace, of *step, now int64) *Unit {
	u := t.current
	newer := u == nil || u.step != nil && of.begin > u.step.begin
	switch {
	case u != nil && u.step == of:
		return u
	case u != nil && u.step == nil && u.state == waiting:
		s.bind(u, of)
		return u
	case newer && t.next != nil && t.next.state == waiting:
		u, t.next = t.next, nil
		s.bind(u, of)
	default:
		for i := len(of.units) - 1; i >= max(0, len(of.units)-8); i-- {
			if of.units[i].trace == t {
				return of.units[i]
			}
		}
		u = s.newUnit(t, now)
		s.bind(u, of)
		newer = newer || t.current.step == nil
	}
	if newer {
		t.current = u
	}
	return u
}

// newUnit returns a unit that is a call until it is bound to a step.
func (s *Sampler) newUnit(t *trace, now int64) *Unit {
	u := &t.first
	if u.trace != nil { // it is in use
		u = new(Unit)
	}
	u.trace, u.arrived, u.due = t, now, now+int64(s.cfg.Wait)
	t.waits++
	s.waiting++
	s.bytes += unitBytes
	s.calls.queue = append(s.calls.queue, u)
	return u
}

// bind adds a unit to a step, which may be decided.
func (s *Sampler) bind(u *Unit, of *step) {
	u.step = of
	of.units = append(of.units, u)
	g := of.group
	s.enqueue(g)
	g.observe(u, g.arrived)
	if g.state != waiting {
		s.settle(u, g.state, g.count)
	}
}

// enqueue lets a group be decided early when memory is needed.
func (s *Sampler) enqueue(g *group) {
	if !g.queued {
		g.queued = true
		s.groups = append(s.groups, g)
		g.run.groups = forget(g.run.groups, func(old *group) bool { return old.state > retained })
	}
}

// Add adds spans to the units that Assign has returned.
func (s *Sampler) Add(parts []Part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range parts {
		s.makeRoom(sizeOf(&parts[i].Fragment))
		s.add(parts[i].Unit, parts[i].Fragment)
	}
}

// Out returns what is to be sent, in its order. It waits until it is Sent.
func (s *Sampler) Out() []Kept {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out
}

// Sent frees the memory of the first of Out, which were sent or could not be.
func (s *Sampler) Sent(number int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.out[:number] {
		s.free(s.out[i].fragments)
	}
	clear(s.out[:number])
	s.out = s.out[number:]
}

// Follow keeps spans of a trace that kept ones are below, when they arrive, and the
// traces that kept spans link to, while they wait.
func (s *Sampler) Follow(id TraceID, above []SpanID, links []TraceID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(above) > 0 {
		t := s.traces.of(id, s.waiting)
		for _, parent := range above {
			t.want(parent)
		}
	}
	for _, link := range links {
		if t := s.traces.known(link); t != nil && t.current != nil {
			t.current.why.add(Linked, true)
		}
	}
}

// Counts returns what was decided since the previous call.
func (s *Sampler) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := s.counts
	s.counts = Counts{}
	return counts
}

// Bytes returns the memory of what waits, in bytes.
func (s *Sampler) Bytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}
