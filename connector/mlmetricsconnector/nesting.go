package mlmetricsconnector

// spanRef identifies a span among all traces.
type spanRef struct {
	trace [16]byte
	span  [8]byte
}

// known is false for a span id of zeros, which a broken or hostile client
// sends for all of its spans.
func (r spanRef) known() bool { return r.span != [8]byte{} }

// candidate is a span that may be counted, and the span above it.
type candidate struct {
	self, parent spanRef
	// always counts the span whatever is below or above it.
	always bool
}

// nested says whether a rule about nesting can apply to the candidate.
func (c *candidate) nested() bool {
	return c.self.known() && c.parent.known() && c.self != c.parent
}

// mark is what is remembered about a span.
type mark uint8

const (
	// counted: the span was counted itself or through one above it, so that
	// nothing directly below it counts.
	counted mark = 1 << iota
	// covered: something directly below the span was counted in its stead.
	covered
)

// nesting decides which one of several spans that lie directly below one
// another is counted. Children mostly arrive before their parents, also in an
// earlier request, so it remembers what it decided, the most recent spans
// only: beyond that a chain may be counted twice. It is not safe for
// concurrent use.
type nesting struct {
	marks *recent
	// parents and verdicts are memory of a batch.
	parents  map[spanRef]spanRef
	verdicts []verdict
}

func newNesting(size int) *nesting {
	return &nesting{marks: newRecent(size), parents: make(map[spanRef]spanRef)}
}

func (n *nesting) has(ref spanRef, m mark) bool {
	return mark(n.marks.get(ref))&m != 0
}

func (n *nesting) set(ref spanRef, m mark) {
	n.marks.add(ref, uint8(m))
}

// verdict is what nesting decided about a candidate.
type verdict uint8

const (
	// below: a span above it stands for its chain.
	below verdict = iota
	// above: its chain was counted at a span below it.
	above
	// counts: it stands for its chain.
	counts
)

// outermost returns the verdict on each candidate of one batch, until the next
// is asked for: the topmost of a chain counts. Where a lower one arrived in an
// earlier batch and was counted, that one stands for the chain.
func (n *nesting) outermost(candidates []candidate) []verdict {
	if len(candidates) == 0 {
		return nil
	}
	if len(n.parents) > maxKeptUpdates {
		n.parents = make(map[spanRef]spanRef) // clearing it would take long ever after
	}
	parents := n.parents
	clear(parents)
	for i := range candidates {
		if c := &candidates[i]; c.self.known() {
			parents[c.self] = c.parent
		}
	}
	// What was counted in an earlier batch covers its whole chain upwards.
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

// cover marks what lies above a span that is covered, and returns how many
// spans it has marked. It ends at one that is covered already, which has its own
// turn: a batch that is one long chain is gone through once. The bound is for
// cycles that are too long to be remembered.
func (n *nesting) cover(ref spanRef, parents map[spanRef]spanRef) (marked int) {
	for range len(parents) {
		if !ref.known() || !n.has(ref, covered) {
			break
		}
		parent, here := parents[ref]
		if !here || !parent.known() || n.has(parent, covered) {
			break
		}
		n.set(parent, covered)
		marked++
		ref = parent
	}
	return marked
}

// blank returns so many verdicts.
func (n *nesting) blank(count int) []verdict {
	n.verdicts = append(n.verdicts[:0], make([]verdict, count)...)
	return n.verdicts
}

// innermost returns the verdict on each candidate of one batch, until the next
// is asked for: the lowest of a chain counts. Where a higher one arrived in an
// earlier batch and was counted, that one stands for the chain.
func (n *nesting) innermost(candidates []candidate) []verdict {
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
			n.set(c.self, counted)
		case n.has(c.self, covered):
			verdicts[i] = above
		case c.nested() && n.has(c.parent, counted):
			verdicts[i] = below
		default:
			verdicts[i] = counts
			n.set(c.self, counted)
		}
	}
	return verdicts
}
