package reprogenprocessor

import (
	"cmp"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
)

// maxRanksListed is how many failures of other ranks one artefact lists.
const maxRanksListed = 256

// stage is where an incident is on its way.
type stage int

const (
	stageWaiting stage = iota // for the rest of its story
	stageQueued               // to be written, or being written
	stageWritten              // may still be enriched
	stageGone                 // there is no artefact, and there will be none
)

// incident is a failure that gets an artefact. The book's lock guards it.
type incident struct {
	id uint64
	// group is the fingerprint that it was counted in. It stays when a better
	// candidate takes the failure's place, because spans that have left by
	// then lead there.
	group   string
	failure *failure.Failure

	trace        pcommon.TraceID
	span, parent pcommon.SpanID
	fromLog      bool
	correlation  string
	explains     bool // it is a model's call
	request      bool // it is an HTTP request
	newcomer     bool // it holds a place in the queue as one
	run, rank    string
	host, name   string
	variant      string    // the id of the one that it was counted as
	at           time.Time // when it failed, by the sender's clock

	stage stage
	due   time.Time // when the waiting ends
	file  string    // the artefact's name, once there is one
	since time.Time // when it was written for the first or the last time
	// above and complete are what the artefact says of the spans above.
	above    int
	complete bool
}

// story returns the failure with what is known around it. t may be nil.
func (i *incident) story(t *heldTrace) *failure.Failure {
	f := *i.failure
	f.Fingerprint = i.group
	f.Ranks = slices.Clone(f.Ranks)
	if t == nil {
		return &f
	}
	above, complete := t.above(i)
	f.Ancestors, f.Siblings, f.Others = nil, nil, nil
	f.Complete = complete
	known := map[pcommon.SpanID]bool{i.span: true}
	for _, s := range above {
		known[s.id] = true
		f.Ancestors = append(f.Ancestors, s.copied)
	}
	for _, s := range t.order {
		switch {
		case known[s.id]:
		case s.failed:
			f.Siblings = append(f.Siblings, s.copied)
		default:
			f.Others = append(f.Others, s.copied)
		}
	}
	f.OmittedSpans = t.omitted
	return &f
}

// better reports whether n has more to tell of the error than i: the
// exception that a span was without, a span where there was only a log
// record, a call, a model's call above its request, or a place further down.
func (i *incident) better(n *incident, t *heldTrace) bool {
	same := i.trace == n.trace && i.span == n.span
	hasCall, bringsCall := i.failure.Call != nil, n.failure.Call != nil
	switch {
	case n.fromLog && same:
		return i.failure.Error.Stack == "" && n.failure.Error.Stack != "" || bringsCall && !hasCall
	case same && i.fromLog:
		return true
	case hasCall != bringsCall:
		return bringsCall
	case i.explains != n.explains:
		return n.explains && t != nil && carried(t, i, n)
	}
	return t != nil && !same && !n.fromLog && t.isBelow(n, i)
}

// take puts what n knows in place of what i knows, and keeps of i what n is
// without.
func (i *incident) take(n *incident) {
	old, f := i.failure, n.failure
	if n.fromLog && i.trace == n.trace && i.span == n.span {
		merged := *old
		merged.Error = mergedError(f.Error, old.Error)
		if old.Call == nil && f.Call != nil {
			merged.Call, merged.Kind, merged.Reason = f.Call, f.Kind, f.Reason
		}
		i.failure = &merged
		return
	}
	f.Error = mergedError(f.Error, old.Error)
	f.Ranks, f.SeenAt, f.Variant = old.Ranks, old.SeenAt, old.Variant
	if f.Call == nil && old.Call != nil {
		f.Call, f.Kind, f.Reason, f.PayloadFrom = old.Call, old.Kind, old.Reason, old.PayloadFrom
	}
	i.failure = f
	i.trace, i.span, i.parent, i.fromLog = n.trace, n.span, n.parent, n.fromLog
	i.explains, i.request = n.explains, n.request
	i.correlation = cmp.Or(i.correlation, n.correlation)
}

// meet looks at the copy of a span of the trace. If it is the incident's own,
// one copy is enough; if only a log record had told of it, the span takes the
// record's place.
func (i *incident) meet(s *heldSpan) {
	if i.span != s.id || i.stage != stageWaiting {
		return
	}
	if !i.fromLog {
		s.copied, s.weight = i.failure.Span, spanOverhead
		return
	}
	f := *i.failure
	events := slices.Concat(s.copied.Events, f.Span.Events)
	f.Span = s.copied
	f.Span.Events = events
	i.failure, i.parent, i.fromLog = &f, s.parent, false
}

// mergedError prefers the one that has a stack trace.
func mergedError(a, b failure.Error) failure.Error {
	if a.Stack == "" && b.Stack != "" {
		a, b = b, a
	}
	a.Type = cmp.Or(a.Type, b.Type)
	a.Message = cmp.Or(a.Message, b.Message)
	return a
}

// list notes the failure of another rank, the earliest first, one a rank.
func (i *incident) list(r failure.Rank) bool {
	ranks := i.failure.Ranks
	if len(ranks) >= maxRanksListed || slices.ContainsFunc(ranks, func(known failure.Rank) bool { return known.Rank == r.Rank }) {
		return false
	}
	f := *i.failure
	f.Ranks = append(slices.Clone(ranks), r)
	slices.SortStableFunc(f.Ranks, func(a, b failure.Rank) int { return a.Time.Compare(b.Time) })
	i.failure = &f
	return true
}

// asRank is the incident as it is listed by another rank's.
func (i *incident) asRank() failure.Rank {
	f := i.failure
	return failure.Rank{
		Origin: failure.Origin{Service: f.Service, Name: i.name, TraceID: hexTrace(i.trace), SpanID: hexSpan(i.span)},
		Rank:   i.rank, Host: i.host, Fingerprint: i.group,
		Type: f.Error.Type, Message: f.Error.Message, Time: i.at,
	}
}
