package reprogenprocessor

import (
	"context"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// tracesProcessor looks for error spans and passes everything on.
type tracesProcessor struct {
	instance
	next consumer.Traces
}

// Capabilities says that spans are changed: a candidate gets the attributes
// that lead to its artefact.
func (*tracesProcessor) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: true}
}

// ConsumeTraces offers the batch's failures to the recorder and passes the
// batch on. Nothing that goes wrong with an artefact is an error here.
func (p *tracesProcessor) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	if found, more := errorSpans(td); len(found) > 0 {
		if more > 0 {
			p.recorder.overlooked(ctx, more)
		}
		for _, l := range candidates(found) {
			p.offer(ctx, td, l)
		}
	}
	return p.next.ConsumeTraces(ctx, td)
}

// offer copies a failure only if the recorder wants it: of a flood of equal
// errors, nearly all are a number in a group. The span is told of its group,
// and of the group's folder only if there is one or will be.
func (p *tracesProcessor) offer(ctx context.Context, td ptrace.Traces, l located) {
	f := describe(l)
	d := p.recorder.admit(ctx, occurrence{
		fingerprint: f.Fingerprint,
		service:     f.Service,
		trace:       l.span.TraceID(),
		errorType:   f.Error.Type,
		message:     f.Error.Message,
		hasCall:     f.Call != nil,
	})
	if d.verdict == verdictWanted {
		f.SeenAt = p.recorder.now()
		c := newCopier()
		f.Span = c.span(l.span, l.scope)
		f.Resource = c.attributes(l.resource.Attributes())
		above, complete := ancestors(td, l.span)
		f.Complete = complete
		for _, a := range above {
			f.Ancestors = append(f.Ancestors, c.span(a.span, a.scope))
		}
		f.Weight = maxCopyBytes - c.budget
		if f.Call != nil {
			f.Weight += f.Call.Weight
		}
		if p.recorder.enqueue(ctx, f) {
			d.folder = true
		}
	}
	l.span.Attributes().PutStr(attrArtifactFingerprint, d.fingerprint)
	if d.folder {
		l.span.Attributes().PutStr(attrArtifactPath, d.fingerprint)
	} else {
		// What a client claims under this name leads nowhere.
		l.span.Attributes().Remove(attrArtifactPath)
	}
}
