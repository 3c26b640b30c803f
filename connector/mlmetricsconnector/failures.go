package mlmetricsconnector

// lowest is innermost where spans that are no candidates may lie between those
// that are: links, which failed as well. A link is not counted. It hands on
// what is known above and below it, as spans arrive from the lowest to the
// highest or the other way round, in one batch or several.
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
	// What comes later, below a link of this batch, must find what is above it.
	for i := range links {
		if l := &links[i]; l.nested() && n.has(above.top(l.parent, func(spanRef) {}), counted) {
			n.set(l.self, counted)
		}
	}
	return verdicts
}

// linked has the span above each link of a batch.
type linked map[spanRef]spanRef

// top goes from a span up to the first one that is no link, and returns that. It
// visits each on the way. The way is shortened, so that one link after another
// is gone through once, however many spans lie below: what was left out was
// visited before, with a mark that stays. In a cycle it ends anywhere.
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
