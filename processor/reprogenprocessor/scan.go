package reprogenprocessor

import (
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/fairness"
)

const (
	// maxErrorSpans is how many failed spans or records of a batch are looked
	// at; further ones are dropped. The services of a batch share it.
	maxErrorSpans = 512
	// maxFound is how many they are chosen from, the first of a batch.
	maxFound = 8192
)

// located is a span with the places it hangs at, and what was read of it.
type located struct {
	span     ptrace.Span
	resource pcommon.Resource
	scope    string
	sender   fairness.Sender
	// err and trigger say why the span failed.
	err     failure.Error
	trigger string
	// fromLog is true for a span that was made of a log record.
	fromLog bool
	// record is that log record, or the zero value.
	record plog.LogRecord
	// consequence is true if a span below it is known to have failed.
	consequence bool
	// recorded is the span of another trace that has the call, or nil.
	recorded *recording
}

// originOf returns the service that a resource names, of a sender.
func originOf(sender fairness.Sender, resource pcommon.Resource) fairness.Origin {
	return fairness.OriginOf(sender, firstText(resource.Attributes(), mlattr.ServiceName))
}

// attributes are where the failure is told of its artefact.
func (l *located) attributes() pcommon.Map {
	if l.fromLog {
		return l.record.Attributes()
	}
	return l.span.Attributes()
}

// batch is what a batch of spans has for this processor.
type batch struct {
	failed []located
	// calls are spans that did not fail and carry a call.
	calls []located
	// overlooked counts failed spans that are dropped.
	overlooked int
	// held says that a trace of the batch may be one that is kept.
	held bool
}

// signs are what a span shows at first sight.
type signs uint8

const (
	signFailed signs = 1 << iota
	signCorrelated
	signStep
)

// scan looks at each span once. A batch without failures, calls and traces
// that are kept costs nothing else, but that the last step of each scope's
// spans is noted.
func (r *recorder) scan(td ptrace.Traces, sender fairness.Sender) batch {
	var b batch
	now := r.now()
	kept, read := &r.book.kept, r.reader
	resources := td.ResourceSpans()
	for i := range resources.Len() {
		rs := resources.At(i)
		scopes := rs.ScopeSpans()
		succeeded := false
		for j := range scopes.Len() {
			spans := scopes.At(j).Spans()
			step, ended := -1, pcommon.Timestamp(0)
			for k := range spans.Len() {
				span := spans.At(k)
				held := kept.mayHave(span.TraceID())
				b.held = b.held || held
				seen := look(span)
				succeeded = succeeded || seen&signFailed == 0
				if end := span.EndTimestamp(); seen&signStep != 0 && end >= ended {
					step, ended = k, end
				}
				// A call is of use only where something may refer to it.
				if seen&signFailed == 0 && (seen&signCorrelated == 0 && !held || !read.hasCall(span.Attributes())) {
					continue
				}
				b.add(located{span: span, resource: rs.Resource(), scope: scopes.At(j).Scope().Name(), sender: sender}, seen)
			}
			if step >= 0 {
				r.noteStep(spans.At(step), rs.Resource())
			}
		}
		if succeeded {
			r.standings.Succeeded(originOf(sender, rs.Resource()), now)
		}
	}
	found := len(b.failed) + b.overlooked
	b.failed = r.shared(b.failed)
	b.overlooked = found - len(b.failed)
	b.failed = slices.DeleteFunc(b.failed, func(l located) bool { return l.trigger == "" && isEndOfIteration(l.span, l.err) })
	return b
}

func (b *batch) add(l located, seen signs) {
	switch {
	case seen&signFailed == 0:
		b.calls = append(b.calls, l)
	case len(b.failed) < maxFound:
		b.failed = append(b.failed, l)
	default:
		b.overlooked++
	}
}

// shared returns those of a batch's failures that are looked at, with why they
// failed. Where there are too many each service has its share.
func (r *recorder) shared(failed []located) []located {
	if len(failed) > maxErrorSpans {
		items := make([]fairness.Item, len(failed))
		for i, l := range failed {
			items[i] = fairness.Item{Path: r.standings.Path(originOf(l.sender, l.resource)), Weight: 1}
		}
		chosen := make([]located, 0, maxErrorSpans)
		for i, kept := range fairness.Keep(items, maxErrorSpans) {
			if kept {
				chosen = append(chosen, failed[i])
			}
		}
		failed = chosen
	}
	for i := range failed {
		l := &failed[i]
		if l.fromLog {
			l.span = spanOf(l.record, l.scope)
		}
		l.err, l.trigger = errorOf(l.span), triggerOf(l.attributes())
	}
	return failed
}

// look tells in one pass over its attributes whether a span failed, and
// whether it carries the id of a call. A span has failed if its status says so, or if
// its client names a trigger, or if its loss is no number; and where the
// status was left unset, if an exception was recorded on it, as TuFT's futures
// do. The end of a data loader is raised as an exception and is no failure.
func look(span ptrace.Span) signs {
	var seen signs
	switch span.Status().Code() {
	case ptrace.StatusCodeError:
		seen = signFailed
	case ptrace.StatusCodeUnset:
		if events := span.Events(); events.Len() > 0 && hasException(events) {
			seen = signFailed
		}
	}
	ended := false
	for k, v := range span.Attributes().All() {
		switch k {
		case mlattr.Step:
			seen |= signStep
		case attrSnakepitCorrelation, attrCorrelation:
			seen |= signCorrelated
		case attrTrigger:
			if isTrigger(v) {
				return seen | signFailed
			}
		case mlattr.Loss:
			if nonFinite(v) != "" {
				return seen | signFailed
			}
		case mlattr.EpochEnd:
			ended = v.Type() == pcommon.ValueTypeBool && v.Bool()
		}
	}
	if ended {
		seen &^= signFailed
	}
	return seen
}

func hasException(events ptrace.SpanEventSlice) bool {
	for i := range events.Len() {
		if events.At(i).Name() == attrExceptionEvent {
			return true
		}
	}
	return false
}

// triggers are the failures that are no exceptions.
var triggers = map[string]bool{"nan": true, "inf": true, "timeout": true, "oom": true, "crash": true}

func isTrigger(v pcommon.Value) bool {
	return v.Type() == pcommon.ValueTypeStr && triggers[v.Str()]
}

// nonFinite names a loss that is no number.
func nonFinite(v pcommon.Value) string {
	if v.Type() != pcommon.ValueTypeDouble {
		return ""
	}
	switch d := v.Double(); {
	case math.IsNaN(d):
		return "nan"
	case math.IsInf(d, 0):
		return "inf"
	}
	return ""
}

// triggerOf returns what the client says, or what its loss says, or "".
func triggerOf(attributes pcommon.Map) string {
	if v, ok := attributes.Get(attrTrigger); ok && isTrigger(v) {
		return v.Str()
	}
	if v, ok := attributes.Get(mlattr.Loss); ok {
		return nonFinite(v)
	}
	return ""
}
