package mlmetricsconnector

import (
	"encoding/binary"
	"hash/maphash"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// spanKey identifies a span among all traces: a hash of its ids, or zero for no span.
// It is not kept over restarts.
type spanKey uint64

var spanSeed = maphash.MakeSeed()

// traceHash is a hash of a trace's id, of which its spans' keys are made.
type traceHash uint64

func hashOf(trace pcommon.TraceID) traceHash { return traceHash(maphash.Bytes(spanSeed, trace[:])) }

// keyOf returns the key of a span. A zero span id is no span's: a broken or hostile
// client may send it for all spans. Two spans of a trace have different keys, but for 0
// and 1, since each step of the mixing (Stafford's variant 13 of the finalizer of
// MurmurHash3) can be undone. Spans of two traces have the same key by chance.
func keyOf(trace traceHash, span pcommon.SpanID) spanKey {
	if span.IsEmpty() {
		return 0
	}
	key := uint64(trace) ^ binary.LittleEndian.Uint64(span[:])
	key = (key ^ key>>30) * 0xbf58476d1ce4e5b9
	key = (key ^ key>>27) * 0x94d049bb133111eb
	return spanKey(max(key^key>>31, 1))
}

// startedAt returns the key by which a second delivery of a span is recognized, with its
// start in nanoseconds since 1970. SDKs for Python draw ids from the generator that training
// scripts seed, so that ranks and runs with one seed send equal ids. Their spans start at
// different times.
func (k spanKey) startedAt(start pcommon.Timestamp) spanKey {
	return k ^ spanKey(uint64(start)*0x9e3779b97f4a7c15) // odd: no two starts are mapped to one
}

// known reports whether the key is that of a span.
func (k spanKey) known() bool { return k != 0 }

// candidate is a span that may be counted, and the span above it.
type candidate struct {
	self, parent spanKey
	// always counts the span regardless of the spans above and below it, unless
	// the one directly above was counted before, did not count always, and none
	// such was below it yet.
	always bool
}

// nested reports whether a nesting rule applies to the candidate.
func (c *candidate) nested() bool {
	return c.self.known() && c.parent.known() && c.self != c.parent
}

// mark is what is remembered about a span.
type mark uint8

const (
	// counted: the span was counted itself or through one above it, so nothing
	// directly below it counts.
	counted mark = 1 << iota
	// covered: a span directly below was counted instead.
	covered
	// open: the span was counted, and one directly below that always counts may
	// come later. taken: it came, and is the same.
	open
	taken
)

// nesting decides which span of a chain, in which each lies directly below the
// next, is counted. Children usually arrive before their parents, often in an
// earlier request, so it remembers its decisions about the most recent spans.
// Beyond these, a chain may be counted twice. It is not safe for concurrent
// use.
type nesting struct {
	marks *recent
	// parents and verdicts are reused for each batch.
	parents  map[spanKey]spanKey
	verdicts []verdict
}

func newNesting(size int) *nesting {
	return &nesting{marks: newRecent(size), parents: make(map[spanKey]spanKey)}
}

func (n *nesting) has(of spanKey, m mark) bool {
	return mark(n.marks.get(of))&m != 0
}

func (n *nesting) set(of spanKey, m mark) {
	n.marks.add(of, uint8(m))
}

// verdict is the decision about a candidate.
type verdict uint8

const (
	// below: a span above it represents its chain.
	below verdict = iota
	// above: its chain was counted at a span below it.
	above
	// counts: it represents its chain.
	counts
)

// outermost returns the verdict on each candidate of one batch: the topmost of
// a chain counts. If a lower one was counted in an earlier batch, that one
// represents the chain. The result is valid until the next call.
func (n *nesting) outermost(candidates []candidate) []verdict {
	if len(candidates) == 0 {
		return nil
	}
	if len(n.parents) > maxKeptUpdates {
		n.parents = make(map[spanKey]spanKey) // clearing it would take long ever after
	}
	n.readAhead(candidates)
	parents := n.parents
	clear(parents)
	for i := range candidates {
		if c := &candidates[i]; c.self.known() {
			parents[c.self] = c.parent
		}
	}
	// A span that was counted in an earlier batch covers its whole chain
	// upwards.
	for i := range candidates {
		n.cover(candidates[i].self, parents)
	}
	verdicts := n.blank(len(candidates))
	for i := range candidates {
		c := &candidates[i]
		if !c.self.known() {
			verdicts[i] = counts
			continue
		}
		_, parentHere := parents[c.parent]
		switch {
		case c.nested() && (parentHere || n.has(c.parent, counted)):
			verdicts[i] = below
		case n.has(c.self, covered):
			verdicts[i] = above
		default:
			verdicts[i] = counts
		}
		n.set(c.self, counted)
		if verdicts[i] != below && c.nested() {
			n.set(c.parent, covered)
		}
	}
	return verdicts
}

// readAhead brings what is remembered of the candidates, and of the spans above them,
// into the processor's caches.
func (n *nesting) readAhead(candidates []candidate) {
	for i := range candidates {
		n.marks.readAhead(candidates[i].self)
		n.marks.readAhead(candidates[i].parent)
	}
}

// cover marks the spans above a covered span, and returns how many. It ends at
// a span that is already covered, which is handled itself, so a batch that is
// one long chain is walked once. The limit is for cycles too long to be
// remembered.
func (n *nesting) cover(of spanKey, parents map[spanKey]spanKey) (marked int) {
	for range len(parents) {
		if !of.known() || !n.has(of, covered) {
			break
		}
		parent, here := parents[of]
		if !here || !parent.known() || n.has(parent, covered) {
			break
		}
		n.set(parent, covered)
		marked++
		of = parent
	}
	return marked
}

// blank returns count empty verdicts.
func (n *nesting) blank(count int) []verdict {
	n.verdicts = append(n.verdicts[:0], make([]verdict, count)...)
	return n.verdicts
}

// innermost returns the verdict on each candidate of one batch: the lowest of a
// chain counts. If a higher one was counted in an earlier batch, that one
// represents the chain. The result is valid until the next call.
func (n *nesting) innermost(candidates []candidate) []verdict {
	n.readAhead(candidates)
	for i := range candidates {
		if c := &candidates[i]; c.nested() {
			n.set(c.parent, covered)
		}
	}
	verdicts := n.blank(len(candidates))
	for i := range candidates {
		c := &candidates[i]
		switch {
		case !c.self.known():
			verdicts[i] = counts
		case c.always:
			verdicts[i] = counts
			if above := mark(n.marks.get(c.parent)); c.nested() && above&(open|taken) == open {
				n.set(c.parent, taken)
				verdicts[i] = below
			}
			n.set(c.self, counted)
		case n.has(c.self, covered):
			verdicts[i] = above
		case c.nested() && n.has(c.parent, counted):
			verdicts[i] = below
		default:
			verdicts[i] = counts
			n.set(c.self, counted|open)
		}
	}
	return verdicts
}
