package mlenrichprocessor

import (
	"context"
	"errors"
	"hash/maphash"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/metadata"
)

// How much the store remembers. An id has at most 128 bytes, so the entries
// bound its memory too: see the README.
const (
	maxTraces    = 32768
	maxSpans     = 65536
	maxJoins     = 32768
	maxResources = 4096
	maxRuns      = 16384
	maxUsage     = 32768
	maxAnswers   = 32768
	maxStreams   = 32768
	maxProcesses = 4096

	// keyAge is how long the keys of a trace or request outlive their last
	// use.
	keyAge = 15 * time.Minute
	// resourceAge is how long it is remembered which client a resource is.
	resourceAge = time.Hour
	// liveAge is how long a run counts as alive after its last telemetry. A
	// GPU is only joined to a run that is.
	liveAge = 5 * time.Minute
)

// store is what the traces, metrics and logs instances of one component id
// know together. It holds no pdata, and its lock is never held while any is
// touched.
type store struct {
	now func() time.Time

	mu        sync.Mutex
	traces    *bounded[[16]byte, traceMemory]
	joins     *bounded[joinKey, stretch]
	resources *bounded[string, mlattr.System]
	runs      *bounded[place, liveRuns]
	// pieces has what traces and joins remember, of which scratch is a copy.
	pieces  pieces
	scratch []byte
	// spans and above are how much the traces remember together.
	spans, above held
	// answers has the first span that reported the tokens of an answer.
	answers *bounded[answerKey, spanKey]
	seed    maphash.Seed
	// epochs has those of each process.
	epochs *bounded[string, recentEpochs]
	// streams has the newest point of each stream of tokens, and instances is
	// how many instances of the processor may have some.
	streams   *bounded[streamKey, newest]
	instances uint32

	// waiting are the log records that wait for spans.
	waiting waiters

	telemetry *metadata.TelemetryBuilder
	processor attribute.KeyValue
}

// answerKey identifies an answer: its id among those of one service.
type answerKey struct {
	service uint64
	id      uint64 // as hashOf has it
}

func newStore(set component.TelemetrySettings, id component.ID) (*store, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set)
	if err != nil {
		return nil, err
	}
	s := &store{
		now:       time.Now,
		traces:    newBounded[[16]byte, traceMemory](maxTraces, keyAge),
		joins:     newBounded[joinKey, stretch](maxJoins, keyAge),
		resources: newBounded[string, mlattr.System](maxResources, resourceAge),
		runs:      newBounded[place, liveRuns](maxRuns, liveAge),
		answers:   newBounded[answerKey, spanKey](maxAnswers, keyAge),
		seed:      maphash.MakeSeed(),
		streams:   newBounded[streamKey, newest](maxStreams, keyAge),
		epochs:    newBounded[string, recentEpochs](maxProcesses, keyAge),
		telemetry: telemetry,
		processor: attribute.String("processor", id.String()),
	}
	s.traces.forget = func(m *traceMemory) {
		s.spans.n -= m.spansLen
		s.above.n -= m.aboveLen()
		s.pieces.drop(&m.agreement)
		s.pieces.drop(&m.spans)
		s.pieces.drop(&m.above)
	}
	s.joins.forget = s.pieces.drop
	return s, nil
}

// Start begins to report the store's size.
func (s *store) Start(context.Context, component.Host) error {
	return errors.Join(
		s.telemetry.RegisterProcessorMlEnrichStoreEntriesCallback(func(_ context.Context, o metric.Int64Observer) error {
			s.report(o, func(size int, _ int64) int64 { return int64(size) })
			return nil
		}),
		s.telemetry.RegisterProcessorMlEnrichStoreEvictionsCallback(func(_ context.Context, o metric.Int64Observer) error {
			s.report(o, func(_ int, evicted int64) int64 { return evicted })
			return nil
		}),
		s.telemetry.RegisterProcessorMlEnrichLogRecordsWaitingCallback(func(_ context.Context, o metric.Int64Observer) error {
			records, _ := s.waiting.holds()
			o.Observe(int64(records), metric.WithAttributes(s.processor))
			return nil
		}),
		s.telemetry.RegisterProcessorMlEnrichLogBytesWaitingCallback(func(_ context.Context, o metric.Int64Observer) error {
			_, bytes := s.waiting.holds()
			o.Observe(int64(bytes), metric.WithAttributes(s.processor))
			return nil
		}),
	)
}

// Shutdown ends the reporting.
func (s *store) Shutdown(context.Context) error {
	s.telemetry.Shutdown()
	return nil
}

