package model

import (
	"cmp"
	"slices"
)

// tree is the spans of a trace by parent. A span whose parent is not held is a
// root. Of spans that are each other's parents the first is a root.
type tree struct {
	spans    []heldSpan
	roots    []int
	children [][]int
	start    int64
}

// node is a span in the order of its tree.
type node struct{ at, depth int }

func newTree(spans []heldSpan) *tree {
	t := &tree{spans: spans, children: make([][]int, len(spans))}
	parents := make([]int, len(spans))
	byID := make(map[[8]byte]int, len(spans))
	for i := range spans {
		if _, again := byID[spans[i].id]; !again {
			byID[spans[i].id] = i
		}
		if i == 0 || spans[i].start < t.start {
			t.start = spans[i].start
		}
	}
	for i := range spans {
		parent, held := byID[spans[i].parent]
		if !held || parent == i || spans[i].parent == ([8]byte{}) {
			t.roots = append(t.roots, i)
		} else {
			t.children[parent], parents[i] = append(t.children[parent], i), parent
		}
	}
	byStart := func(a, b int) int {
		return cmp.Or(cmp.Compare(spans[a].start, spans[b].start), cmp.Compare(spans[b].end, spans[a].end), cmp.Compare(a, b))
	}
	slices.SortFunc(t.roots, byStart)
	for i := range t.children {
		slices.SortFunc(t.children[i], byStart)
	}
	t.breakCycles(parents)
	return t
}

// breakCycles makes a root of one span of each cycle.
func (t *tree) breakCycles(parents []int) {
	reached := make([]bool, len(t.spans))
	reach := func(stack []int) {
		for len(stack) > 0 {
			at := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			if reached[at] {
				continue
			}
			reached[at] = true
			stack = append(stack, t.children[at]...)
		}
	}
	reach(slices.Clone(t.roots))
	for i := range t.spans {
		if reached[i] {
			continue
		}
		// A span that is not reached has a parent.
		siblings := &t.children[parents[i]]
		*siblings = slices.DeleteFunc(*siblings, func(child int) bool { return child == i })
		t.roots = append(t.roots, i)
		reach([]int{i})
	}
}

// longestRoot returns the root that lasts longest. A trace without roots among
// its held spans has none that stands for it: then it is the longest of those
// whose parents are not held.
func (t *tree) longestRoot() *heldSpan {
	if len(t.roots) == 0 {
		return new(heldSpan)
	}
	return &t.spans[t.longest()]
}

func (t *tree) longest() int {
	return slices.MaxFunc(t.roots, func(a, b int) int {
		return cmp.Compare(t.spans[a].end-t.spans[a].start, t.spans[b].end-t.spans[b].start)
	})
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

// critical reports for each span whether it is on the chain that decided the end
// of the longest root: from the end backwards, the child that ended last, then
// the one that ended last before that one began, and the same within each.
func (t *tree) critical() []bool {
	on := make([]bool, len(t.spans))
	if len(t.roots) == 0 {
		return on
	}
	type within struct {
		at  int
		end int64
	}
	stack := []within{{t.longest(), t.spans[t.longest()].end}}
	for len(stack) > 0 {
		next := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		on[next.at] = true
		byEnd := slices.Clone(t.children[next.at])
		slices.SortFunc(byEnd, func(a, b int) int {
			return cmp.Or(cmp.Compare(t.spans[b].end, t.spans[a].end), cmp.Compare(t.spans[b].start, t.spans[a].start))
		})
		until := next.end
		for _, child := range byEnd {
			c := &t.spans[child]
			// Work that goes on after the end did not decide it.
			if c.end > until {
				continue
			}
			stack = append(stack, within{child, c.end})
			until = c.start
		}
	}
	return on
}
