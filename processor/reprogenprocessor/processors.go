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

// instance is the processor of one pipeline. Those of one component id share a recorder.
type instance struct {
	shared.Use[*recorder]

	// One of them is set: what follows in the pipeline.
	traces  consumer.Traces
	metrics consumer.Metrics
	logs    consumer.Logs
}

// Start acquires the recorder, which may send its artifacts into a logs pipeline. The first
// instance of an id opens the directory, and an unusable one is an error here.
func (i *instance) Start(ctx context.Context, host component.Host) error {
	err := i.Use.Start(ctx, host)
	if err == nil && i.logs != nil {
		i.Shared.writer.outlets.Add(i.logs)
	}
	return err
}

// Shutdown releases the recorder, which sends what it has before a logs pipeline ends. The
// last instance of an id waits until what is queued is written, or until ctx ends.
func (i *instance) Shutdown(ctx context.Context) error {
	if i.logs != nil && i.Shared != nil {
		i.Shared.finishFor(ctx, i.logs)
	}
	return i.Use.Shutdown(ctx)
}

// Capabilities returns that spans and log records are changed: a failed one gets the
// attributes that name its artifact.
func (i *instance) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: i.metrics == nil}
}

// ConsumeTraces looks for failed spans, and passes everything on. An artifact that
// cannot be written is not an error here.
func (i *instance) ConsumeTraces(ctx context.Context, td ptrace.Traces) error {
	i.Shared.observeTraces(ctx, td)
	return i.traces.ConsumeTraces(ctx, td)
}

// ConsumeMetrics reads the GPUs' metrics, and passes everything on.
func (i *instance) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	i.Shared.gpus.Add(md, i.Shared.now())
	return i.metrics.ConsumeMetrics(ctx, md)
}

// ConsumeLogs looks for exceptions that arrive as log records, and passes everything on. An
// artifact that cannot be written is not an error here.
func (i *instance) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	i.Shared.observeLogs(ctx, ld)
	i.Shared.hangs.observe(ctx, ld)
	return i.logs.ConsumeLogs(ctx, ld)
}