func (s *store) report(o metric.Int64Observer, value func(size int, evicted int64) int64) {
	type part struct {
		name    string
		size    int
		evicted int64
	}
	s.mu.Lock()
	parts := [...]part{
		{"answers", s.answers.len(), s.answers.evicted},
		{"epochs", s.epochs.len(), s.epochs.evicted},
		{"joins", s.joins.len(), s.joins.evicted},
		{"resources", s.resources.len(), s.resources.evicted},
		{"runs", s.runs.len(), s.runs.evicted},
		{"spans", s.spans.n, s.spans.evicted},
		{"streams", s.streams.len(), s.streams.evicted},
		{"traces", s.traces.len(), s.traces.evicted},
		{"usage", s.above.n, s.above.evicted},
	}
	s.mu.Unlock()
	for _, p := range parts {
		o.Observe(value(p.size, p.evicted), metric.WithAttributes(s.processor, attribute.String("index", p.name)))
	}
}

func (s *store) join(groups []joinGroup, texts *symbols) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range groups {
		g := &groups[i]
		key := joinKey{g.key, s.hashOf(texts.text(g.id))}
		known := s.joins.find(key, now)
		if known == nil {
			if !g.shares() {
				continue
			}
			known = s.joins.insert(key, now)
		}
		s.exchange(known, &g.symbolAgreement, texts)
	}
}

func (s *store) joinTraces(traces []traceState, texts *symbols) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range traces {
		t := &traces[i]
		known := s.traces.find(t.id, now)
		if known == nil {
			if t.values == (symbolSet{}) {
				continue
			}
			known = s.traces.insert(t.id, now)
		}
		s.exchange(&known.agreement, &t.symbolAgreement, texts)
		t.handsDown, t.watched = known.spansLen > 0, known.above.size > 0
	}
}

// exchange makes an agreement of the store and one of a batch the same.
func (s *store) exchange(known *stretch, batch *symbolAgreement, texts *symbols) {
	a := readAgreement(s.read(*known))
	if a.exchange(batch, texts) {
		s.write(known, a.appendTo(s.scratch[:0]))
	}
}

// read returns what is in a stretch, until the next call.
func (s *store) read(from stretch) []byte {
	s.scratch = s.pieces.read(s.scratch[:0], from)
	return s.scratch
}

// write replaces what is in a stretch. The text may be the store's scratch.
func (s *store) write(to *stretch, text []byte) {
	s.pieces.drop(to)
	s.pieces.add(to, text)
	s.scratch = text[:0]
}

func (s *store) ancestors(wanted []ancestor) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	var trace [16]byte
	var known *traceMemory
	var finder handedFinder
	for i := range wanted {
		w := &wanted[i]
		if i == 0 || w.span.trace != trace {
			trace = w.span.trace
			known = s.traces.find(trace, now)
		}
		if known != nil {
			w.found = finder.find(s, w.span, known)
		}
	}
}

// handedFinder finds what spans hand down, in one call that holds the lock. Of
// a long trace that is asked for often it makes a map: anybody can send a trace
// that is long, and a request that asks for each of its spans.
type handedFinder struct {
	asked map[[16]byte]int
	long  map[[16]byte]map[[8]byte][]byte
}

// find returns what a span of a trace hands down, or nil.
func (f *handedFinder) find(s *store, span spanKey, known *traceMemory) *keySet {
	var raw []byte
	if f.often(span.trace, known) {
		at, made := f.long[span.trace]
		if !made {
			if f.long == nil {
				f.long = make(map[[16]byte]map[[8]byte][]byte)
			}
			at = mapHanded(s.pieces.read(nil, known.spans), known.spansLen)
			f.long[span.trace] = at
		}
		raw = at[span.span]
	} else {
		raw = findHanded(s.read(known.spans), span.span)
	}
	if raw == nil {
		return nil
	}
	keys := readKeys(raw)
	return &keys
}

// often says whether a trace is long and has been asked for often.
func (f *handedFinder) often(trace [16]byte, known *traceMemory) bool {
	if known.spansLen <= searchable {
		return false
	}
	if f.asked == nil {
		f.asked = make(map[[16]byte]int)
	}
	f.asked[trace]++
	return f.asked[trace] > searchable
}

func (s *store) linked(links []link, texts *symbols) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	var finder handedFinder
	for i := range links {
		l := &links[i]
		if l.at != nowhere {
			continue
		}
		known := s.traces.find(l.to.trace, now)
		if known == nil {
			continue
		}
		span := finder.find(s, l.to, known)
		trace := readAgreement(s.read(known.agreement))
		for k := range keyInferred {
			value, from := keyOf(k, span, &trace)
			l.known[k] = texts.of(k, value)
			if k == keyRun && value != "" && inferredRun(span, &trace, from) {
				l.known[keyInferred] = texts.of(keyInferred, textTrue)
			}
		}
	}
}

