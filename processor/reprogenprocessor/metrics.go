package reprogenprocessor

import (
	"context"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// metricsProcessor reads the metrics of GPUs and passes everything on.
type metricsProcessor struct {
	instance
	next consumer.Metrics
}

// Capabilities returns that metrics are not changed.
func (*metricsProcessor) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: false}
}

// ConsumeMetrics reads the GPUs' metrics and passes the batch on.
func (p *metricsProcessor) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	p.recorder.surroundings.AddMetrics(md, p.recorder.now())
	return p.next.ConsumeMetrics(ctx, md)
}
