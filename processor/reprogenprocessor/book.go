package reprogenprocessor

import (
	"container/list"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/fairness"
)

// minRewrite is the least time between two rewritings of one trace.json,
// unless the second one completes it.
const minRewrite = time.Second

// book keeps the incidents from when they are seen until nothing more can be
// added to them, and the spans of their traces. It is safe for concurrent use;
// its lock is held for map operations and never while pdata is read.
type book struct {
	wait, window time.Duration
	limits       TracesConfig
	standings    *fairness.Standings
	kept         filter

	mu      sync.Mutex
	traces  map[pcommon.TraceID]*list.Element // of *heldTrace
	order   *list.List                        // the one whose last incident is the oldest first
	waiting map[uint64]*incident
	ready   []*incident // given up early to make room
	dirty   map[*incident]struct{}
	jobs    map[string]*incident
	bytes   int64
}

func newBook(cfg *Config, standings *fairness.Standings) *book {
	return &book{
		standings: standings,
		wait:      cfg.SiblingWait, window: cfg.EnrichWindow, limits: cfg.Traces,
		traces:  make(map[pcommon.TraceID]*list.Element),
		order:   list.New(),
		waiting: make(map[uint64]*incident),
		dirty:   make(map[*incident]struct{}),
		jobs:    make(map[string]*incident),
	}
}

func (b *book) trace(id pcommon.TraceID) *heldTrace {
	if e, ok := b.traces[id]; ok {
		return e.Value.(*heldTrace)
	}
	return nil
}

// open takes an incident in. It is refused where there is no room for it.
func (b *book) open(i *incident, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	weight := int64(i.failure.Weight)
	if !b.makeRoom(weight, i.trace, i.failure.SentBy) {
		return false
	}
	b.bytes += weight
	i.stage, i.due = stageWaiting, now.Add(b.wait)
	b.waiting[i.id] = i
	if !i.trace.IsEmpty() {
		b.hold(i, now)
	}
	if i.run != "" && i.rank != "" && len(b.jobs) < b.limits.Held {
		if first := b.jobs[i.run]; first == nil || first.rank == i.rank || first.stage >= stageWritten {
			b.jobs[i.run] = i
		}
	}
	return true
}

// hold keeps the incident's trace.
func (b *book) hold(i *incident, now time.Time) {
	e, ok := b.traces[i.trace]
	if ok {
		b.order.MoveToBack(e)
	} else {
		if len(b.traces) >= b.limits.Held {
			b.share(i.trace, i.failure.SentBy, 1, int64(b.limits.Held), func(*heldTrace) int64 { return 1 })
		}
		e = b.order.PushBack(&heldTrace{id: i.trace, origin: i.failure.SentBy, spans: make(map[pcommon.SpanID]*heldSpan)})
		b.traces[i.trace] = e
		b.kept.add(i.trace)
	}
	t := e.Value.(*heldTrace)
	t.incidents = append(t.incidents, i)
	t.expires = now.Add(max(b.wait, b.window))
}

// makeRoom drops traces until weight more bytes fit that an origin has for one of
// them. It reports whether they do: nobody has to give up a share for them.
func (b *book) makeRoom(weight int64, id pcommon.TraceID, origin fairness.Origin) bool {
	for b.bytes+weight > b.limits.Bytes {
		if !b.share(id, origin, weight, b.limits.Bytes, (*heldTrace).weight) {
			return false
		}
	}
	return true
}

// share drops the traces that pass their origins' shares of limit, the oldest of
// an origin first, where weight is added to the one with the id. That one is not
// dropped. It reports whether another one was.
func (b *book) share(id pcommon.TraceID, origin fairness.Origin, weight, limit int64, weigh func(*heldTrace) int64) (dropped bool) {
	held := make([]*list.Element, 0, b.order.Len())
	items := []fairness.Item{{Path: b.standings.Path(origin), Weight: weight}}
	for e := b.order.Back(); e != nil; e = e.Prev() {
		if t := e.Value.(*heldTrace); t.id == id {
			items[0].Weight += weigh(t)
		} else {
			held = append(held, e)
			items = append(items, fairness.Item{Path: b.standings.Path(t.origin), Weight: weigh(t)})
		}
	}
	for i, kept := range fairness.KeepWithRoom(items, limit)[1:] {
		if !kept {
			b.drop(held[i])
			dropped = true
		}
	}
	return dropped
}

// drop forgets a trace. Incidents that still wait have their story told and
// are ready to be written.
func (b *book) drop(e *list.Element) {
	t := e.Value.(*heldTrace)
	for _, i := range t.incidents {
		switch i.stage {
		case stageWaiting:
			b.close(i, t)
			delete(b.waiting, i.id)
			i.stage = stageQueued
			b.ready = append(b.ready, i)
		case stageQueued:
			b.close(i, t)
		case stageWritten:
			b.free(i)
		}
		delete(b.dirty, i)
	}
	b.order.Remove(e)
	delete(b.traces, t.id)
	b.kept.remove(t.id)
	b.bytes -= t.bytes
}

