package incident

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/detect"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind"
)

// Config bounds a Tracker.
type Config struct {
	// Wait is how long an incident waits for more before it is written.
	Wait time.Duration
	// Queue is the number of incidents that wait or are to be written, and Spans the
	// number of spans of each one's trace.
	Queue, Spans int
	// Bytes is the memory for all of them.
	Bytes int64
}

// Tracker keeps the incidents from when they are seen until they are written, and the
// spans of their traces. It is safe for concurrent use;
// its lock is held for map operations and never while pdata is read.
type Tracker struct {
	// Calls are those that other spans recorded, by correlation, and Exceptions the errors
	// that log records brought for spans, until the failure comes that they belong to.
	Calls      *Pending[string, Recording]
	Exceptions *Pending[failure.SpanKey, failure.Error]
	// Recorded is what log records have of calls, by their spans.
	Recorded *Pending[failure.SpanKey, []failure.Recorded]

	cfg     Config
	history *share.History
	kinds   kind.Registry
	filter  *detect.Filter
	// ready has the incidents that are to be written. Each has reserved its room there
	// when it began to wait.
	ready chan *Incident

	mu      sync.Mutex
	waiting map[uint64]*Incident
	traces  map[pcommon.TraceID]*trace // of those that wait
	bytes   int64
	// reserved is the room that is taken of ready, and newcomers the part of it that
	// services have which are not established.
	reserved, newcomers int
}

// NewTracker returns an empty Tracker. It keeps filter as the set of its traces.
func NewTracker(cfg Config, kinds kind.Registry, history *share.History, filter *detect.Filter) *Tracker {
	// Half as much memory again is for what may belong to a failure that has
	// not come yet: half of that for calls, and half for what log records have.
	return &Tracker{
		cfg: cfg, history: history, kinds: kinds, filter: filter, ready: make(chan *Incident, cfg.Queue),
		waiting: make(map[uint64]*Incident), traces: make(map[pcommon.TraceID]*trace),
		Calls:      NewPending[string, Recording](cfg.Bytes/4, history.Path),
		Recorded:   NewPending[failure.SpanKey, []failure.Recorded](cfg.Bytes/8, history.Path),
		Exceptions: NewPending[failure.SpanKey, failure.Error](cfg.Bytes/8, history.Path),
	}
}

// reserve adds n to what is reserved.
func (tr *Tracker) reserve(i *Incident, n int) {
	tr.reserved += n
	if i.newcomer {
		tr.newcomers += n
	}
}

// The errors of Open.
var (
	ErrQueue  = errors.New("as many incidents as may wait do")
	ErrMemory = errors.New("the memory for incidents is used")
)

// Open begins to track an incident, or returns why it cannot. Of the queue, services that
// are not established leave half to those that are.
func (tr *Tracker) Open(i *Incident, now time.Time) error {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	i.newcomer = tr.history.Newcomer(i.Failure.SentBy)
	if tr.reserved >= tr.cfg.Queue || i.newcomer && tr.newcomers >= max(1, tr.cfg.Queue/2) {
		return ErrQueue
	}
	weight := int64(i.Failure.Weight)
	if !tr.makeRoom(weight, i.Span.Trace, i.Failure.SentBy) {
		return ErrMemory
	}
	tr.reserve(i, 1)
	tr.bytes += weight
	i.due = now.Add(tr.cfg.Wait)
	tr.waiting[i.ID] = i
	tr.join(i)
	return nil
}

// join makes an incident part of its trace.
func (tr *Tracker) join(i *Incident) {
	id := i.Span.Trace
	if id.IsEmpty() {
		return
	}
	t, ok := tr.traces[id]
	if !ok {
		t = &trace{id: id, origin: i.Failure.SentBy, spans: make(map[pcommon.SpanID]*span)}
		tr.traces[id] = t
		tr.filter.Add(id)
	}
	t.incidents = append(t.incidents, i)
	t.last = max(t.last, i.ID)
}

// leave takes an incident from a trace, which is forgotten with its last one.
func (tr *Tracker) leave(i *Incident, id pcommon.TraceID) {
	t, ok := tr.traces[id]
	if !ok {
		return
	}
	t.incidents = slices.DeleteFunc(t.incidents, func(other *Incident) bool { return other == i })
	if len(t.incidents) == 0 {
		delete(tr.traces, id)
		tr.filter.Remove(id)
		tr.bytes -= t.bytes
	}
}

// makeRoom ends the waiting in other traces until there is room for weight more bytes of an
// origin, for the trace with the id. The traces that exceed their origins' shares leave, the
// oldest of an origin first. It returns false if others would have to give up their share.
func (tr *Tracker) makeRoom(weight int64, id pcommon.TraceID, origin share.Origin) bool {
	for tr.bytes+weight > tr.cfg.Bytes {
		others := mlattr.Where(maps.Values(tr.traces), func(t *trace) bool { return t.id != id })
		slices.SortFunc(others, func(a, b *trace) int { return cmp.Compare(b.last, a.last) })
		items := []share.Item{{Path: tr.history.Path(origin), Weight: weight + tr.traces[id].weight()}}
		items = append(items, mlattr.Mapped(others, func(t *trace) share.Item { return share.Item{Path: tr.history.Path(t.origin), Weight: t.weight()} })...)
		dropped := false
		for n, stays := range share.KeepWithRoom(items, tr.cfg.Bytes)[1:] {
			if !stays {
				dropped = true
				for _, i := range slices.Clone(others[n].incidents) {
					tr.finish(i, false)
				}
			}
		}
		if !dropped {
			return false
		}
	}
	return true
}

