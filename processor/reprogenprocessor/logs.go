package reprogenprocessor

import (
	"context"
	"encoding/hex"
	"strings"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/fairness"
)

// logsProcessor looks for exceptions that arrive as log records and passes
// everything on.
type logsProcessor struct {
	instance
	next consumer.Logs
}

// Start acquires the recorder, which may send its artefacts here.
func (p *logsProcessor) Start(ctx context.Context, host component.Host) error {
	if err := p.instance.Start(ctx, host); err != nil {
		return err
	}
	p.recorder.outlets.add(p.next)
	return nil
}

// Shutdown lets the recorder send what it has before the pipeline behind is
// gone, and gives it back.
func (p *logsProcessor) Shutdown(ctx context.Context) error {
	if p.recorder != nil {
		p.recorder.finishFor(ctx, p.next)
	}
	return p.instance.Shutdown(ctx)
}

// Capabilities says that log records are changed: an exception's gets the
// attributes that lead to its artefact.
func (*logsProcessor) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: true}
}

// ConsumeLogs offers the batch's exceptions to the recorder and passes the
// batch on. Nothing that goes wrong with an artefact is an error here.
func (p *logsProcessor) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	p.recorder.sawLogs(ctx, ld)
	return p.next.ConsumeLogs(ctx, ld)
}

// sawLogs looks at a batch of log records for exceptions. It never blocks and
// never fails.
func (r *recorder) sawLogs(ctx context.Context, ld plog.Logs) {
	overlooked, now := 0, r.now()
	var failed []located
	sender := fairness.SenderOf(client.FromContext(ctx))
	for _, rl := range ld.ResourceLogs().All() {
		succeeded := false
		for _, sl := range rl.ScopeLogs().All() {
			for _, record := range sl.LogRecords().All() {
				if record.EventName() == xidEvent {
					r.noteXID(record, rl.Resource().Attributes())
				}
				if !tellsOfFailure(record.Attributes()) {
					succeeded = true
					continue
				}
				if len(failed) == maxFound {
					overlooked++
					continue
				}
				failed = append(failed, located{
					record: record, fromLog: true, resource: rl.Resource(), scope: sl.Scope().Name(), sender: sender,
				})
			}
		}
		if succeeded {
			r.standings.Succeeded(originOf(sender, rl.Resource()), now)
		}
	}
	if len(failed) == 0 {
		return
	}
	found := len(failed) + overlooked
	failed = r.shared(failed)
	if dropped := found - len(failed); dropped > 0 {
		r.dropped(ctx, dropped, dropBatchLimit)
	}
	for i := range failed {
		r.sawRecord(ctx, &failed[i])
	}
	r.endOfBatch()
}

// tellsOfFailure reports whether a record has an exception or a trigger.
func tellsOfFailure(attributes pcommon.Map) bool {
	for k, v := range attributes.All() {
		switch k {
		case attrExceptionType, attrExceptionMessage:
			if v.Type() == pcommon.ValueTypeStr && v.Str() != "" {
				return true
			}
		case attrTrigger:
			if isTrigger(v) {
				return true
			}
		}
	}
	return false
}

// sawRecord takes an exception's record for the failed span that it is
// about. A record below the severity ERROR tells of an exception that the
// program coped with: it only completes a span that failed all the same.
func (r *recorder) sawRecord(ctx context.Context, l *located) {
	span := l.span
	if l.trigger == "" && isEndOfIteration(span, l.err) {
		return
	}
	severity := l.record.SeverityNumber()
	if severity >= plog.SeverityNumberError || severity == plog.SeverityNumberUnspecified || l.trigger != "" {
		r.sawFailure(ctx, l)
		return
	}
	if span.TraceID().IsEmpty() || span.SpanID().IsEmpty() {
		return
	}
	now := r.now()
	if id, ok := r.book.at(span.TraceID(), span.SpanID()); ok {
		f := describe(r.reader, *l)
		r.improve(id, &incident{failure: f, fromLog: true, trace: span.TraceID(), span: span.SpanID()}, l, now)
		return
	}
	r.exceptions.put(l.key(), l.err, int64(len(l.err.Type)+len(l.err.Message)+len(l.err.Stack)+spanOverhead), originOf(l.sender, l.resource), now)
}

// maxCopiedBytes bounds what is copied of a body or an attribute of a record. It
// is more than any payload or stack trace that is read.
const maxCopiedBytes = 1 << 20

// spanOf makes of a record the span that it would be: failed, with the
// record's attributes, and with the exception as its event.
func spanOf(record plog.LogRecord, scope string) ptrace.Span {
	span := ptrace.NewSpan()
	span.SetTraceID(record.TraceID())
	span.SetSpanID(record.SpanID())
	if record.TraceID().IsEmpty() {
		span.SetTraceID(hexID[pcommon.TraceID](firstText(record.Attributes(), attrLogTraceID)))
		span.SetSpanID(hexID[pcommon.SpanID](firstText(record.Attributes(), attrLogSpanID)))
	}
	span.SetName(record.EventName())
	if span.Name() == "" {
		span.SetName(scope)
	}
	at := record.Timestamp()
	if at == 0 {
		at = record.ObservedTimestamp()
	}
	span.SetStartTimestamp(at)
	span.SetEndTimestamp(at)
	span.Status().SetCode(ptrace.StatusCodeError)
	message, _ := mlattr.Text(record.Body(), maxCopiedBytes)
	span.Status().SetMessage(message)
	event := span.Events().AppendEmpty()
	event.SetName(attrExceptionEvent)
	event.SetTimestamp(at)
	for k, v := range record.Attributes().All() {
		if strings.HasPrefix(k, "exception.") {
			mlattr.Copy(v, event.Attributes().PutEmpty(k), maxCopiedBytes)
		} else {
			mlattr.Copy(v, span.Attributes().PutEmpty(k), maxCopiedBytes)
		}
	}
	return span
}

// hexID reads an id as Python's logging bridge writes it; what is none is the
// empty id.
func hexID[T ~[16]byte | ~[8]byte](text string) (id T) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != len(id) {
		return id
	}
	for i := range len(id) {
		id[i] = b[i]
	}
	return id
}
