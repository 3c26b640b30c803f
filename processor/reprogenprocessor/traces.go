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

// Capabilities returns that spans are changed: a candidate gets the attributes
// that name its artifact.
func (*tracesProcessor) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: true}
}

// ConsumeTraces hands the batch to the recorder and passes it on. An artifact that
// cannot be written is not an error here.
func (p *tracesProcessor) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	p.recorder.observeTraces(ctx, td)
	return p.next.ConsumeTraces(ctx, td)
}
