package correlate

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/cache"
)

// Limits is how much a Store remembers. An id has at most 128 bytes, so the
// limits bound the memory of all stores too: 138 MiB with ids of 36 bytes, 198 MiB
// with ids of 128.
type Limits struct {
	Traces, Joins, Answers, Processes, Requests int
	// Spans and Usage are of all traces together: the spans that hand something
	// down, and those above a span that used tokens.
	Spans, Usage int
}

// DefaultLimits returns the limits that are in use.
func DefaultLimits() Limits {
	return Limits{Traces: 32768, Joins: 32768, Answers: 16384, Processes: 4096, Requests: 4096, Spans: 65536, Usage: 32768}
}

const (
	// keyAge is how long the keys of a trace or request outlive their last use.
	keyAge = 15 * time.Minute
	// answerAge is the same for the ids of answers. Two spans of one request arrive
	// at nearly the same time.
	answerAge = 2 * time.Minute
)

// Store is what earlier requests said of traces, ids and answers. It is safe
// for concurrent use. A batch takes its lock to look up and to store, not while keys come
// down or while pdata is read or written.
type Store struct {
	cache.Guard
	limits Limits
	traces *cache.LRU[pcommon.TraceID, traceMemory]
	// joins are by a hash of the id by which spans of different traces find each other.
	joins *cache.LRU[uint64, cache.Bytes]
	// arena has what traces and joins remember, of which scratch is a copy.
	arena   cache.Arena
	scratch []byte
	// spans and above are how much the traces remember together.
	spans, above tally
	// requests has the latest requests of each process by their usage, and answers
	// those of each service by the id of their answer.
	requests, answers *cache.LRU[twinKey, alike]
	// latest has the latest requests of each process by when they began.
	latest *cache.LRU[twinKey, alike]
	// begun is when the first request of each process began, by its model.
	begun *cache.LRU[twinKey, pcommon.Timestamp]
	// apart are the instrumentations of a process, with provider and model, whose input is
	// without the tokens of caches.
	apart *cache.LRU[twinKey, struct{}]
	// described are services, as hashes, whose spans describe requests to models.
	described *cache.LRU[uint64, struct{}]
	// judged is how many spans look like requests, and scopes those of scopes.
	judged Judged
	scopes map[string]*Judged
	// epochs has those of each process, as a hash, that ended last.
	epochs *cache.LRU[uint64, []epoch]
}

// NewStore returns an empty Store.
func NewStore(now func() time.Time, limits Limits) *Store {
	s := &Store{
		Guard: cache.Guard{Now: now}, limits: limits,
		answers:   cache.NewLRU[twinKey, alike](limits.Answers, answerAge, nil),
		epochs:    cache.NewLRU[uint64, []epoch](limits.Processes, keyAge, nil),
		requests:  cache.NewLRU[twinKey, alike](limits.Requests, keyAge, nil),
		latest:    cache.NewLRU[twinKey, alike](limits.Requests, answerAge, nil),
		begun:     cache.NewLRU[twinKey, pcommon.Timestamp](limits.Requests, keyAge, nil),
		apart:     cache.NewLRU[twinKey, struct{}](limits.Requests, keyAge, nil),
		described: cache.NewLRU[uint64, struct{}](limits.Processes, keyAge, nil),
	}
	s.joins = cache.NewLRU[uint64](limits.Joins, keyAge, s.arena.Free)
	s.traces = cache.NewLRU[pcommon.TraceID](limits.Traces, keyAge, func(m *traceMemory) {
		s.spans.n -= m.spans.len()
		s.above.n -= m.above.len()
		for _, part := range [...]*cache.Bytes{&m.agreement, &m.spans.old, &m.spans.young, &m.above.old, &m.above.young} {
			s.arena.Free(part)
		}
	})
	return s
}

// Sizes returns the sizes of the indexes.
func (s *Store) Sizes() []cache.Size {
	s.Lock()
	defer s.Unlock()
	return []cache.Size{
		s.answers.Size("answers"),
		s.epochs.Size("epochs"),
		s.joins.Size("joins"),
		s.requests.Size("requests"),
		{Index: "spans", Entries: s.spans.n, Evicted: s.spans.evicted},
		s.traces.Size("traces"),
		{Index: "usage", Entries: s.above.n, Evicted: s.above.evicted},
	}
}

// join takes in what the spans of each id say, and replaces it by what all
// spans of that id ever said.
func (s *Store) join(groups []joinGroup, texts *symbols, now time.Time) {
	for i := range groups {
		g := &groups[i]
		key := cache.Hash(texts.text(g.id)) + uint64(g.key) // #nosec G115 -- an index
		known := s.joins.Find(key, now)
		if known == nil {
			others := g.values
			if others[g.key] = 0; others == (set[symbol]{}) {
				continue
			}
			known = s.joins.Insert(key, now)
		}
		s.exchange(known, &g.agreement, texts)
	}
}

// joinTraces does the same by trace, and notes what else is known of it.
func (s *Store) joinTraces(traces []trace, texts *symbols, now time.Time) {
	for i := range traces {
		t := &traces[i]
		known := s.traces.Find(t.id, now)
		if known == nil {
			if t.values == (set[symbol]{}) {
				continue
			}
			known = s.traces.Insert(t.id, now)
		}
		s.exchange(&known.agreement, &t.agreement, texts)
		t.handsDown, t.watched = known.spans.len() > 0, known.above.len() > 0
	}
}

func (s *Store) exchange(known *cache.Bytes, batch *agreement[symbol], texts *symbols) {
	a := readAgreement(s.read(*known))
	if exchange(&a, batch, texts) {
		s.scratch = appendAgreement(s.scratch[:0], &a)
		s.arena.Free(known)
		s.arena.Append(known, s.scratch)
	}
}

