// Package incident collects what belongs to one failure, and decides when it is
// complete: a deeper error or one with a payload, the exception's log record, the
// call that another process recorded, and the spans above.
package incident

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/attr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/detect"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/snapshot"
)

// Incident is a failure that gets an artifact. From Tracker.Open until Tracker.Due returns
// it, the tracker's lock guards it.
type Incident struct {
	// ID identifies the incident for the life of the process.
	ID uint64
	// Failure is what is known of the failure itself. Its group and variant stay when a
	// better candidate replaces it, because spans that have left by then lead there.
	Failure *failure.Failure
	// Correlation is an id that the spans of one call have in common, or "".
	Correlation string
	// Span is the failed span and Parent the one above it.
	Span, Parent failure.SpanKey

	fromLog   bool
	explains  bool // the span is a model's call
	transport bool // the span is an HTTP request
	newcomer  bool // it takes a newcomer's part of the queue

	due time.Time // when the waiting ends
}

// New returns the incident of a failed span.
func New(id uint64, f *failure.Failure, c *detect.Candidate, kinds kind.Registry) *Incident {
	attributes := c.Span.Attributes()
	return &Incident{
		ID: id, Failure: f, fromLog: c.FromLog, Span: c.Key(), Parent: c.ParentKey(), Correlation: CorrelationOf(attributes),
		explains: kinds.Explains(c.Span), transport: attr.IsRequest(attributes),
	}
}

// FromRecord returns an incident that only adds to the one of a log record's
// span.
func FromRecord(f *failure.Failure, c *detect.Candidate) *Incident {
	return &Incident{Failure: f, fromLog: true, Span: c.Key()}
}

// OfRequest reports whether the span is an HTTP request or the call of a model.
func (i *Incident) OfRequest() bool { return i.transport || i.explains }

// improvedBy reports whether n knows more of the error than i: the exception that
// a span was without, a span where there was only a log record, a call, a model's
// call above its request, or a span further down.
func (i *Incident) improvedBy(n *Incident, t *trace) bool {
	same := i.Span == n.Span
	hasCall, bringsCall := i.Failure.Call != nil, n.Failure.Call != nil
	switch {
	case n.fromLog && same:
		return i.Failure.Error.Stack == "" && n.Failure.Error.Stack != "" || bringsCall && !hasCall
	case same && i.fromLog:
		return true
	case hasCall != bringsCall:
		return bringsCall
	case i.explains != n.explains:
		return n.explains && t != nil && t.carries(i, n)
	}
	return t != nil && !same && !n.fromLog && t.isBelow(n, i)
}

// improve replaces what i has by what n has, and keeps of i what n lacks.
func (i *Incident) improve(n *Incident) {
	old, f := i.Failure, n.Failure
	if n.fromLog && i.Span == n.Span {
		merged := *old
		merged.Error = detect.MergedError(f.Error, old.Error)
		if old.Call == nil && f.Call != nil {
			merged.Replay = f.Replay
		}
		i.Failure = &merged
		return
	}
	f.Error = detect.MergedError(f.Error, old.Error)
	f.SeenAt, f.Fingerprint, f.Variant = old.SeenAt, old.Fingerprint, old.Variant
	if f.Call == nil && old.Call != nil {
		f.Replay = old.Replay
	}
	i.Failure = f
	i.Span, i.Parent, i.fromLog = n.Span, n.Parent, n.fromLog
	i.explains, i.transport = n.explains, n.transport
	i.Correlation = cmp.Or(i.Correlation, n.Correlation)
}

// adopt takes the copy of a span of the trace. One copy is enough of the
// incident's own span; where only a log record had brought the failure, the span
// replaces the record.
func (i *Incident) adopt(s *span) {
	if i.Span.Span != s.id {
		return
	}
	if !i.fromLog {
		s.copied, s.weight = i.Failure.Span, snapshot.SpanOverhead
		return
	}
	f := *i.Failure
	events := append(slices.Clip(s.copied.Events), f.Span.Events...)
	f.Span = s.copied
	f.Span.Events = events
	i.Failure, i.Parent.Span, i.fromLog = &f, s.parent, false
}

const (
	// maxID is the length of an id that is used to join. A longer one is not an id.
	maxID = 256
	// maxRank is the length of a rank, which is a number.
	maxRank = 20
)

var (
	rankKeys        = []string{attr.Rank, mlattr.RankGlobal, "global_rank"}
	correlationKeys = vocabulary.Calls().Correlation
)

// RankOf returns the rank of a span's process in its run, or "".
func RankOf(span, resource pcommon.Map) string { return firstID(maxRank, rankKeys, span, resource) }

// CorrelationOf returns the id by which the spans of one call are joined that
// have no common trace, or "".
func CorrelationOf(span pcommon.Map) string {
	id := firstID(maxID, correlationKeys, span)
	if mlattr.Sentinel(id) {
		return ""
	}
	return id
}

// firstID returns a copy of the first value that is an id of at most limit bytes, or "".
func firstID(limit int, keys []string, maps ...pcommon.Map) string {
	for _, k := range keys {
		for _, m := range maps {
			if v, ok := m.Get(k); ok {
				if text, whole := mlattr.Text(v, limit); whole && text != "" {
					return strings.Clone(text)
				}
			}
		}
	}
	return ""
}