// close keeps of a trace that is forgotten the spans above an incident and the
// failed ones.
func (b *book) close(i *incident, t *heldTrace) {
	f := i.story(t)
	f.OmittedSpans += len(f.Others)
	f.Others = nil
	above, _ := t.above(i)
	kept := int64(0)
	for _, s := range above {
		kept += s.weight
	}
	for _, s := range t.order {
		if s.failed && s.id != i.span && !slices.Contains(above, s) {
			kept += s.weight
		}
	}
	f.Weight += int(kept)
	b.bytes += kept
	i.failure = f
}

// free gives an incident's failure up.
func (b *book) free(i *incident) {
	b.bytes -= int64(i.failure.Weight)
	i.stage = stageGone
	i.failure = &failure.Failure{}
	if b.jobs[i.run] == i {
		delete(b.jobs, i.run)
	}
}

// known reports whether an incident still waits, and whether n has more to
// tell of it.
func (b *book) known(id uint64, n *incident) (waits, better bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i, ok := b.waiting[id]
	return ok, ok && i.better(n, b.trace(n.trace))
}

// improve puts n in place of what an incident had, if it still waits.
func (b *book) improve(id uint64, n *incident, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i, ok := b.waiting[id]
	if !ok || !i.better(n, b.trace(n.trace)) || !b.makeRoom(int64(n.failure.Weight), n.trace, n.failure.SentBy) || i.stage != stageWaiting {
		return
	}
	was, weight := i.trace, int64(i.failure.Weight)
	i.take(n)
	b.bytes += int64(i.failure.Weight) - weight
	b.move(i, was, now)
}

// move keeps an incident's trace in place of the one that it was part of.
func (b *book) move(i *incident, was pcommon.TraceID, now time.Time) {
	if i.trace == was {
		return
	}
	if t := b.trace(was); t != nil {
		t.incidents = slices.DeleteFunc(t.incidents, func(other *incident) bool { return other == i })
	}
	if !i.trace.IsEmpty() {
		b.hold(i, now)
	}
}

// supersede withdraws the incidents that wait for a span above n: the error
// began at n. One that has a call is kept, if n has none. Of a model's call and
// the HTTP request below it that of the request is withdrawn, which may be n.
func (b *book) supersede(n *incident) (withdrawn []*incident) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.trace(n.trace)
	if t == nil {
		return nil
	}
	for _, i := range t.incidents {
		if i.stage != stageWaiting || i.span == n.span {
			continue
		}
		above := t.isBelow(n, i) && (i.failure.Call == nil || n.failure.Call != nil)
		switch {
		case carried(t, n, i):
			if b.waiting[n.id] == n {
				b.withdraw(n)
				return append(withdrawn, n)
			}
		case above, carried(t, i, n):
			b.withdraw(i)
			withdrawn = append(withdrawn, i)
		}
	}
	return withdrawn
}

// carried reports whether an incident is that of the HTTP request of the other,
// a model's call.
func carried(t *heldTrace, request, call *incident) bool {
	return call.explains && request.request && !request.explains && request.failure.Call == nil && t.isBelow(request, call)
}

// withdraw ends an incident that waits. The caller holds mu.
func (b *book) withdraw(i *incident) {
	delete(b.waiting, i.id)
	b.free(i)
}

// byCorrelation returns the incident that waits for the call that another
// process recorded.
func (b *book) byCorrelation(id string) (uint64, bool) {
	if id == "" {
		return 0, false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, i := range b.waiting {
		if i.correlation == id && i.failure.Call == nil {
			return i.id, true
		}
	}
	return 0, false
}

// update changes the failure of an incident that waits.
func (b *book) update(id uint64, change func(f *failure.Failure)) (group string, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i, ok := b.waiting[id]
	if !ok {
		return "", false
	}
	f := *i.failure
	change(&f)
	b.bytes += int64(f.Weight) - int64(i.failure.Weight)
	i.failure = &f
	return i.group, true
}

// at returns the incident that waits at a span.
func (b *book) at(trace pcommon.TraceID, span pcommon.SpanID) (uint64, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t := b.trace(trace); t != nil {
		for _, i := range t.incidents {
			if i.span == span && i.stage == stageWaiting {
				return i.id, true
			}
		}
	}
	return 0, false
}

// holds reports whether a trace is kept.
func (b *book) holds(id pcommon.TraceID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.trace(id) != nil
}

// chains returns the spans above the incidents of a trace, where parents says
// who is whose parent in a batch.
func (b *book) chains(id pcommon.TraceID, parents map[pcommon.SpanID]pcommon.SpanID) map[pcommon.SpanID]bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	above := make(map[pcommon.SpanID]bool)
	t := b.trace(id)
	if t == nil {
		return above
	}
	for _, i := range t.incidents {
		above[i.span] = true
		at := i.parent
		for range maxAncestors {
			above[at] = true
			next, ok := parents[at]
			if s := t.spans[at]; !ok && s != nil {
				next, ok = s.parent, true
			}
			if !ok {
				break
			}
			at = next
		}
	}
	return above
}

