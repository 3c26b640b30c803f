// Package correlate answers one question: what do spans share?
//
// Spans of a trace share a session, a run and a request, although only some
// report them. A span's own keys come first, then those of its ancestors, its
// trace, the ids that it has in common with other traces, and the spans that it
// links to. A Batch holds the spans of one request while this is found out, and
// a Store what earlier requests said. Log records ask the Store.
//
// The package also finds which of several spans counts the tokens that all of
// them report, and of which epoch a span is that does not say so.
package correlate

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/cache"
)

// Batch is the spans of one request, and the memory in which they are
// correlated. The zero value is ready for use. First comes AddResource for each
// resource and Read for each of its spans, then Correlate, then for each span
// what is asked of it.
type Batch struct {
	branches
	ids    joinSearch
	links  linkSearch
	usage  usageSearch
	epochs epochSearch

	// scope is that of the spans that are read, as a hash, and scopes has those before too.
	scope  uint64
	scopes []string

	// Sources outlives a batch.
	Sources Sources
}

// branches are the spans of a batch in their traces, and what comes down from span to span.
type branches struct {
	resources []resource
	spans     []span
	texts     symbols
	traces    []trace
	// handed is what the spans of each trace hand down.
	handed []handedDown
	chain  []int32
	// sets are the distinct sets of keys that are handed down; the first is
	// empty.
	sets []set[symbol]

	traceAt map[pcommon.TraceID]int32
	// spanAt finds spans of traces too large to be searched.
	spanAt map[spanKey]int32
}

// resource is what correlation needs of a resource.
type resource struct {
	run      symbol
	inferred bool
	service  uint64 // a hash
	// process is that of the resource as a hash, once asked.
	process uint64
	asked   bool
}

// span is a span of a batch in terms of its keys.
type span struct {
	spanKey
	parent          pcommon.SpanID
	resource, scope int32

	// own are the keys that the span itself reports. What an ml_enrich before
	// this one let it inherit is not among them.
	own set[symbol]
	// keys are the keys that the span inherits, and from their origins.
	keys set[symbol]
	from origins
	stated

	// of is the span's resource. If it has a run, the span itself needs none, unless
	// another one is named for it: see admits.
	of *resource
	// phase is the span's own phase.
	phase symbol
	// inheritedPhase is the phase of the nearest ancestor that has one, for a
	// span without.
	inheritedPhase symbol
	// conflict is the key about which span and ancestor disagree, plus one, or
	// zero.
	conflict uint8

	// above is the parent in the batch, or none.
	above int32
	// earlier is what a parent that is not in the batch hands down, as an index in
	// Batch.sets.
	earlier int32
	// down is what descendants inherit, as an index in Batch.sets.
	down  int32
	state uint8
	// traceAt is the span's trace as an index in Batch.traces, or none.
	traceAt int32
	// before is the previous span of the trace in the batch, or none.
	before int32
	// phased is true if the span has a phase, its own or inherited.
	phased bool
	// conflicted is true if the span has a conflict mark.
	conflicted bool
	// undated is the span's index in epochSearch.undated, plus one, if it is of
	// an epoch that it does not name.
	undated int32

	spanUsage
}

// none is the index that means "no entry".
const none int32 = -1

const (
	unresolved uint8 = iota
	resolving
	resolved
)

// needs reports whether neither the span nor its resource names a key.
func (n *span) needs(key int) bool {
	return n.own[key] == 0 && (key != keyRun || n.of.run == 0 || n.of.inferred)
}

// admits reports whether the span can inherit a key. A run that was inferred
// for its resource gives way to a named one, but not to one that was inferred
// for others.
func (n *span) admits(key int, from *set[symbol]) bool {
	return from[key] != 0 && n.needs(key) && (key != keyRun || from[keyInferred] == 0 || n.of.run == 0)
}

