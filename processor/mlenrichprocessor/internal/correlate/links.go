package correlate

import (
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

// A link names a span of another trace that led to this one: the message that a
// consumer handles, the requests that a server answers together. What is known
// of the linked span holds for the span with the link and for its descendants,
// unless a nearer span differs or the span's links disagree.

// How many links are followed: of a span, beyond which none is, since it is not
// known whether all agree, and of a batch.
const (
	maxLinks      = 64
	maxBatchLinks = 16384
)

// maxLinkRounds is how many consecutive links are followed within a batch.
const maxLinkRounds = 8

// linkSearch is the links of a batch.
type linkSearch struct {
	linkers []linker
	links   []link
}

func (l *linkSearch) reset() { l.linkers, l.links = l.linkers[:0], l.links[:0] }

// link is one link of a span.
type link struct {
	to spanKey
	// at is the linked span in the batch, or none.
	at int32
	// known is what earlier batches said of one that is not in the batch.
	known set[symbol]
}

// linker is a span with links.
type linker struct {
	at int32
	// first and end delimit its links.
	first, end int32
	given      set[symbol]
}

// read notes the links of a span with an index to other traces.
func (l *linkSearch) read(s ptrace.Span, at int) {
	list, own := s.Links(), s.TraceID()
	if list.Len() > maxLinks || len(l.links)+list.Len() > maxBatchLinks || own.IsEmpty() {
		return
	}
	from := linker{at: int32(at), first: int32(len(l.links))}
	for _, to := range list.All() {
		if trace := to.TraceID(); trace != own && !trace.IsEmpty() && !to.SpanID().IsEmpty() {
			l.links = append(l.links, link{to: spanKey{trace, to.SpanID()}, at: none})
		}
	}
	if from.end = int32(len(l.links)); from.end > from.first {
		l.linkers = append(l.linkers, from)
	}
}

// mark marks the traces that have links: something may be inherited there.
func (l *linkSearch) mark(b *branches) {
	for i := range l.linkers {
		b.traces[b.spans[l.linkers[i].at].traceAt].linked = true
	}
}

// follow lets the spans with links have what the linked ones have, and hand it down.
func (l *linkSearch) follow(b *branches) {
	for range maxLinkRounds {
		if !l.take(b) {
			return
		}
		b.inheritAgain()
		if l.leaveOtherSessions(b) {
			b.inheritAgain()
		}
	}
}

// inheritAgain lets the spans of traces with links inherit as if for the first
// time: what came down to them before may have changed.
func (b *branches) inheritAgain() {
	for i := range b.spans {
		n := &b.spans[i]
		if n.traceAt == none || !b.traces[n.traceAt].linked {
			continue
		}
		n.state, n.conflict = unresolved, 0
		n.forget(fromParent)
	}
	b.inheritAll()
}

// leaveOtherSessions takes the keys of links from the spans to which another
// session came down in the same round, and reports whether there were any.
func (l *linkSearch) leaveOtherSessions(b *branches) (changed bool) {
	for i := range l.linkers {
		given := l.linkers[i].given[keySession]
		n := &b.spans[l.linkers[i].at]
		have := n.linkedKeys(&b.traces[n.traceAt].agreed)[keySession]
		if have != 0 && given != 0 && have != given {
			changed = n.forget(fromLink) || changed
		}
	}
	return changed
}

// forget removes the keys that the span inherited from there, and reports
// whether there were any.
func (n *span) forget(from origin) (changed bool) {
	for k := range keyInferred {
		if n.from[k] != from {
			continue
		}
		n.keys[k], n.from[k], changed = 0, notInherited, true
		if k == keyRun {
			n.keys[keyInferred] = 0
		}
	}
	return changed
}

// find finds the linked spans in the batch, or else what is known of them. The store
// is locked.
func (l *linkSearch) find(b *branches, s *Store, now time.Time) {
	var f finder
	for i := range l.links {
		one := &l.links[i]
		if at, ok := b.traceAt[one.to.trace]; ok && b.traces[at].active {
			one.at = b.findSpan(&b.traces[at], one.to)
		}
		if one.at != none {
			continue
		}
		k := f.known(s, one.to, now)
		for key := range keyInferred {
			value, _, inferred := k.key(key)
			one.known[key] = b.texts.of(key, value)
			if key == keyRun && value != "" && inferred {
				one.known[keyInferred] = b.texts.of(keyInferred, textTrue)
			}
		}
	}
}

// take lets each span with links have what they say, and reports whether
// any got something new. All see the same, so that their order does not matter.
func (l *linkSearch) take(b *branches) (changed bool) {
	for i := range l.linkers {
		from := &l.linkers[i]
		var said agreement[symbol]
		links := l.links[from.first:from.end]
		for j := range links {
			one := &links[j]
			keys := one.known
			if one.at != none {
				n := &b.spans[one.at]
				keys = n.linkedKeys(&b.traces[n.traceAt].agreed)
			}
			said.observe(&keys)
		}
		from.given = said.agreed()
	}
	for i := range l.linkers {
		from := &l.linkers[i]
		n := &b.spans[from.at]
		changed = n.takeLinked(&from.given, &b.traces[n.traceAt].agreed) || changed
	}
	return changed
}

// linkedKeys returns what a linked span has: what it reports, what it inherits,
// and what its trace agrees about. A run that was inferred for its resource
// says nothing about others.
func (n *span) linkedKeys(agreed *set[symbol]) set[symbol] {
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
	if keys[keyRun] == 0 && !n.of.inferred {
		keys[keyRun] = n.of.run
	}
	return keys
}

// takeLinked lets the span have the keys that it and its trace lack. A span of
// another session gives nothing: its other keys are of that session.
func (n *span) takeLinked(given, agreed *set[symbol]) (changed bool) {
	own := n.linkedKeys(agreed)
	if have := own[keySession]; have != 0 && given[keySession] != 0 && have != given[keySession] {
		return false
	}
	for k := range keyInferred {
		if own[k] == 0 && n.admits(k, given) {
			n.inheritKey(k, given, fromLink)
			changed = true
		}
	}
	return changed
}