func (s *store) remember(traces []traceState, spans []handedDown) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range traces {
		t := &traces[i]
		if t.firstHanded == t.endHanded {
			continue
		}
		known := s.traces.ensure(t.id, now)
		more := spans[t.firstHanded:t.endHanded]
		gone, left := room(known.spansLen, len(more), maxTraceSpans)
		if gone > 0 {
			s.write(&known.spans, dropHanded(s.read(known.spans), gone))
		}
		more = more[left:]
		s.scratch = appendHanded(s.scratch[:0], more)
		s.pieces.add(&known.spans, s.scratch)
		known.spansLen += len(more) - gone
		s.spans.n += len(more) - gone
		s.spans.evicted += int64(gone + left)
		s.shrink()
	}
}

// shrink forgets traces until those that are left remember no more together
// than they may. One trace alone never does.
func (s *store) shrink() {
	for s.spans.n > maxSpans || s.above.n > maxUsage {
		spans, above := s.spans.n, s.above.n
		s.traces.evictOldest()
		s.spans.evicted += int64(spans - s.spans.n)
		s.above.evicted += int64(above - s.above.n)
	}
}

// hashOf is a number for a text, to compare, so that the text need not be kept.
// Its seed is random: nobody can send two texts of which it is known that they
// have one number.
func (s *store) hashOf(text string) uint64 { return maphash.String(s.seed, text) }

func (s *store) watched(r *resolution) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range r.traces {
		t := &r.traces[i]
		if !t.watched {
			continue
		}
		known := s.traces.find(t.id, now)
		if known == nil {
			continue // another batch filled the store meanwhile
		}
		list := s.read(known.above)
		for at := t.last; at != nowhere; at = r.nodes[at].before {
			n := &r.nodes[at]
			for j := range known.aboveLen() {
				switch above := aboveAt(list, j); {
				case above.id != n.id:
				case above.serves:
					r.asked = append(r.asked, asking{at, above.service})
				case above.service == n.service && !n.covered:
					n.covered = true
					r.users = append(r.users, at)
				}
			}
		}
	}
}

func (s *store) watch(spans []covering) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range spans {
		c := &spans[i]
		known := s.traces.ensure(c.trace, now)
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

func (s *store) claim(claims []claim, nodes []node, texts *symbols) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	var first spanKey
	var before claim
	for _, c := range claims {
		n := &nodes[c.at]
		self := spanKey{n.trace, n.id}
		if c.answer != before.answer || c.service != before.service {
			key := answerKey{c.service, s.hashOf(texts.text(c.answer))}
			known := s.answers.find(key, now)
			if known == nil {
				known = s.answers.insert(key, now)
				*known = self
			}
			first, before = *known, c
		}
		n.repeated = self != first
	}
}

// addInstance returns the number of an instance of the processor.
func (s *store) addInstance() uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.instances++
	return s.instances
}

// advance gives the points their rates, and remembers the newest of each
// stream.
func (s *store) advance(points []tokenPoint, shortest float64, left skipped) {
	if len(points) == 0 {
		return
	}
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range points {
		p := &points[i]
		var first newest
		last := &first
		if !p.delta {
			if known := s.streams.find(p.key, now); known != nil {
				last = known
			}
		}
		var reason skip
		p.rate, p.rated, reason = last.rate(p.reading, shortest)
		left.add(reason)
		if first.at != 0 {
			*s.streams.insert(p.key, now) = first
		}
	}
}

// lookup is what a log record can learn: what its span hands down, and what
// its trace agrees about.
func (s *store) lookup(spans map[spanKey]*keySet, traces map[[16]byte]*agreement) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	var finder handedFinder
	for key := range spans {
		if known := s.traces.find(key.trace, now); known != nil {
			spans[key] = finder.find(s, key, known)
		}
	}
	for id := range traces {
		if known := s.traces.find(id, now); known != nil {
			found := readAgreement(s.read(known.agreement))
			traces[id] = &found
		}
	}
}

// recognise remembers which clients a process was found to be, and returns
// all that were found so far: what a trace's spans gave away holds for the
// metrics and logs of the same process.
func (s *store) recognise(process string, found mlattr.System) mlattr.System {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.resources.find(process, now)
	if known == nil {
		if found == 0 {
			return 0
		}
		known = s.resources.insert(process, now)
	}
	*known |= found
	return *known
}
