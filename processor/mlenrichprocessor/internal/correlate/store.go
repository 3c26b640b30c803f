package correlate

import (
	"hash/maphash"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/cache"
)

// Limits is how much a Store remembers. An id has at most 128 bytes, so the
// limits bound its memory too: see the README.
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
// for concurrent use, and its lock is not held while pdata is read or written.
type Store struct {
	now    func() time.Time
	limits Limits
	seed   maphash.Seed

	mu     sync.Mutex
	traces *cache.LRU[pcommon.TraceID, traceMemory]
	joins  *cache.LRU[joinKey, cache.Bytes]
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
	// described are services, as hashes, whose spans describe requests to models.
	described *cache.LRU[uint64, struct{}]
	// joined is how many spans were taken for repeated requests.
	joined Joined
	// epochs has those of each process.
	epochs *cache.LRU[string, recentEpochs]
}

// joinKey is an id by which spans of different traces find each other, as a
// hash.
type joinKey struct {
	key int
	id  uint64
}

// NewStore returns an empty Store.
func NewStore(now func() time.Time, limits Limits) *Store {
	s := &Store{now: now, limits: limits, seed: maphash.MakeSeed(),
		answers:  cache.NewLRU[twinKey, alike](limits.Answers, answerAge, nil),
		epochs:   cache.NewLRU[string, recentEpochs](limits.Processes, keyAge, nil),
		requests: cache.NewLRU[twinKey, alike](limits.Requests, keyAge, nil),
		latest:   cache.NewLRU[twinKey, alike](limits.Requests, answerAge, nil),

		described: cache.NewLRU[uint64, struct{}](limits.Processes, keyAge, nil),
	}
	s.joins = cache.NewLRU[joinKey](limits.Joins, keyAge, s.arena.Free)
	s.traces = cache.NewLRU[pcommon.TraceID](limits.Traces, keyAge, func(m *traceMemory) {
		s.spans.n -= m.spansLen
		s.above.n -= m.aboveLen()
		s.arena.Free(&m.agreement)
		s.arena.Free(&m.spans)
		s.arena.Free(&m.above)
	})
	return s
}

// Sizes returns the sizes of the indexes.
func (s *Store) Sizes() []cache.Size {
	s.mu.Lock()
	defer s.mu.Unlock()
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

// hash returns a number for a text, to compare, so that the text need not be
// kept. Its seed is random, so that clients cannot craft collisions.
func (s *Store) hash(text string) uint64 { return maphash.String(s.seed, text) }

// join takes in what the spans of each id say, and replaces it by what all
// spans of that id ever said.
func (s *Store) join(groups []joinGroup, texts *symbols) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range groups {
		g := &groups[i]
		key := joinKey{g.key, s.hash(texts.text(g.id))}
		known := s.joins.Find(key, now)
		if known == nil {
			if !g.shares() {
				continue
			}
			known = s.joins.Insert(key, now)
		}
		s.exchange(known, &g.agreement, texts)
	}
}

// joinTraces does the same by trace, and notes what else is known of it.
func (s *Store) joinTraces(traces []trace, texts *symbols) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
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
		t.handsDown, t.watched = known.spansLen > 0, known.above.Len() > 0
	}
}

func (s *Store) exchange(known *cache.Bytes, batch *agreement[symbol], texts *symbols) {
	a := readAgreement(s.read(*known))
	if exchange(&a, batch, texts) {
		s.write(known, appendAgreement(s.scratch[:0], &a))
	}
}

// read returns a copy of bytes, valid until the next call.
func (s *Store) read(from cache.Bytes) []byte {
	s.scratch = s.arena.Read(s.scratch[:0], from)
	return s.scratch
}

// write replaces bytes. The data may be the store's scratch.
func (s *Store) write(to *cache.Bytes, data []byte) {
	s.arena.Free(to)
	s.arena.Append(to, data)
	s.scratch = data[:0]
}

// ancestors finds what earlier spans hand down.
func (s *Store) ancestors(wanted []ancestor) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	var id pcommon.TraceID
	var known *traceMemory
	var finder handedFinder
	for i := range wanted {
		w := &wanted[i]
		if i == 0 || w.span.trace != id {
			id = w.span.trace
			known = s.traces.Find(id, now)
		}
		if known != nil {
			w.found = finder.find(s, w.span, known)
		}
	}
}

// handedFinder finds what spans hand down, for one request. Of a long trace that
// is asked for often it makes a map: any client can send a long trace, and a
// request that asks for each of its spans. The maps are copies, so the store may
// be unlocked between calls.
type handedFinder struct {
	asked map[pcommon.TraceID]int
	long  map[pcommon.TraceID]map[pcommon.SpanID][]byte
}

