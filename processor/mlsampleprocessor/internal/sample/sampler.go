package sample

import (
	"slices"
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/lastused"
	"github.com/otelcol-ml/otelcol-ml/processor/mlsampleprocessor/internal/blob"
	"github.com/otelcol-ml/otelcol-ml/processor/mlsampleprocessor/internal/rule"
)

const (
	// rememberedTraces is how many recent traces are remembered at least, besides
	// those that wait, so that late spans follow the decision.
	rememberedTraces = 1 << 16
	// maxConversations limits the conversations with a failure that are remembered.
	maxConversations = 4096
	// maxOperations limits the operations whose durations are compared.
	maxOperations = 2048
)

// Sampler decides about the spans of all runs and calls. It is safe for concurrent
// use; its lock is never held while spans are encoded, decoded or sent.
type Sampler struct {
	cfg Config

	mu sync.Mutex
	// young and old have the traces by id. When young is full, old is dropped
	// except for traces that wait, and young becomes old.
	young, old map[TraceID]*trace
	live       int
	runs       map[uint64]*run
	// calls are in the order in which they are due, groups and retained in the
	// order of their arrival.
	calls            []*Unit
	groups, retained []*group
	rare             rule.Rare
	// durations are those of calls by what they are like.
	durations *lastused.Map[uint64, *rule.Durations]
	// last is the rank of the last span that had one, lastSource its source.
	last       *rank
	lastSource Source
	// failing has the conversations with a failure, and until when.
	failing *lastused.Map[uint64, int64]

	bytes  int64
	out    []Kept
	counts Counts
}

// New returns an empty Sampler.
func New(cfg Config) *Sampler {
	return &Sampler{
		cfg: cfg, young: make(map[TraceID]*trace), old: make(map[TraceID]*trace), runs: make(map[uint64]*run),
		durations: lastused.NewMap[uint64, *rule.Durations](maxOperations), failing: lastused.NewMap[uint64, int64](maxConversations),
	}
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
			t = s.traceOf(sp.Trace)
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
		if r := s.knownRank(sp); sp.Role == Validation && r != nil && len(r.steps) > 0 {
			r.exclude(r.steps[len(r.steps)-1], sp)
		}
		return alone(t, sp)
	case NoRole:
		u = s.unitOf(t, sp, now)
	default:
		u = s.unitOfStep(t, s.rankOf(sp, now).advance(sp, now), now)
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

// takeWanted reports whether kept spans are below a span.
func (t *trace) takeWanted(sp *Span) bool {
	i := slices.Index(t.wanted, sp.ID)
	if i < 0 {
		return false
	}
	t.wanted = slices.Delete(t.wanted, i, i+1)
	return true
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
		s.failing.Put(u.conversation, now+int64(s.cfg.Wait))
	}
	if u.step != nil {
		s.release(u.step.group.run, u.step.group)
	}
}

// traceOf returns a trace, a new one if it is not remembered.
func (s *Sampler) traceOf(id TraceID) *trace {
	if t, known := s.young[id]; known {
		return t
	}
	t, known := s.old[id]
	if !known {
		t = &trace{id: id}
	}
	s.young[id] = t
	if len(s.young) < rememberedTraces+2*s.live {
		return t
	}
	next := make(map[TraceID]*trace, len(s.young))
	for id, t := range s.old {
		if t.waits > 0 {
			next[id] = t
		}
	}
	s.old, s.young = s.young, next
	s.young[id] = t
	return t
}

// rankOf returns the rank of a span. Spans that follow each other have mostly the same.
func (s *Sampler) rankOf(sp *Span, now int64) *rank {
	if s.last == nil || s.lastSource != sp.Source {
		s.last, s.lastSource = s.runOf(sp).rankOf(&sp.Source), sp.Source
	}
	s.last.run.seen = now
	return s.last
}

// runOf returns the run of a span.
func (s *Sampler) runOf(sp *Span) *run {
	r, known := s.runs[sp.Source.Run]
	if !known {
		if len(s.runs) >= maxRuns {
			s.forgetRuns()
		}
		r = &run{key: sp.Source.Run, ranks: make(map[uint64]*rank), firsts: s.cfg.Steps.First}
		s.runs[r.key] = r
	}
	return r
}

// knownRank returns the rank of a span that has shown a phase of training, or nil.
func (s *Sampler) knownRank(sp *Span) *rank {
	if r := s.runs[sp.Source.Run]; r != nil {
		return r.ranks[sp.Source.Rank]
	}
	return nil
}

// unitOf returns the unit of a span that is no phase of training.
func (s *Sampler) unitOf(t *trace, sp *Span, now int64) *Unit {
	if sp.Step > 0 {
		if of := s.knownRank(sp).numbered(sp); of != nil {
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
	s.live++
	s.bytes += unitBytes
	s.calls = append(s.calls, u)
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
		g.run.trim()
	}
}

// Part is encoded spans of a unit that have a header in common.
type Part struct {
	Unit *Unit
	// Header is nil if Data is empty, and only the number of spans counts.
	Header *blob.Header
	// Data must not change after Add.
	Data  []byte
	Spans int64
}

// Add adds spans to the units that Assign has returned.
func (s *Sampler) Add(parts []Part) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var of *blob.Header
	var known *header
	for i := range parts {
		p := &parts[i]
		if p.Header != of {
			of, known = p.Header, &header{Header: *p.Header}
		}
		s.add(p, known)
	}
}

// add adds a part. Without of only its number of spans counts.
func (s *Sampler) add(p *Part, of *header) {
	u, f := p.Unit, fragment{header: of, data: p.Data, spans: p.Spans}
	s.makeRoom(f.size() + of.unused())
	switch size := f.size() + of.unused(); {
	case u.state == dropped: // by making room, or since Assign
		s.counts.Dropped += p.Spans
		return
	case s.bytes+size > s.cfg.MaxBytes:
		s.counts.Overflow += p.Spans
		return
	default:
		s.bytes += size
	}
	if of != nil {
		of.used++
	}
	switch {
	case u.state == kept:
		s.counts.Kept += p.Spans
		s.out = append(s.out, Kept{Trace: u.trace.id, Count: u.count, Spans: p.Spans, fragments: []fragment{f}})
	case of == nil && len(u.fragments) > 0:
		u.fragments[0].spans += p.Spans
	default:
		u.fragments = append(u.fragments, f)
	}
}

// free removes fragments from memory.
func (s *Sampler) free(fragments []fragment) {
	for i := range fragments {
		f := &fragments[i]
		s.bytes -= f.size()
		if f.header != nil {
			f.header.used--
			s.bytes -= f.header.unused()
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
