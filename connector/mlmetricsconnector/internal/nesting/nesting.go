// Package nesting decides which span of a chain counts, where each lies directly below the
// next and all report the same.
package nesting

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Key identifies a span among all traces: a hash of its ids, or zero for no span.
type Key uint64

// Seed makes keys that no client knows. A restart keeps it with what has keys.
type Seed [2]uint64

// NewSeed returns a random Seed.
func NewSeed() Seed { return Seed{rand.Uint64(), rand.Uint64()} } // #nosec G404 -- ChaCha8 with a random key

// Trace is a hash of a trace's id, of which its spans' keys are made.
type Trace uint64

// TraceOf returns the hash of a trace.
func (s Seed) TraceOf(trace pcommon.TraceID) Trace {
	high, low := bits.Mul64(binary.LittleEndian.Uint64(trace[:])^s[0], binary.LittleEndian.Uint64(trace[8:])^s[1])
	return Trace(high ^ low)
}

// KeyOf returns the key of a span. A zero span id is no span's: a broken or hostile
// client may send it for all spans. Two spans of a trace have different keys, but for 0
// and 1, since each step of the mixing (Stafford's variant 13 of the finalizer of
// MurmurHash3) can be undone. Spans of two traces have the same key by chance.
func KeyOf(trace Trace, span pcommon.SpanID) Key {
	if span.IsEmpty() {
		return 0
	}
	key := uint64(trace) ^ binary.LittleEndian.Uint64(span[:])
	key = (key ^ key>>30) * 0xbf58476d1ce4e5b9
	key = (key ^ key>>27) * 0x94d049bb133111eb
	return Key(max(key^key>>31, 1))
}

// StartedAt returns the key by which a second delivery of a span is recognized, with its
// start in nanoseconds since 1970. SDKs for Python draw ids from the generator that training
// scripts seed, so that ranks and runs with one seed send equal ids. Their spans start at
// different times.
func (k Key) StartedAt(start pcommon.Timestamp) Key {
	return k ^ Key(uint64(start)*0x9e3779b97f4a7c15) // odd: no two starts are mapped to one
}

// Known reports whether the key is that of a span.
func (k Key) Known() bool { return k != 0 }

// Candidate is a span that may be counted, and the span above it.
type Candidate struct {
	Self, Parent Key
	// Always counts the span regardless of the spans above and below it, unless
	// the one directly above was counted before, did not count always, and none
	// such was below it yet.
	Always bool
}

// nested reports whether a nesting rule applies to the candidate.
func (c *Candidate) nested() bool { return c.Self.Known() && c.Parent.Known() && c.Self != c.Parent }

// mark is what is remembered about a span.
type mark uint8

const (
	// counted: the span was counted itself or through one above it, so nothing
	// directly below it counts.
	counted mark = 1 << iota
	// Covered is the mark of a span when one directly below was counted instead.
	Covered
	// open: the span was counted, and one directly below that always counts may
	// come later. taken: it came, and is the same.
	open
	taken
)

// Chains decides which span of a chain, in which each lies directly below the
// next, is counted. Children usually arrive before their parents, often in an
// earlier request, so it remembers its decisions about the most recent spans.
// Beyond these, a chain may be counted twice. It is not safe for concurrent
// use.
type Chains struct {
	*Recent
	// parents and verdicts are reused for each batch.
	parents  map[Key]Key
	verdicts []Verdict
}

// maxKept limits the spans whose memory is kept between two batches.
const maxKept = 8192

// New returns Chains that remember at least size spans.
func New(size int) *Chains { return &Chains{Recent: NewRecent(size), parents: make(map[Key]Key)} }

// Has reports whether a mark is remembered about a span.
func (n *Chains) Has(of Key, m mark) bool { return mark(n.get(of))&m != 0 }

// Set adds a mark to a span.
func (n *Chains) Set(of Key, m mark) { n.Add(of, uint8(m)) }

// Verdict is the decision about a candidate.
type Verdict uint8

const (
	// Below says that a span above it represents its chain.
	Below Verdict = iota
	// above: its chain was counted at a span below it.
	above
	// Counts says that it represents its chain.
	Counts
)

