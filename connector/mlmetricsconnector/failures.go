package mlmetricsconnector

// lowest is like innermost, but spans that are no candidates may lie between
// the candidates: links, which failed too. A link is not counted. It passes on
// what is known above and below it, in whatever order spans arrive, in one
// batch or several.
func (n *nesting) lowest(candidates, links []candidate) []verdict {
	if len(links) == 0 {
		return n.innermost(candidates)
	}
	above := make(linked, len(links))
	for i := range links {
		if l := &links[i]; l.nested() {
			above[l.self] = l.parent
		}
	}
	cover := func(ref spanRef) { n.set(ref, covered) }
	for i := range links {
		if l := &links[i]; l.nested() && n.has(l.self, covered) {
			above.top(l.parent, cover)
		}
	}
	for i := range candidates {
		if c := &candidates[i]; c.nested() {
			c.parent = above.top(c.parent, cover)
		}
	}
	verdicts := n.innermost(candidates)
	// A later span below a link of this batch must find what is above it.
	for i := range links {
		if l := &links[i]; l.nested() && n.has(above.top(l.parent, func(spanRef) {}), counted) {
			n.set(l.self, counted)
		}
	}
	return verdicts
}

// linked maps each link of a batch to the span above it.
type linked map[spanRef]spanRef

// top goes up from a span to the first one that is no link, visits each span on
// the way, and returns the last. It shortens the path, so that a chain of links
// is walked once, however many spans are below it: skipped spans were visited
// before, and keep their marks. A cycle ends anywhere.
func (l linked) top(ref spanRef, visit func(spanRef)) spanRef {
	first, cycle := ref, true
	for range len(l) + 1 {
		visit(ref)
		next, link := l[ref]
		if !link || next == ref {
			cycle = false
			break
		}
		ref = next
	}
	if cycle {
		l[ref] = ref
	}
	for first != ref {
		first, l[first] = l[first], ref
	}
	return ref
}