// admitsAbove is admits for what an ancestor hands down. What the ancestor
// names is about this work, and goes before what the resource says about all of
// its work: a service in one Slurm job works for many runs, and a run has runs
// within.
func (n *span) admitsAbove(key int, above *set[symbol]) bool {
	if key == keyRun && above[key] != 0 && above[keyInferred] == 0 {
		return n.own[key] == 0
	}
	return n.admits(key, above)
}

// take lets the span have the keys that it still needs.
func (n *span) take(keys *set[symbol], from origin) {
	for k := range keyInferred {
		if n.keys[k] == 0 && n.admits(k, keys) {
			n.inheritKey(k, keys, from)
		}
	}
}

// inheritKey lets the span have one of the keys. Whether a run was inferred
// comes with the run.
func (n *span) inheritKey(key int, keys *set[symbol], from origin) {
	n.keys[key], n.from[key] = keys[key], from
	if key == keyRun {
		n.keys[keyInferred] = keys[keyInferred]
	}
}

// spanKey identifies a span.
type spanKey struct {
	trace pcommon.TraceID
	id    pcommon.SpanID
}

// trace is a trace of a batch.
type trace struct {
	id pcommon.TraceID
	agreement[symbol]
	// agreed are the values that any span of the trace may inherit.
	agreed set[symbol]
	// last is the newest span of the trace, and spans how many it has.
	last, spans int32
	// keyed is true if a span of the batch has or was given a key.
	keyed bool
	// phased and unphased report whether spans with and without a phase occur.
	phased, unphased bool
	// used is true if tokens were used below a span of the batch, and linked if
	// a span has links.
	used, linked bool
	// handsDown is true if earlier spans hand something down, and watched if
	// earlier ones used tokens.
	handsDown, watched bool
	// firstHanded and endHanded delimit in Batch.handed what the trace's spans
	// hand down.
	firstHanded, endHanded int32
	// active reports whether anything can be inherited in the trace, or has to
	// reach ancestors. Most traces of a training loop are inactive: all their
	// spans have a phase, and no key.
	active bool
}

// maxKept is how many spans a batch may have for its memory to be kept.
const maxKept = 1 << 15

// Reset forgets the batch and keeps its memory. It returns false if the memory
// is too much to be kept.
func (b *Batch) Reset() bool {
	if cap(b.spans) > maxKept {
		return false
	}
	b.reset()
	b.ids.groups = b.ids.groups[:0]
	b.links.reset()
	b.usage.reset()
	clear(b.scopes)
	b.scopes = b.scopes[:0]
	b.epochs.reset()
	return true
}

func (b *branches) reset() {
	b.texts.reset()
	clear(b.traceAt)
	clear(b.spanAt)
	b.resources, b.spans, b.traces = b.resources[:0], b.spans[:0], b.traces[:0]
	b.handed, b.sets = b.handed[:0], b.sets[:0]
}

// AddResource adds the next resource, after the spans of all resources have
// been read: its run, or "", whether that was inferred, and its service.
func (b *Batch) AddResource(run string, inferred bool, service string) {
	b.resources = append(b.resources, resource{run: b.texts.of(keyRun, run), inferred: inferred, service: cache.Hash(service)})
}

// Correlate gives every span the keys that it inherits: its parent's before its
// trace's before those of links. The order of the spans does not matter.
// processOf returns what identifies the process of a resource and no other, or
// "" if nothing does.
func (b *Batch) Correlate(s *Store, processOf func(resource int) string) {
	for i := range b.spans {
		n := &b.spans[i]
		n.of = &b.resources[n.resource]
		n.service = n.of.service
	}
	if b.lookUp(s) {
		b.inheritAll()
		b.links.follow(&b.branches)
		b.usage.markAncestors(&b.branches)
		b.usage.order(&b.branches, processOf)
		for i := range b.spans {
			if n := &b.spans[i]; n.traceAt != none && b.traces[n.traceAt].active {
				n.take(&b.traces[n.traceAt].agreed, fromTrace)
			}
		}
		b.handDown()
		b.store(s)
	}
	s.judge(b)
	b.epochs.find(&b.branches, s, processOf)
}