// read returns a copy of bytes, valid until the next call.
func (s *Store) read(from cache.Bytes) []byte {
	s.scratch = s.arena.Read(s.scratch[:0], from)
	return s.scratch
}

// readAll is read for the entries of both generations, the newest last.
func (s *Store) readAll(from *generations) []byte {
	s.scratch = s.arena.Read(s.arena.Read(s.scratch[:0], from.old), from.young)
	return s.scratch
}

// add adds encoded entries, at most half of the limit, and counts them in all.
func (s *Store) add(to *generations, data []byte, entries, limit int, all *tally) {
	if to.youngLen+entries > limit/2 {
		s.arena.Free(&to.old)
		all.n -= to.oldLen
		all.evicted += int64(to.oldLen)
		*to = generations{old: to.young, oldLen: to.youngLen}
	}
	s.arena.Append(&to.young, data)
	to.youngLen += entries
	all.n += entries
}

// finder finds what spans hand down and what traces agree about, for one request. Of a
// long trace that is asked for often it makes a map: any client can send a long trace, and
// a request that asks for each of its spans. The maps are copies, so the store may be
// unlocked between calls.
type finder struct {
	asked map[pcommon.TraceID]int
	long  map[pcommon.TraceID]map[pcommon.SpanID][]byte
	// agreed is what the trace of agrees about.
	of     pcommon.TraceID
	agreed set[string]
}

// handed returns what a span of a trace hands down. The store is locked.
func (f *finder) handed(s *Store, wanted spanKey, memory *traceMemory) set[string] {
	if !f.often(wanted.trace, memory) {
		return readKeys(findHanded(s.readAll(&memory.spans), wanted.id))
	}
	at, made := f.long[wanted.trace]
	if !made {
		at = mapHanded(slices.Clone(s.readAll(&memory.spans)), memory.spans.len())
		mlattr.Put(&f.long, wanted.trace, at)
	}
	return readKeys(at[wanted.id])
}

// often reports whether a trace is long and has been asked for often.
func (f *finder) often(id pcommon.TraceID, memory *traceMemory) bool {
	if memory.spans.len() <= maxSearched {
		return false
	}
	mlattr.Put(&f.asked, id, f.asked[id]+1)
	return f.asked[id] > maxSearched
}

// known returns what is known of a span and of its trace. The store is locked.
func (f *finder) known(s *Store, wanted spanKey, now time.Time) (k known) {
	memory := s.traces.Find(wanted.trace, now)
	if memory == nil {
		return k
	}
	if !wanted.id.IsEmpty() {
		k.span = f.handed(s, wanted, memory)
	}
	if f.of != wanted.trace {
		a := readAgreement(s.read(memory.agreement))
		f.of, f.agreed = wanted.trace, a.agreed()
	}
	k.trace = f.agreed
	return k
}

// remember keeps what the spans of each trace hand down.
func (s *Store) remember(b *branches, now time.Time) {
	for i := range b.traces {
		t := &b.traces[i]
		if t.firstHanded == t.endHanded {
			continue
		}
		known := s.traces.Ensure(t.id, now)
		for more := range slices.Chunk(b.handed[t.firstHanded:t.endHanded], maxTraceSpans/2) {
			s.scratch = b.appendHanded(s.scratch[:0], more)
			s.add(&known.spans, s.scratch, len(more), maxTraceSpans, &s.spans)
		}
		s.shrink()
	}
}

// shrink forgets traces until the rest together remember no more than they may.
// One trace alone never exceeds that.
func (s *Store) shrink() {
	for s.spans.n > s.limits.Spans || s.above.n > s.limits.Usage {
		spans, above := s.spans.n, s.above.n
		s.traces.EvictOldest()
		s.spans.evicted += int64(spans - s.spans.n)
		s.above.evicted += int64(above - s.above.n)
	}
}

// watched adds the searches that earlier batches began below spans of this one.
func (s *Store) watched(b *Batch, now time.Time) {
	for i := range b.traces {
		t := &b.traces[i]
		if !t.watched {
			continue
		}
		known := s.traces.Find(t.id, now)
		if known == nil {
			continue // the other traces of the batch have filled the store
		}
		list := s.readAll(&known.above)
		for at := t.last; at != none; at = b.spans[at].before {
			for j := range known.above.len() {
				if above := aboveAt(list, j); above.id == b.spans[at].id {
					b.usage.begin(above.kind, search{at: at, earlier: true, service: above.service, status: above.status})
				}
			}
		}
	}
}

// watch remembers spans for watched.
func (s *Store) watch(spans []covering, now time.Time) {
	for i := range spans {
		c := &spans[i]
		known := s.traces.Ensure(c.trace, now)
		if containsAbove(s.readAll(&known.above), c.spanAbove) {
			continue
		}
		s.scratch = c.appendTo(s.scratch[:0])
		s.add(&known.above, s.scratch, 1, maxTraceAbove, &s.above)
		s.shrink()
	}
}

// addEpochs remembers the epochs of processes, and adds those that it knows.
func (s *Store) addEpochs(byProcess map[uint64][]epoch) {
	now := s.Lock()
	defer s.Unlock()
	for process, epochs := range byProcess {
		if known := s.epochs.Find(process, now); known != nil {
			epochs = append(epochs, *known...)
		}
		epochs = mergeEpochs(epochs)
		byProcess[process] = epochs
		if len(epochs) > 0 {
			known := s.epochs.Ensure(process, now)
			*known = append((*known)[:0], latestEpochs(epochs)...)
		}
	}
}