// put keeps copies of spans of a trace that is held.
func (b *book) put(id pcommon.TraceID, spans []*heldSpan) (late int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.trace(id)
	if t == nil {
		return 0
	}
	before := t.bytes
	changed := false
	for _, s := range spans {
		for _, i := range t.incidents {
			i.meet(s)
		}
		if t.put(s) {
			changed = changed || s.failed
		}
	}
	t.trim(b.limits.SpansPerTrace)
	b.bytes += t.bytes - before
	for _, less := range [...]func(){func() { t.trim(0) }, t.clear} {
		if !b.makeRoom(0, id, t.origin) {
			before = t.bytes
			less()
			b.bytes += t.bytes - before
		}
	}
	for _, i := range t.incidents {
		if i.stage != stageWritten && i.stage != stageQueued || i.since.IsZero() {
			continue
		}
		above, complete := t.above(i)
		if len(above) > i.above || complete && !i.complete {
			late += len(above) - i.above
			i.above = len(above)
			b.dirty[i] = struct{}{}
		} else if changed {
			b.dirty[i] = struct{}{}
		}
	}
	return late
}

// due returns the incidents whose waiting is over, with their stories; all of
// them at the end.
func (b *book) due(now time.Time, all bool) []*incident {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := b.ready
	b.ready = nil
	for _, i := range b.waiting {
		if all || !i.due.After(now) {
			delete(b.waiting, i.id)
			i.stage = stageQueued
			out = append(out, i)
		}
	}
	// The oldest first: a map has no order.
	slices.SortFunc(out, func(a, c *incident) int { return int(a.id) - int(c.id) })
	return out
}

// pressed reports whether incidents had to give up their waiting.
func (b *book) pressed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.ready) > 0
}

// tell returns what is to be written of an incident.
func (b *book) tell(i *incident, now time.Time) *failure.Failure {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := i.story(b.trace(i.trace))
	i.above, i.complete, i.since = len(f.Ancestors), f.Complete, now
	return f
}

// wrote notes that an incident has an artefact. What only the script needs is
// given up.
func (b *book) wrote(i *incident, name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i.stage == stageGone {
		return
	}
	i.file, i.stage = name, stageWritten
	if b.trace(i.trace) == nil || b.window == 0 {
		if b.jobs[i.run] != i || b.window == 0 {
			b.free(i)
			return
		}
	}
	f := *i.failure
	if f.Call != nil {
		b.bytes -= int64(f.Call.Weight)
		f.Weight -= f.Call.Weight
		f.Call = nil
	}
	i.failure = &f
}

// lost notes that an incident got no artefact.
func (b *book) lost(i *incident) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i.stage == stageGone {
		return
	}
	b.free(i)
	e, ok := b.traces[i.trace]
	if ok && !slices.ContainsFunc(e.Value.(*heldTrace).incidents, func(other *incident) bool { return other.stage != stageGone }) {
		b.drop(e)
	}
}

// changed returns the incidents whose trace.json is to be rewritten.
func (b *book) changed(now time.Time, all bool) []*incident {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []*incident
	for i := range b.dirty {
		if i.stage == stageGone {
			delete(b.dirty, i)
			continue
		}
		if i.stage != stageWritten {
			continue
		}
		complete := i.complete
		if t := b.trace(i.trace); t != nil {
			_, complete = t.above(i)
		}
		if all || complete && !i.complete || now.Sub(i.since) >= max(minRewrite, b.wait) {
			delete(b.dirty, i)
			out = append(out, i)
		}
	}
	return out
}

// again asks for another rewriting.
func (b *book) again(i *incident) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i.stage == stageWritten {
		b.dirty[i] = struct{}{}
	}
}

// expire forgets what is too old to be added to.
func (b *book) expire(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for e := b.order.Front(); e != nil && !e.Value.(*heldTrace).expires.After(now); e = b.order.Front() {
		b.drop(e)
	}
	for run, i := range b.jobs {
		if i.stage == stageWritten && now.Sub(i.since) >= b.window {
			b.free(i)
			delete(b.jobs, run)
		}
	}
}

// sizes returns the number of traces that are held and of failures that wait.
func (b *book) sizes() (traces, waiting int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.traces), len(b.waiting)
}