// finish ends an incident's waiting and hands it to the writers. The spans above it and the
// failed ones of its trace go with it, and the others if there is room for them.
func (tr *Tracker) finish(i *Incident, room bool) {
	delete(tr.waiting, i.ID)
	if t, ok := tr.traces[i.Span.Trace]; ok {
		before := i.Failure.Weight
		i.Failure = t.complete(i, room)
		tr.bytes += int64(i.Failure.Weight - before)
		tr.leave(i, t.id)
	}
	tr.ready <- i // there is room: it is reserved
}

// Waits reports whether an incident still waits.
func (tr *Tracker) Waits(id uint64) bool {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.waiting[id] != nil
}

// Improves reports whether an incident still waits and n has more.
func (tr *Tracker) Improves(id uint64, n *Incident) bool {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	i, ok := tr.waiting[id]
	return ok && i.improvedBy(n, tr.traces[n.Span.Trace])
}

// Improve replaces what an incident has by what n has, if it still waits and n has
// more.
func (tr *Tracker) Improve(id uint64, n *Incident) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	i, ok := tr.waiting[id]
	if !ok || !i.improvedBy(n, tr.traces[n.Span.Trace]) ||
		!tr.makeRoom(int64(n.Failure.Weight), n.Span.Trace, n.Failure.SentBy) || tr.waiting[id] != i {
		return
	}
	was, weight := i.Span.Trace, int64(i.Failure.Weight)
	i.improve(n)
	tr.bytes += int64(i.Failure.Weight) - weight
	if i.Span.Trace != was {
		tr.leave(i, was)
		tr.join(i)
	}
}

// Supersede withdraws and returns the incidents that wait for a span above n: the
// error began at n. One that has a call is kept if n has none. Of a model's call
// and the HTTP request below it, that of the request is withdrawn, which may be n.
func (tr *Tracker) Supersede(n *Incident) (withdrawn []*Incident) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	t, ok := tr.traces[n.Span.Trace]
	if !ok {
		return nil
	}
	for _, i := range slices.Clone(t.incidents) {
		if i.Span == n.Span {
			continue
		}
		above := t.isBelow(n, i) && (i.Failure.Call == nil || n.Failure.Call != nil)
		switch {
		case t.carries(n, i):
			if tr.waiting[n.ID] == n {
				tr.withdraw(n)
				return append(withdrawn, n)
			}
		case above, t.carries(i, n):
			tr.withdraw(i)
			withdrawn = append(withdrawn, i)
		}
	}
	return withdrawn
}

// withdraw gives up an incident that waits. The caller holds mu.
func (tr *Tracker) withdraw(i *Incident) {
	delete(tr.waiting, i.ID)
	tr.leave(i, i.Span.Trace)
	tr.bytes -= int64(i.Failure.Weight)
	tr.reserve(i, -1)
}

// WaitingAt returns the incident that waits at a span.
func (tr *Tracker) WaitingAt(key failure.SpanKey) (uint64, bool) {
	return tr.find(func(i *Incident) bool { return i.Span == key && !key.Trace.IsEmpty() })
}

// find returns an incident that waits and fits.
func (tr *Tracker) find(fits func(*Incident) bool) (uint64, bool) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	for id, i := range tr.waiting {
		if fits(i) {
			return id, true
		}
	}
	return 0, false
}

// Release hands the incidents whose waiting is over to the writers, the oldest first; with
// all, every one that waits.
func (tr *Tracker) Release(now time.Time, all bool) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	over := mlattr.Where(maps.Values(tr.waiting), func(i *Incident) bool { return all || !i.due.After(now) })
	slices.SortFunc(over, func(a, b *Incident) int { return cmp.Compare(a.ID, b.ID) })
	for _, i := range over {
		tr.finish(i, true)
	}
}

// Close hands all incidents to the writers, and ends their channel. None is opened afterwards.
func (tr *Tracker) Close() {
	tr.mu.Lock()
	tr.cfg.Queue = 0
	tr.mu.Unlock()
	tr.Release(time.Time{}, true)
	close(tr.ready)
}

// Ready returns the channel of the incidents that are to be written. A writer
// that takes one calls Begin, and Done at the end.
func (tr *Tracker) Ready() <-chan *Incident { return tr.ready }

// Begin gives back the room of an incident that is written now.
func (tr *Tracker) Begin(i *Incident) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.reserve(i, -1)
}

// Done gives up the memory of an incident that was written.
func (tr *Tracker) Done(i *Incident) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.bytes -= int64(i.Failure.Weight)
}

// Sizes is what a Tracker holds.
type Sizes struct {
	// Traces is the number of traces, and Waiting that of incidents that wait.
	Traces, Waiting int
	// Reserved is the number of incidents that wait or are to be written, and Newcomers
	// that of services which are not established.
	Reserved, Newcomers int
	// Bytes is the memory that they take.
	Bytes int64
}

// Sizes returns what the tracker holds.
func (tr *Tracker) Sizes() Sizes {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return Sizes{
		Traces: len(tr.traces), Waiting: len(tr.waiting), Reserved: tr.reserved, Newcomers: tr.newcomers, Bytes: tr.bytes,
	}
}