// lookUp finds what earlier batches said, and reports whether any trace is active.
func (b *Batch) lookUp(s *Store) (active bool) {
	now := s.Lock()
	defer s.Unlock()
	b.ids.join(&b.branches, s, now)
	b.gather()
	s.joinTraces(b.traces, &b.texts, now)
	s.watched(b, now)
	b.usage.mark(&b.branches)
	b.links.mark(&b.branches)
	for i := range b.traces {
		t := &b.traces[i]
		t.active = t.keyed || t.used || t.linked || t.handsDown || t.values != (set[symbol]{}) || t.phased && t.unphased
		t.agreed = t.agreement.agreed()
		active = active || t.active
	}
	if active {
		b.findParents(s, now)
		b.links.find(&b.branches, s, now)
	}
	return active
}

// store remembers what later batches need.
func (b *Batch) store(s *Store) {
	now := s.Lock()
	defer s.Unlock()
	s.findCalls(b, now)
	s.watch(b.usage.covering, now)
	s.findTwins(b.usage.requests, b.spans, now)
	s.remember(&b.branches, now)
}

// gather collects the traces of a batch. Spans without a trace id, which only
// broken clients send, are of no trace: otherwise they would all be of one.
func (b *branches) gather() {
	at := none
	for i := range b.spans {
		n := &b.spans[i]
		n.traceAt = none
		if n.trace.IsEmpty() {
			continue
		}
		if at == none || n.trace != b.traces[at].id {
			known, ok := b.traceAt[n.trace]
			if !ok {
				known = int32(len(b.traces))
				b.traces = append(b.traces, trace{id: n.trace, last: none})
				mlattr.Put(&b.traceAt, n.trace, known)
			}
			at = known
		}
		t := &b.traces[at]
		n.traceAt, n.before = at, t.last
		t.last = int32(i)
		t.spans++
		t.phased = t.phased || n.phase != 0
		t.unphased = t.unphased || n.phase == 0
		if keyed := n.own != (set[symbol]{}) || n.keys != (set[symbol]{}); keyed || n.of.run != 0 && !n.of.inferred {
			keys := n.traceKeys()
			t.observe(&keys)
			t.keyed = t.keyed || keyed
		}
	}
}

// traceKeys returns what the span contributes to its trace: its own keys and
// those of a join. A run that was inferred for a resource says nothing about
// the other services of the trace.
func (n *span) traceKeys() set[symbol] {
	keys := n.own
	if keys[keyRun] == 0 && !n.of.inferred {
		keys[keyRun] = n.of.run
	}
	for k := range keys {
		if downOnly(k) {
			keys[k] = 0
		} else if keys[k] == 0 {
			keys[k] = n.keys[k]
		}
	}
	return keys
}

// handDown lists by trace what the spans hand down, in the order of the batch.
func (b *branches) handDown() {
	for i := range b.traces {
		t := &b.traces[i]
		t.firstHanded = int32(len(b.handed))
		if t.active {
			for at := t.last; at != none; at = b.spans[at].before {
				if n := &b.spans[at]; n.down != 0 {
					b.handed = append(b.handed, handedDown{n.id, n.down})
				}
			}
		}
		t.endHanded = int32(len(b.handed))
		slices.Reverse(b.handed[t.firstHanded:])
	}
}

// fromStore returns the index of a set that the store had.
func (b *branches) fromStore(found *set[string]) int32 {
	var keys set[symbol]
	for k, value := range found {
		keys[k] = b.texts.of(k, value)
	}
	return b.addSet(&keys)
}

// addSet returns the index of a set of keys, which is often the previous one.
func (b *branches) addSet(keys *set[symbol]) int32 {
	if *keys == (set[symbol]{}) {
		return 0
	}
	if last := len(b.sets) - 1; b.sets[last] == *keys {
		return int32(last)
	}
	b.sets = append(b.sets, *keys)
	return int32(len(b.sets) - 1)
}
