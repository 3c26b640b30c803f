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
	p.recorder.sawTraces(ctx, td)
	return p.next.ConsumeTraces(ctx, td)
}
