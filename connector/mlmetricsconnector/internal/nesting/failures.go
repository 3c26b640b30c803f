package nesting

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
