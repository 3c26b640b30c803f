package incident

import (
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/detect"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/lru"
)

// Config bounds a Tracker.
type Config struct {
	// Wait is how long an incident waits for more before it is written.
	Wait time.Duration
	// Traces is the number of traces, and Spans the number of spans of each.
	Traces, Spans int
	// Bytes is the memory for all of them.
	Bytes int64
}

// Tracker keeps the incidents from when they are seen until they are written, and the
// spans of their traces. It is safe for concurrent use;
// its lock is held for map operations and never while pdata is read.
type Tracker struct {
	cfg        Config
	history    *share.History
	kinds      kind.Registry
	filter     *detect.Filter
	calls      *Pending[string, Recording]
	exceptions *Pending[failure.SpanKey, failure.Error]

	mu sync.Mutex
	// traces has the one whose last incident is the oldest first.
	traces  *lru.Cache[pcommon.TraceID, *trace]
	waiting map[uint64]*Incident
	ready   []*Incident // whose waiting was ended to make room
	bytes   int64
}

// NewTracker returns an empty Tracker. It keeps filter as the set of its traces.
func NewTracker(cfg Config, kinds kind.Registry, history *share.History, filter *detect.Filter) *Tracker {
	// Half as much memory again is for what may belong to a failure that has
	// not come yet.
	return &Tracker{
		cfg: cfg, history: history, kinds: kinds, filter: filter,
		waiting: make(map[uint64]*Incident),
		// There is room for one more than cfg.Traces, so that share alone drops.
		traces:     lru.New[pcommon.TraceID, *trace](cfg.Traces+1, nil),
		calls:      NewPending[string, Recording](cfg.Traces, cfg.Bytes/4, history.Path),
		exceptions: NewPending[failure.SpanKey, failure.Error](cfg.Traces, cfg.Bytes/4, history.Path),
	}
}

func (tr *Tracker) trace(id pcommon.TraceID) *trace {
	t, _ := tr.traces.Peek(id)
	return t
}

// Open begins to track an incident. It returns false if there is no memory for
// it.
func (tr *Tracker) Open(i *Incident, now time.Time) bool {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	weight := int64(i.Failure.Weight)
	if !tr.makeRoom(weight, i.trace, i.Failure.SentBy) {
		return false
	}
	tr.bytes += weight
	i.due = now.Add(tr.cfg.Wait)
	tr.waiting[i.ID] = i
	if !i.trace.IsEmpty() {
		tr.keepTrace(i)
	}
	return true
}

// keepTrace keeps the incident's trace.
func (tr *Tracker) keepTrace(i *Incident) {
	t, ok := tr.traces.Get(i.trace)
	if !ok {
		if tr.traces.Len() >= tr.cfg.Traces {
			tr.share(i.trace, i.Failure.SentBy, 1, int64(tr.cfg.Traces), func(*trace) int64 { return 1 })
		}
		t = &trace{id: i.trace, origin: i.Failure.SentBy, spans: make(map[pcommon.SpanID]*Span)}
		tr.traces.Add(i.trace, t)
		tr.filter.Add(i.trace)
	}
	t.incidents = append(t.incidents, i)
}

// makeRoom drops traces until there is room for weight more bytes, of an origin
// and for the trace with the id. It returns false if others would have to give up
// their share.
func (tr *Tracker) makeRoom(weight int64, id pcommon.TraceID, origin share.Origin) bool {
	for tr.bytes+weight > tr.cfg.Bytes {
		if !tr.share(id, origin, weight, tr.cfg.Bytes, (*trace).weight) {
			return false
		}
	}
	return true
}

// share drops the traces that exceed their origins' shares of limit, the oldest of
// an origin first, where weight is added to the one with the id. That one is not
// dropped. It reports whether another one was.
func (tr *Tracker) share(id pcommon.TraceID, origin share.Origin, weight, limit int64, weigh func(*trace) int64) (dropped bool) {
	kept := make([]*trace, 0, tr.traces.Len())
	items := []share.Item{{Path: tr.history.Path(origin), Weight: weight}}
	for _, t := range slices.Backward(tr.traces.Values()) {
		if t.id == id {
			items[0].Weight += weigh(t)
		} else {
			kept = append(kept, t)
			items = append(items, share.Item{Path: tr.history.Path(t.origin), Weight: weigh(t)})
		}
	}
	for i, stays := range share.KeepWithRoom(items, limit)[1:] {
		if !stays {
			tr.drop(kept[i])
			dropped = true
		}
	}
	return dropped
}

// drop forgets a trace. The incidents that wait are to be written.
func (tr *Tracker) drop(t *trace) {
	for _, i := range slices.Clone(t.incidents) {
		tr.take(i, false)
		tr.ready = append(tr.ready, i)
	}
}

