// Package criticalpath finds the critical path of a trace: the spans that it waited
// for until it ended, and the share of each, which is for how long it did.
//
// The path is that of CRISP (Zhang et al., USENIX ATC 2022), which Jaeger shows,
// too: from the end of the root backwards, the child that ended last, then the one
// that ended last before that one began, and the same within each. The time in
// which it waited for no child is the share of the span itself. Three things differ:
//
//   - A span that goes on after its parent is a child of the nearest ancestor that
//     lasts long enough to have waited for it. If none does, it is not on the path.
//     When it is reached, the path goes on in the parent that began it.
//   - A span without a parent that is linked to a span of another trace is treated
//     in the same way: as part of that trace if somebody there can have waited
//     for it. It has a path of its own, too.
//   - The clocks of two processes may differ. A server's span lies within its
//     client's, so it is moved there, with what is below it.
package criticalpath

import (
	"cmp"
	"slices"
)

const (
	// None is the index that means "no span".
	None int32 = -1
	// Off is the time of a span that is not on the path.
	Off int64 = -1
)

// Span is a span of a trace.
type Span struct {
	// Parent is the index of its parent in the same trace, or None.
	Parent int32
	// Link is the index of the span of another trace that it continues, or None.
	// It counts only without a Parent.
	Link int32
	// Trace tells traces apart. It is at least 0 and less than the number of spans.
	Trace int32
	// Start and End are in nanoseconds since 1970.
	Start, End int64
	// Server reports whether the span is a server's, for which its parent waits.
	Server bool
}

// Finder finds critical paths. The zero value is ready for use. It keeps its
// memory from one call to the next, and is not safe for concurrent use.
type Finder struct {
	spans []node
	// order is the spans by their ends, the first first.
	order []int32
	// chain is a span and what is above it.
	chain []int32
	// left is for each trace the time that is not decided yet.
	left  []int64
	times []int64
}

// node is a span while its path is sought.
type node struct {
	// start and end are as if all clocks agreed, and start is not before that of
	// the parent. shift is what was added.
	start, end, shift int64
	// above is what began the span, its parent or the linked span, or None.
	above int32
	// waits is the span that can have waited for this one, or None: a parent or an
	// ancestor. last is the child to look at next, of those that this one can have
	// waited for, and before the one to look at after this one.
	waits, last, before int32
	// longer finds the nearest ancestor that ends later.
	longer int32
	trace  int32

	root, server bool
	// state is that of the search for cycles; done reports whether the path has
	// reached the start of the span.
	state uint8
	done  bool
}

const (
	unresolved uint8 = iota
	resolving
	resolved
)

// Find returns the share of each span in nanoseconds, which may be 0, or Off if it
// is not on the path. The shares of the trace of one root without links add up to
// the duration of the root. A trace with several roots has a path through those
// that follow on one another, from the one that ended last.
//
// Any input has a result: a parent or link that does not exist, or that closes a
// cycle, counts as None. It takes O(n log n). The result is valid until the next
// call.
func (f *Finder) Find(spans []Span) []int64 {
	f.begin(spans)
	for i := range f.spans {
		f.resolve(int32(i)) // #nosec G115 -- callers have fewer
	}
	f.sort()
	f.findWaiting()
	for _, at := range slices.Backward(f.order) {
		n := &f.spans[at]
		if !n.root || n.end > f.left[n.trace] {
			continue
		}
		if !n.done {
			f.walk(at)
		}
		f.left[n.trace] = n.start
	}
	return f.times
}

// Parent returns the parent of a span of the last Find, or None if it has none, or
// if its parent closed a cycle.
func (f *Finder) Parent(at int) int32 {
	if n := &f.spans[at]; !n.root {
		return n.above
	}
	return None
}

func (f *Finder) begin(spans []Span) {
	f.spans, f.order = slices.Grow(f.spans[:0], len(spans))[:len(spans)], f.order[:0]
	f.left, f.times = slices.Grow(f.left[:0], len(spans))[:len(spans)], slices.Grow(f.times[:0], len(spans))[:len(spans)]
	known := func(at int32) bool { return at >= 0 && int(at) < len(spans) }
	for i := range spans {
		s := &spans[i]
		start := max(s.Start, 0)
		n := node{start: start, end: max(s.End, start), above: None, waits: None, last: None, before: None, longer: None, trace: s.Trace, server: s.Server}
		if !known(n.trace) {
			n.trace = 0
		}
		if known(s.Parent) {
			n.above = s.Parent
		} else if n.root = true; known(s.Link) {
			n.above = s.Link
		}
		f.spans[i], f.left[i], f.times[i] = n, 1<<63-1, Off
	}
}