// find returns what a span of a trace hands down, or nil. The store is locked.
func (f *handedFinder) find(s *Store, wanted spanKey, known *traceMemory) *set[string] {
	var raw []byte
	if f.often(wanted.trace, known) {
		at, made := f.long[wanted.trace]
		if !made {
			if f.long == nil {
				f.long = make(map[pcommon.TraceID]map[pcommon.SpanID][]byte)
			}
			at = mapHanded(s.arena.Read(nil, known.spans), known.spansLen)
			f.long[wanted.trace] = at
		}
		raw = at[wanted.id]
	} else {
		raw = findHanded(s.read(known.spans), wanted.id)
	}
	if raw == nil {
		return nil
	}
	keys := readKeys(raw)
	return &keys
}

// often reports whether a trace is long and has been asked for often.
func (f *handedFinder) often(id pcommon.TraceID, known *traceMemory) bool {
	if known.spansLen <= maxSearched {
		return false
	}
	if f.asked == nil {
		f.asked = make(map[pcommon.TraceID]int)
	}
	f.asked[id]++
	return f.asked[id] > maxSearched
}

// linked finds what is known of the linked spans that are not in the batch.
func (s *Store) linked(links []link, texts *symbols) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	var finder handedFinder
	for i := range links {
		l := &links[i]
		if l.at != none {
			continue
		}
		memory := s.traces.Find(l.to.trace, now)
		if memory == nil {
			continue
		}
		k := known{span: finder.find(s, l.to, memory), trace: s.agreed(memory)}
		for key := range keyInferred {
			value, from := k.key(key)
			l.known[key] = texts.of(key, value)
			if key == keyRun && value != "" && k.inferredRun(from) {
				l.known[keyInferred] = texts.of(keyInferred, textTrue)
			}
		}
	}
}

// agreed returns what a trace agrees about.
func (s *Store) agreed(memory *traceMemory) *set[string] {
	a := readAgreement(s.read(memory.agreement))
	keys := a.agreed()
	return &keys
}

// remember keeps what the spans of each trace hand down.
func (s *Store) remember(traces []trace, spans []handedDown) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range traces {
		t := &traces[i]
		if t.firstHanded == t.endHanded {
			continue
		}
		known := s.traces.Ensure(t.id, now)
		more := spans[t.firstHanded:t.endHanded]
		gone, left := room(known.spansLen, len(more), maxTraceSpans)
		if gone > 0 {
			s.write(&known.spans, dropHanded(s.read(known.spans), gone))
		}
		more = more[left:]
		s.scratch = appendHanded(s.scratch[:0], more)
		s.arena.Append(&known.spans, s.scratch)
		known.spansLen += len(more) - gone
		s.spans.n += len(more) - gone
		s.spans.evicted += int64(gone + left)
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

// watched marks the spans that are above an earlier one that used tokens and
// adds them to the users, and adds those above an earlier server to asking.
func (s *Store) watched(b *Batch) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range b.traces {
		t := &b.traces[i]
		if !t.watched {
			continue
		}
		known := s.traces.Find(t.id, now)
		if known == nil {
			continue // another batch filled the store meanwhile
		}
		list := s.read(known.above)
		for at := t.last; at != none; at = b.spans[at].before {
			n := &b.spans[at]
			for j := range known.aboveLen() {
				switch above := aboveAt(list, j); {
				case above.id != n.id:
				case above.kind == aboveServer:
					b.usage.asking = append(b.usage.asking, asking{at, above.service})
				case above.kind == aboveFailure:
					if above.service == n.service && !n.failedBelow {
						n.failedBelow = true
						b.usage.failures = append(b.usage.failures, at)
					}
				case above.kind == aboveTool:
					if above.service == n.service && !n.wrapper && !n.asks {
						n.failedBelow = n.failedBelow || n.tool
						b.usage.tools = append(b.usage.tools, at)
					}
				case above.kind == aboveAsker:
					if n.asks {
						n.askedOnce = n.askedOnce || above.service == n.service
					} else if above.service == n.service && !n.wrapper && !n.tool {
						b.usage.askers = append(b.usage.askers, asker{at: at, earlier: true})
					}
				case above.service == n.service && !n.covered:
					n.covered = true
					b.usage.users = append(b.usage.users, at)
				}
			}
		}
	}
}

// watch remembers spans for watched.
func (s *Store) watch(spans []covering) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range spans {
		c := &spans[i]
		known := s.traces.Ensure(c.trace, now)
		list := s.read(known.above)
		if containsAbove(list, c.spanAbove) {
			continue
		}
		gone, _ := room(known.aboveLen(), 1, maxTraceAbove)
		s.write(&known.above, c.appendTo(list[gone*aboveBytes:]))
		s.above.n += 1 - gone
		s.above.evicted += int64(gone)
		s.shrink()
	}
}

// addEpochs remembers the epochs of processes, and adds those that it knows.
func (s *Store) addEpochs(lines map[string]*timeline) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for process, line := range lines {
		known := s.epochs.Find(process, now)
		if known == nil {
			line.epochs = mergeEpochs(line.epochs)
			if len(line.epochs) == 0 {
				continue
			}
			known = s.epochs.Insert(process, now)
		} else {
			line.epochs = mergeEpochs(append(line.epochs, known.list...))
		}
		known.keep(line.epochs)
	}
}