// take ends an incident's waiting. The spans above it and the failed ones of its trace go
// with it, and the others if there is room for them.
func (tr *Tracker) take(i *Incident, room bool) {
	delete(tr.waiting, i.ID)
	f := *i.Failure
	f.Fingerprint = i.Group
	i.Failure = &f
	t := tr.trace(i.trace)
	if t == nil {
		return
	}
	keep := func(spans *[]failure.Span, s *Span) {
		*spans = append(*spans, s.copied)
		f.Weight += int(s.weight)
		tr.bytes += s.weight
	}
	above, complete := t.above(i)
	f.Complete, f.OmittedSpans = complete, t.omitted
	known := map[pcommon.SpanID]bool{i.span: true}
	for _, s := range above {
		known[s.id] = true
		keep(&f.Ancestors, s)
	}
	for _, s := range t.order {
		switch {
		case known[s.id]:
		case s.failed:
			keep(&f.Siblings, s)
		case room:
			keep(&f.Others, s)
		default:
			f.OmittedSpans++
		}
	}
	tr.leave(i, i.trace)
}

// leave takes an incident from a trace, which is forgotten with its last one.
func (tr *Tracker) leave(i *Incident, id pcommon.TraceID) {
	t := tr.trace(id)
	if t == nil {
		return
	}
	t.incidents = slices.DeleteFunc(t.incidents, func(other *Incident) bool { return other == i })
	if len(t.incidents) == 0 {
		tr.traces.Remove(id)
		tr.filter.Remove(id)
		tr.bytes -= t.bytes
	}
}

// Waits reports whether an incident still waits, and whether n improves it.
func (tr *Tracker) Waits(id uint64, n *Incident) (waits, improves bool) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	i, ok := tr.waiting[id]
	return ok, ok && i.improvedBy(n, tr.trace(n.trace))
}

// Improve replaces what an incident has by what n has, if it still waits and n has
// more.
func (tr *Tracker) Improve(id uint64, n *Incident) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	i, ok := tr.waiting[id]
	if !ok || !i.improvedBy(n, tr.trace(n.trace)) || !tr.makeRoom(int64(n.Failure.Weight), n.trace, n.Failure.SentBy) || tr.waiting[id] != i {
		return
	}
	was, weight := i.trace, int64(i.Failure.Weight)
	i.improve(n)
	tr.bytes += int64(i.Failure.Weight) - weight
	tr.move(i, was)
}

// move keeps an incident's trace, and no longer the one that it was part of.
func (tr *Tracker) move(i *Incident, was pcommon.TraceID) {
	if i.trace == was {
		return
	}
	tr.leave(i, was)
	if !i.trace.IsEmpty() {
		tr.keepTrace(i)
	}
}

// Supersede withdraws and returns the incidents that wait for a span above n: the
// error began at n. One that has a call is kept if n has none. Of a model's call
// and the HTTP request below it, that of the request is withdrawn, which may be n.
func (tr *Tracker) Supersede(n *Incident) (withdrawn []*Incident) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	t := tr.trace(n.trace)
	if t == nil {
		return nil
	}
	for _, i := range slices.Clone(t.incidents) {
		if i.span == n.span {
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
	tr.leave(i, i.trace)
	tr.bytes -= int64(i.Failure.Weight)
}

// WaitingAt returns the incident that waits at a span.
func (tr *Tracker) WaitingAt(key failure.SpanKey) (uint64, bool) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	if t := tr.trace(key.Trace); t != nil {
		for _, i := range t.incidents {
			if i.span == key.Span {
				return i.ID, true
			}
		}
	}
	return 0, false
}

// has reports whether a trace is kept.
func (tr *Tracker) has(id pcommon.TraceID) bool {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.trace(id) != nil
}

// addSpans keeps copies of spans of a trace that is kept.
func (tr *Tracker) addSpans(id pcommon.TraceID, spans []*Span) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	t := tr.trace(id)
	if t == nil {
		return
	}
	before := t.bytes
	for _, s := range spans {
		for _, i := range t.incidents {
			i.adopt(s)
		}
		t.put(s)
	}
	t.trim(tr.cfg.Spans)
	tr.bytes += t.bytes - before
	for _, less := range [...]func(){func() { t.trim(0) }, t.clear} {
		if !tr.makeRoom(0, id, t.origin) {
			before = t.bytes
			less()
			tr.bytes += t.bytes - before
		}
	}
}

// Due returns the incidents whose waiting is over, the oldest first; with all,
// every one that waits.
func (tr *Tracker) Due(now time.Time, all bool) []*Incident {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	out := tr.ready
	tr.ready = nil
	for _, i := range tr.waiting {
		if all || !i.due.After(now) {
			tr.take(i, true)
			out = append(out, i)
		}
	}
	slices.SortFunc(out, func(a, c *Incident) int { return int(a.ID) - int(c.ID) })
	return out
}

// DueNow reports whether incidents had to end their waiting.
func (tr *Tracker) DueNow() bool {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.cfg.Wait == 0 || len(tr.ready) > 0
}

// Done gives up the memory of an incident that Due returned.
func (tr *Tracker) Done(i *Incident) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.bytes -= int64(i.Failure.Weight)
}

// Sizes is what a Tracker holds.
type Sizes struct {
	// Traces is the number of traces, and Waiting that of incidents that wait.
	Traces, Waiting int
	// Bytes is the memory that they take.
	Bytes int64
}

// Sizes returns what the tracker holds.
func (tr *Tracker) Sizes() Sizes {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return Sizes{Traces: tr.traces.Len(), Waiting: len(tr.waiting), Bytes: tr.bytes}
}