// resolve settles the times of a span, after those of what is above it.
func (f *Finder) resolve(at int32) {
	f.chain = f.chain[:0]
	for up := at; up != None && f.spans[up].state != resolved; up = f.spans[up].above {
		if f.spans[up].state == resolving {
			f.cut(up)
			f.forget()
			f.resolve(at)
			return
		}
		f.spans[up].state = resolving
		f.chain = append(f.chain, up)
	}
	for _, down := range slices.Backward(f.chain) {
		f.spans[down].state = resolved
		f.settle(&f.spans[down])
	}
}

// forget takes back that the spans of the chain are being resolved.
func (f *Finder) forget() {
	for _, at := range f.chain {
		f.spans[at].state = unresolved
	}
}

// cut ends the cycle at the end of the chain, at one of its links if it has any,
// else at its first span.
func (f *Finder) cut(at int32) {
	cycle := f.chain[slices.Index(f.chain, at):]
	first := slices.Min(cycle)
	for _, i := range cycle {
		if f.spans[i].root {
			first = i
		}
	}
	f.spans[first].above, f.spans[first].root = None, true
}

// settle moves a span to where it can have been.
func (f *Finder) settle(n *node) {
	if n.above == None {
		return
	}
	above := &f.spans[n.above]
	if n.root {
		if n.start < above.start {
			n.above = None // a consequence is not before its cause
		}
		return
	}
	n.shift = above.shift
	if n.server {
		n.shift = 0
		switch within := n.end-n.start <= above.end-above.start; {
		case n.start < above.start:
			n.shift = above.start - n.start
		case within && n.end > above.end:
			n.shift = above.end - n.end
		}
	}
	n.start = max(n.start+n.shift, above.start)
	n.end = max(n.end+n.shift, n.start)
}

func (f *Finder) sort() {
	for i := range f.spans {
		f.order = append(f.order, int32(i)) // #nosec G115 -- see Find
	}
	slices.SortFunc(f.order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(f.spans[a].end, f.spans[b].end), cmp.Compare(f.spans[a].start, f.spans[b].start), cmp.Compare(b, a))
	})
}

// findWaiting finds for each span the one that can have waited for it. It goes by
// the ends: an ancestor that ended before a span is passed over from then on.
func (f *Finder) findWaiting() {
	passed := 0
	for _, at := range f.order {
		n := &f.spans[at]
		for f.spans[f.order[passed]].end < n.end {
			short := &f.spans[f.order[passed]]
			short.state = unresolved // it is too short for all that follow
			if short.longer = short.above; short.root {
				short.longer = None
			}
			passed++
		}
		if n.above == None {
			continue
		}
		if n.waits = f.longest(n.above); n.waits != None {
			n.before, f.spans[n.waits].last = f.spans[n.waits].last, at
		}
	}
}

// longest returns a span, or the nearest of its ancestors that was not passed over.
func (f *Finder) longest(at int32) int32 {
	found := at
	for found != None && f.spans[found].state == unresolved {
		found = f.spans[found].longer
	}
	for at != found {
		at, f.spans[at].longer = f.spans[at].longer, found
	}
	return found
}

// walk finds the path that ends with a root.
func (f *Finder) walk(root int32) {
	at, until := root, f.spans[root].end
	for {
		n := &f.spans[at]
		f.times[at] = max(f.times[at], 0)
		child := f.child(n, until)
		if child != None {
			c := &f.spans[child]
			f.times[at] += until - c.end
			if at, until = child, c.end; !c.done {
				continue
			}
			until = c.start // a linked root whose own path is known
		} else {
			f.times[at] += until - n.start
			until, n.done = n.start, true
			if at == root {
				return
			}
		}
		at, until = f.begun(at, until)
	}
}

// child returns the last of the children that ended by then, or None.
func (f *Finder) child(n *node, until int64) int32 {
	for n.last != None {
		at := n.last
		c := &f.spans[at]
		n.last = c.before
		if c.end <= until && (c.root || !c.done) {
			return at
		}
	}
	return None
}

// begun returns where the path goes on before the start of a span, and until when:
// in what began it. Between the two, somebody waited.
func (f *Finder) begun(at int32, until int64) (above int32, earlier int64) {
	n := &f.spans[at]
	if end := f.spans[n.above].end; end < until {
		f.times[n.waits] = max(f.times[n.waits], 0) + until - end
		until = end
	}
	return n.above, until
}
