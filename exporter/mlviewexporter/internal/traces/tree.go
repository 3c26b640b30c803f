package traces

import (
	"cmp"
	"slices"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/criticalpath"
)

// tree is the spans of a trace by parent. A span whose parent is not held is a
// root. Of spans that are each other's parents the first is a root.
type tree struct {
	spans    []heldSpan
	roots    []int
	children [][]int
	start    int64
	// critical is for how many nanoseconds each span was the deciding one, or
	// criticalpath.Off.
	critical []int64
}

// node is a span in the order of its tree.
type node struct{ at, depth int }

func newTree(spans []heldSpan) *tree {
	t := &tree{spans: spans, children: make([][]int, len(spans))}
	byID := make(map[[8]byte]int32, len(spans))
	for i := range spans {
		if _, again := byID[spans[i].id]; !again {
			byID[spans[i].id] = int32(i) // #nosec G115 -- at most SpansPerTrace
		}
		if i == 0 || spans[i].start < t.start {
			t.start = spans[i].start
		}
	}
	timed := make([]criticalpath.Span, len(spans))
	for i := range spans {
		s := &spans[i]
		timed[i] = criticalpath.Span{Parent: criticalpath.None, Link: criticalpath.None, Start: s.start, End: s.end, Server: s.server}
		if parent, held := byID[s.parent]; held && s.parent != ([8]byte{}) {
			timed[i].Parent = parent
		}
	}
	var path criticalpath.Finder
	t.critical = path.Find(timed)
	for i := range spans {
		if parent := path.Parent(i); parent == criticalpath.None {
			t.roots = append(t.roots, i)
		} else {
			t.children[parent] = append(t.children[parent], i)
		}
	}
	byStart := func(a, b int) int {
		return cmp.Or(cmp.Compare(spans[a].start, spans[b].start), cmp.Compare(spans[b].end, spans[a].end), cmp.Compare(a, b))
	}
	slices.SortFunc(t.roots, byStart)
	for i := range t.children {
		slices.SortFunc(t.children[i], byStart)
	}
	return t
}

// longestRoot returns the root that lasts longest. A trace without roots among
// its held spans has none that stands for it: then it is the longest of those
// whose parents are not held.
func (t *tree) longestRoot() *heldSpan {
	if len(t.roots) == 0 {
		return new(heldSpan)
	}
	return &t.spans[slices.MaxFunc(t.roots, func(a, b int) int {
		return cmp.Compare(t.spans[a].end-t.spans[a].start, t.spans[b].end-t.spans[b].start)
	})]
}

// ordered returns all spans, a parent before its children.
func (t *tree) ordered() []node {
	nodes := make([]node, 0, len(t.spans))
	stack := make([]node, 0, len(t.roots))
	push := func(of []int, depth int) {
		for _, at := range slices.Backward(of) {
			stack = append(stack, node{at, depth})
		}
	}
	push(t.roots, 0)
	for len(stack) > 0 {
		next := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		nodes = append(nodes, next)
		push(t.children[next.at], next.depth+1)
	}
	return nodes
}