// Outermost returns the verdict on each candidate of one batch: the topmost of
// a chain counts. If a lower one was counted in an earlier batch, that one
// represents the chain. The result is valid until the next call.
func (n *Chains) Outermost(candidates []Candidate) []Verdict {
	if len(candidates) == 0 {
		return nil
	}
	if len(n.parents) > maxKept {
		n.parents = make(map[Key]Key) // clearing it would take long ever after
	}
	n.readAhead(candidates)
	parents := n.parents
	clear(parents)
	for i := range candidates {
		if c := &candidates[i]; c.Self.Known() {
			parents[c.Self] = c.Parent
		}
	}
	// A span that was counted in an earlier batch covers its whole chain
	// upwards.
	for i := range candidates {
		n.cover(candidates[i].Self, parents)
	}
	verdicts := n.blank(len(candidates))
	for i := range candidates {
		c := &candidates[i]
		if !c.Self.Known() {
			verdicts[i] = Counts
			continue
		}
		_, parentHere := parents[c.Parent]
		switch {
		case c.nested() && (parentHere || n.Has(c.Parent, counted)):
			verdicts[i] = Below
		case n.Has(c.Self, Covered):
			verdicts[i] = above
		default:
			verdicts[i] = Counts
		}
		n.Set(c.Self, counted)
		if verdicts[i] != Below && c.nested() {
			n.Set(c.Parent, Covered)
		}
	}
	return verdicts
}

// readAhead brings what is remembered of the candidates, and of the spans above them,
// into the processor's caches.
func (n *Chains) readAhead(candidates []Candidate) {
	for i := range candidates {
		n.ReadAhead(candidates[i].Self)
		n.ReadAhead(candidates[i].Parent)
	}
}

// cover marks the spans above a covered span, and returns how many. It ends at
// a span that is already covered, which is handled itself, so a batch that is
// one long chain is walked once. The limit is for cycles too long to be
// remembered.
func (n *Chains) cover(of Key, parents map[Key]Key) (marked int) {
	for range len(parents) {
		parent := parents[of]
		if !parent.Known() || !n.Has(of, Covered) || n.Has(parent, Covered) {
			break
		}
		n.Set(parent, Covered)
		marked++
		of = parent
	}
	return marked
}

// blank returns count empty verdicts.
func (n *Chains) blank(count int) []Verdict {
	n.verdicts = append(n.verdicts[:0], make([]Verdict, count)...)
	return n.verdicts
}

// Innermost returns the verdict on each candidate of one batch: the lowest of a
// chain counts. If a higher one was counted in an earlier batch, that one
// represents the chain. The result is valid until the next call.
func (n *Chains) Innermost(candidates []Candidate) []Verdict {
	n.readAhead(candidates)
	for i := range candidates {
		if c := &candidates[i]; c.nested() {
			n.Set(c.Parent, Covered)
		}
	}
	verdicts := n.blank(len(candidates))
	for i := range candidates {
		c := &candidates[i]
		switch {
		case !c.Self.Known():
			verdicts[i] = Counts
		case c.Always:
			verdicts[i] = Counts
			if above := mark(n.get(c.Parent)); c.nested() && above&(open|taken) == open {
				n.Set(c.Parent, taken)
				verdicts[i] = Below
			}
			n.Set(c.Self, counted)
		case n.Has(c.Self, Covered):
			verdicts[i] = above
		case c.nested() && n.Has(c.Parent, counted):
			verdicts[i] = Below
		default:
			verdicts[i] = Counts
			n.Set(c.Self, counted|open)
		}
	}
	return verdicts
}

// Lowest is like innermost, but spans that are no candidates may lie between
// the candidates: links, which failed too. A link is not counted. It passes on
// what is known above and below it, in whatever order spans arrive, in one
// batch or several.
func (n *Chains) Lowest(candidates, links []Candidate) []Verdict {
	if len(links) == 0 {
		return n.Innermost(candidates)
	}
	above := make(linked, len(links))
	for i := range links {
		if l := &links[i]; l.nested() {
			above[l.Self] = l.Parent
		}
	}
	cover := func(of Key) { n.Set(of, Covered) }
	for i := range links {
		if l := &links[i]; l.nested() && n.Has(l.Self, Covered) {
			above.top(l.Parent, cover)
		}
	}
	for i := range candidates {
		if c := &candidates[i]; c.nested() {
			c.Parent = above.top(c.Parent, cover)
		}
	}
	verdicts := n.Innermost(candidates)
	// A later span below a link of this batch must find what is above it.
	for i := range links {
		if l := &links[i]; l.nested() && n.Has(above.top(l.Parent, func(Key) {}), counted) {
			n.Set(l.Self, counted)
		}
	}
	return verdicts
}

// linked maps each link of a batch to the span above it.
type linked map[Key]Key

// top goes up from a span to the first one that is no link, visits each span on
// the way, and returns the last. It shortens the path, so that a chain of links
// is walked once, however many spans are below it: skipped spans were visited
// before, and keep their marks. A cycle ends anywhere.
func (l linked) top(of Key, visit func(Key)) Key {
	first, cycle := of, true
	for range len(l) + 1 {
		visit(of)
		next, link := l[of]
		if !link || next == of {
			cycle = false
			break
		}
		of = next
	}
	if cycle {
		l[of] = of
	}
	for first != of {
		first, l[first] = l[first], of
	}
	return of
}
