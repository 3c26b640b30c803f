package mlenrichprocessor

import "go.opentelemetry.io/collector/pdata/ptrace"

// A link says that a span of another trace led to this one: the message that a
// consumer handles, the requests that a server answers together. What is known
// of the linked span holds for the one that links, and for those below it, as
// long as nothing nearer says otherwise and all its links agree.

// How many links are followed: of a span, beyond which it is not seen whether
// all agree and none is, and of a batch.
const (
	maxLinks      = 64
	maxBatchLinks = 16384
)

// maxLinkRounds is how many links one after the other are followed within a
// batch.
const maxLinkRounds = 8

// link is one link of a span.
type link struct {
	to spanKey
	// at is the linked span by its place in the batch, or nowhere.
	at int32
	// known is what earlier batches said of one that is not in the batch.
	known symbolSet
}

// linker is a span with links.
type linker struct {
	at int32
	// first and end are the places of its links in resolution.links.
	first, end int32
	given      symbolSet
}

// readLinks notes the links of a span to other traces. The span is the last of
// the batch's nodes.
func (r *resolution) readLinks(span ptrace.Span) {
	links, own := span.Links(), span.TraceID()
	if links.Len() > maxLinks || len(r.links)+links.Len() > maxBatchLinks || own.IsEmpty() {
		return
	}
	l := linker{at: int32(len(r.nodes) - 1), first: int32(len(r.links))}
	for _, to := range links.All() {
		if trace := to.TraceID(); trace != own && !trace.IsEmpty() && !to.SpanID().IsEmpty() {
			r.links = append(r.links, link{to: spanKey{trace, to.SpanID()}, at: nowhere})
		}
	}
	if l.end = int32(len(r.links)); l.end > l.first {
		r.linkers = append(r.linkers, l)
	}
}

// noteLinks marks the traces that have links: something may be inherited there.
func (r *resolution) noteLinks() {
	for i := range r.linkers {
		r.traces[r.nodes[r.linkers[i].at].traceAt].linked = true
	}
}

// followLinks lets the spans with links have what the linked ones have, and
// hand it down.
func (r *resolution) followLinks(ix index) {
	if len(r.linkers) == 0 {
		return
	}
	r.findLinked(ix)
	for range maxLinkRounds {
		if !r.takeLinked() {
			return
		}
		r.inheritAgain()
		if r.leaveOtherSessions() {
			r.inheritAgain()
		}
	}
}

// inheritAgain lets the spans of traces with links inherit as if for the first
// time: what came down to them before may have changed.
func (r *resolution) inheritAgain() {
	for i := range r.nodes {
		n := &r.nodes[i]
		if n.traceAt == nowhere || !r.traces[n.traceAt].linked {
			continue
		}
		n.state, n.conflict = unresolved, 0
		n.forget(fromParent)
	}
	r.inheritAll()
}

// leaveOtherSessions takes what links gave from the spans to which another session
// came down in the same round, and says whether there were any.
func (r *resolution) leaveOtherSessions() bool {
	some := false
	for i := range r.linkers {
		l := &r.linkers[i]
		n := &r.nodes[l.at]
		have := n.linkedKeys(&r.traces[n.traceAt].agreed)[keySession]
		if have != 0 && l.given[keySession] != 0 && have != l.given[keySession] {
			some = n.forget(fromLink) || some
		}
	}
	return some
}

// forget takes the keys from the node that it inherited from there, and says
// whether there were any.
func (n *node) forget(from origin) bool {
	some := false
	for k := range keyInferred {
		if n.from[k] != from {
			continue
		}
		n.keys[k], n.from[k], some = 0, fromNowhere, true
		if k == keyRun {
			n.keys[keyInferred] = 0
		}
	}
	return some
}

// findLinked finds the linked spans, in the batch or else in earlier ones.
func (r *resolution) findLinked(ix index) {
	beyond := false
	for i := range r.links {
		l := &r.links[i]
		if trace, ok := r.traceAt[l.to.trace]; ok && r.traces[trace].active {
			l.at = r.findSpan(&r.traces[trace], l.to)
		}
		beyond = beyond || l.at == nowhere
	}
	if beyond {
		ix.linked(r.links, &r.texts)
	}
}

// takeLinked lets each span with links have what these say, and says whether
// any had something new. All see the same, so that their order does not matter.
func (r *resolution) takeLinked() bool {
	for i := range r.linkers {
		l := &r.linkers[i]
		var said symbolAgreement
		for j := l.first; j < l.end; j++ {
			keys := r.links[j].known
			if at := r.links[j].at; at != nowhere {
				n := &r.nodes[at]
				keys = n.linkedKeys(&r.traces[n.traceAt].agreed)
			}
			said.observe(&keys)
		}
		l.given = said.agreed()
	}
	news := false
	for i := range r.linkers {
		l := &r.linkers[i]
		n := &r.nodes[l.at]
		news = n.takeLinked(&l.given, &r.traces[n.traceAt].agreed) || news
	}
	return news
}

// linkedKeys are what a span that is linked to has: what it says, what it
// inherits, and what its trace agrees about. A run that was inferred for its
// resource says nothing about others.
func (n *node) linkedKeys(agreed *symbolSet) symbolSet {
	keys := n.own
	for k := range keyInferred {
		from := &n.keys
		if n.keys[k] == 0 {
			if from = agreed; !n.admits(k, agreed) {
				continue
			}
		}
		keys[k] = from[k]
		if k == keyRun {
			keys[keyInferred] = from[keyInferred]
		}
	}
	if keys[keyRun] == 0 && !n.resourceInferred {
		keys[keyRun] = n.resourceRun
	}
	return keys
}

// takeLinked lets the node have the keys that it and its trace lack. A span of
// another session gives nothing: what else it has is of that session.
func (n *node) takeLinked(given, agreed *symbolSet) bool {
	own := n.linkedKeys(agreed)
	if have := own[keySession]; have != 0 && given[keySession] != 0 && have != given[keySession] {
		return false
	}
	news := false
	for k := range keyInferred {
		if own[k] == 0 && n.admits(k, given) {
			n.inheritKey(k, given, fromLink)
			news = true
		}
	}
	return news
}
