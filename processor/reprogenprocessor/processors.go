package reprogenprocessor

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// instance is the part of the traces, metrics and logs processors of one component id
// that starts and ends the recorder that they share.
type instance struct {
	registry *shared.Registry[*recorder]
	id       component.ID
	create   func() (*recorder, error)

	recorder *recorder
	release  shared.Release
}

// Start acquires the recorder; the first instance of an id opens the
// directory, and an unusable one is an error here.
func (i *instance) Start(ctx context.Context, host component.Host) error {
	var err error
	i.recorder, i.release, err = i.registry.Acquire(ctx, host, i.id, i.create)
	return err
}

// Shutdown releases the recorder. The last instance of an id waits until what is
// queued is written, or until ctx ends.
func (i *instance) Shutdown(ctx context.Context) error {
	if i.release == nil {
		return nil
	}
	return i.release(ctx)
}

// Capabilities returns that spans and log records are changed: a failed one gets the
// attributes that name its artifact.
func (*instance) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: true}
}

// tracesProcessor looks for error spans and passes everything on.
type tracesProcessor struct {
	instance
	next consumer.Traces
}

// ConsumeTraces hands the batch to the recorder and passes it on. An artifact that
// cannot be written is not an error here.
func (p *tracesProcessor) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	p.recorder.observeTraces(ctx, td)
	return p.next.ConsumeTraces(ctx, td)
}

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
	p.recorder.gpus.Add(md, p.recorder.now())
	return p.next.ConsumeMetrics(ctx, md)
}

// logsProcessor looks for exceptions that arrive as log records and passes
// everything on.
type logsProcessor struct {
	instance
	next consumer.Logs
}

// Start acquires the recorder, which may send its artifacts here.
func (p *logsProcessor) Start(ctx context.Context, host component.Host) error {
	if err := p.instance.Start(ctx, host); err != nil {
		return err
	}
	p.recorder.writer.outlets.Add(p.next)
	return nil
}

// Shutdown lets the recorder send what it has before the pipeline ends, and
// releases it.
func (p *logsProcessor) Shutdown(ctx context.Context) error {
	if p.recorder != nil {
		p.recorder.finishFor(ctx, p.next)
	}
	return p.instance.Shutdown(ctx)
}

// ConsumeLogs hands the batch to the recorder and passes it on. An artifact that
// cannot be written is not an error here.
func (p *logsProcessor) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	p.recorder.observeLogs(ctx, ld)
	return p.next.ConsumeLogs(ctx, ld)
}
