package mlmetricsconnector

// lowest is innermost where spans that are no candidates may lie between those
// that are: links, which failed as well. A link is not counted. It hands on
// what is known above and below it, as spans arrive from the lowest to the
// highest or the other way round, in one batch or several.
func (n *nesting) lowest(candidates, links []candidate) []verdict {
	if len(links) == 0 {
		return n.innermost(candidates)
	}
	above := make(map[spanRef]spanRef, len(links))
	for i := range links {
		if l := &links[i]; l.nested() {
			above[l.self] = l.parent
		}
	}
	// top marks what lies from a span up to the first that is no link of this
	// batch, and returns that one. The bound is for cycles.
	top := func(ref spanRef, m mark) spanRef {
		for range len(links) + 1 {
			if m != 0 {
				n.set(ref, m)
			}
			next, link := above[ref]
			if !link {
				break
			}
			ref = next
		}
		return ref
	}
	for i := range links {
		if l := &links[i]; l.nested() && n.has(l.self, covered) {
			top(l.parent, covered)
		}
	}
	for i := range candidates {
		if c := &candidates[i]; c.nested() {
			c.parent = top(c.parent, covered)
		}
	}
	verdicts := n.innermost(candidates)
	// What comes later, below a link of this batch, must find what is above it.
	for i := range links {
		if l := &links[i]; l.nested() && n.has(top(l.parent, 0), counted) {
			n.set(l.self, counted)
		}
	}
	return verdicts
}
