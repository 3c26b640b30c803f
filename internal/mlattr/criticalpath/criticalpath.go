// Package criticalpath finds the critical path of a trace: the spans that it waited
// for until it ended, and the share of each, which is for how long it did.
//
// The path is that of CRISP (Zhang et al., USENIX ATC 2022), which Jaeger shows,
// too: from the end of the root backwards, the child that ended last, then the one
// that ended last before that one began, and the same within each. The time in
// which it waited for no child is the share of the span itself. Two things differ:
//
//   - A span that goes on after its parent is a child of the nearest ancestor that
//     lasts long enough to have waited for it. If none does, it is not on the path.
//     When it is reached, the path goes on in the parent that began it.
//   - The clocks of two processes may differ. A server's span lies within its
//     client's, so it is moved there, with what is below it.
package criticalpath

import (
	"cmp"
	"math"
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
	// Parent is the index of its parent, or None.
	Parent int32
	// Start and End are in nanoseconds since 1970.
	Start, End int64
	// Server reports whether the span is a server's, for which its parent waits.
	Server bool
}

// finder has the spans of a trace, and the times that Find returns.
type finder struct {
	spans []node
	times []int64
}

// node is a span while its path is sought.
type node struct {
	// Span has times as if all clocks agreed, of which the start is not before that of the
	// parent. shift is what was added.
	Span
	shift int64
	// waits is the span that can have waited for this one, or None: a parent or an
	// ancestor. children are those that this one can have waited for and that were not
	// looked at, by their ends.
	waits    int32
	children []int32
	// longer finds the nearest ancestor that ends later.
	longer int32
	// moved reports whether the times are those of the clocks that agree, and done whether
	// the path has reached the start of the span.
	moved, done bool
}

// Find returns the share of each span in nanoseconds, which may be 0, or Off if it
// is not on the path, and its parent, or None. The shares of the trace of one root add up to
// the duration of the root. A trace with several roots has a path through those that follow on
// one another, from the one that ended last.
//
// Any input has a result: a parent that does not exist, or that closes a cycle, counts as
// None. It takes O(n log n).
func Find(spans []Span) (times []int64, parents []int32) {
	f := &finder{spans: make([]node, len(spans)), times: slices.Repeat([]int64{Off}, len(spans))}
	for i, s := range spans {
		s.Start = max(s.Start, 0)
		s.End = max(s.End, s.Start)
		if s.Parent < 0 || int(s.Parent) >= len(spans) {
			s.Parent = None
		}
		f.spans[i] = node{Span: s, waits: None}
	}
	order, parents := make([]int32, len(spans)), make([]int32, len(spans))
	f.cutCycles()
	for i := range f.spans {
		n := &f.spans[i]
		f.move(n)
		order[i], parents[i], n.longer = int32(i), n.Parent, n.Parent // #nosec G115 -- callers have fewer
	}
	slices.SortFunc(order, func(i, j int32) int {
		a, b := &f.spans[i], &f.spans[j]
		return cmp.Or(cmp.Compare(a.End, b.End), cmp.Compare(a.Start, b.Start), cmp.Compare(j, i))
	})
	for _, at := range order {
		n := &f.spans[at]
		if n.waits = f.longest(n.Parent, n.End); n.waits != None {
			above := &f.spans[n.waits]
			above.children = append(above.children, at)
		}
	}
	left := int64(math.MaxInt64)
	for _, at := range slices.Backward(order) {
		if n := &f.spans[at]; n.Parent == None && n.End <= left {
			f.walk(at)
			left = n.Start
		}
	}
	return f.times, parents
}

// cutCycles takes the parent of one span of each cycle away, of the first one.
func (f *finder) cutCycles() {
	seen := make([]int, len(f.spans)) // from which span, plus 1
	for i := range f.spans {
		up := int32(i) // #nosec G115 -- callers have fewer
		for ; up != None && seen[up] == 0; up = f.spans[up].Parent {
			seen[up] = i + 1
		}
		if up == None || seen[up] != i+1 {
			continue
		}
		first := up
		for at := f.spans[up].Parent; at != up; at = f.spans[at].Parent {
			first = min(first, at)
		}
		f.spans[first].Parent = None
	}
}

// move moves a span to where it can have been, after what is above it.
func (f *finder) move(n *node) {
	if n.moved {
		return
	}
	if n.moved = true; n.Parent == None {
		return
	}
	above := &f.spans[n.Parent]
	f.move(above)
	n.shift = above.shift
	if n.Server {
		n.shift = 0
		switch within := n.End-n.Start <= above.End-above.Start; {
		case n.Start < above.Start:
			n.shift = above.Start - n.Start
		case within && n.End > above.End:
			n.shift = above.End - n.End
		}
	}
	n.Start = max(n.Start+n.shift, above.Start)
	n.End = max(n.End+n.shift, n.Start)
}

// longest returns a span, or the nearest of its ancestors that ends at a time or later.
// From one call to the next, the time only grows.
func (f *finder) longest(at int32, end int64) int32 {
	if at == None || f.spans[at].End >= end {
		return at
	}
	n := &f.spans[at]
	n.longer = f.longest(n.longer, end)
	return n.longer
}

// walk finds the path that ends with a root.
func (f *finder) walk(root int32) {
	at, until := root, f.spans[root].End
	for {
		n := &f.spans[at]
		f.times[at] = max(f.times[at], 0)
		if child := f.child(n, until); child != None {
			f.times[at] += until - f.spans[child].End
			at, until = child, f.spans[child].End
			continue
		}
		f.times[at] += until - n.Start
		until, n.done = n.Start, true
		if at == root {
			return
		}
		// The path goes on in what began the span. Between the two, somebody waited.
		if end := f.spans[n.Parent].End; end < until {
			f.times[n.waits] = max(f.times[n.waits], 0) + until - end
			until = end
		}
		at = n.Parent
	}
}

// child returns the last of the children that ended by then, or None.
func (f *finder) child(n *node, until int64) int32 {
	for len(n.children) > 0 {
		at := n.children[len(n.children)-1]
		n.children = n.children[:len(n.children)-1]
		if c := &f.spans[at]; c.End <= until && !c.done {
			return at
		}
	}
	return None
}
