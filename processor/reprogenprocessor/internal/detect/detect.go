// Package detect finds in a batch the spans and log records that failed, reads
// what went wrong, and chooses those where an error began.
package detect

import (
	"math"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/spanfact"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/attr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/snapshot"
)

// Candidate is a failed span of a batch. It is valid as long as the batch.
type Candidate struct {
	Span     ptrace.Span
	Resource pcommon.Resource
	// Scope is the name of the instrumentation scope.
	Scope  string
	Sender share.Sender
	// Err and Trigger are why the span failed.
	Err     failure.Error
	Trigger string
	// FromLog is true for a span that was made of a log record, which is Record.
	FromLog bool
	Record  plog.LogRecord
}

// Key identifies the span.
func (c *Candidate) Key() failure.SpanKey {
	return failure.SpanKey{Trace: c.Span.TraceID(), Span: c.Span.SpanID()}
}

// ParentKey identifies the span's parent.
func (c *Candidate) ParentKey() failure.SpanKey {
	return failure.SpanKey{Trace: c.Span.TraceID(), Span: c.Span.ParentSpanID()}
}

// Origin returns the service that the resource names, of the sender.
func (c *Candidate) Origin() share.Origin { return originOf(c.Sender, c.Resource) }

func originOf(sender share.Sender, resource pcommon.Resource) share.Origin {
	return share.OriginOf(sender, mlattr.FirstText(resource.Attributes(), mlattr.ServiceName))
}

// Service returns a copy of the resource's service.name.
func (c *Candidate) Service() string {
	v, ok := c.Resource.Attributes().Get(mlattr.ServiceName)
	if !ok {
		return ""
	}
	text, _ := mlattr.Text(v, snapshot.MaxValue)
	return strings.Clone(text)
}

// Attributes returns those that are passed on: of the span, or of the record that
// it was made of.
func (c *Candidate) Attributes() pcommon.Map {
	if c.FromLog {
		return c.Record.Attributes()
	}
	return c.Span.Attributes()
}

// FailedAt returns when the span failed, by its sender's clock, or now where it
// has no time.
func (c *Candidate) FailedAt(now time.Time) time.Time {
	if event, raised := spanfact.Exception(c.Span); raised && event.Timestamp() != 0 {
		return event.Timestamp().AsTime()
	}
	if end := c.Span.EndTimestamp(); end != 0 {
		return end.AsTime()
	}
	return now
}

// Failed reports whether a span failed.
func Failed(span ptrace.Span) bool {
	failed, _ := signsOf(span)
	return failed
}

// signsOf finds in one pass over its attributes whether a span failed, and
// whether it has the id of a call. A span failed if an exception left it, if its client
// names a trigger, or if its loss is not a number.
func signsOf(span ptrace.Span) (failed, correlated bool) {
	var end spanfact.End
	asks := false
	for k, v := range span.Attributes().All() {
		switch k {
		case mlattr.GenAIOperationName:
			asks = v.Type() == pcommon.ValueTypeStr && vocabulary.AsksModel(v.Str())
		case attr.Trigger:
			failed = failed || isTrigger(v)
		case mlattr.Loss:
			failed = failed || nonFinite(v) != ""
		default:
			correlated = !end.ReadAttribute(k, v) && vocabulary.IsCorrelation(k) || correlated
		}
	}
	// A request may have failed whatever its status; ml_enrich says so.
	return failed || end.Raised(span) || asks && end.ErrorType != "", correlated
}

// triggers are the failures that are no exceptions.
var triggers = map[string]bool{"nan": true, "inf": true, "timeout": true, "oom": true, "crash": true}

func isTrigger(v pcommon.Value) bool {
	return triggers[v.Str()]
}

// nonFinite names a loss that is not a number, or returns "".
func nonFinite(v pcommon.Value) string {
	switch d := v.Double(); {
	case math.IsNaN(d):
		return "nan"
	case math.IsInf(d, 0):
		return "inf"
	}
	return ""
}

// triggerOf returns the client's trigger, or what its loss is, or "".
func triggerOf(attributes pcommon.Map) string {
	if v, ok := attributes.Get(attr.Trigger); ok && isTrigger(v) {
		return v.Str()
	}
	if v, ok := attributes.Get(mlattr.Loss); ok {
		return nonFinite(v)
	}
	return ""
}
