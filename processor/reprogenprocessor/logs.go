package reprogenprocessor

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
)

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
	p.recorder.outlets.Add(p.next)
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

// Capabilities returns that log records are changed: an exception's gets the
// attributes that name its artifact.
func (*logsProcessor) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: true}
}

// ConsumeLogs hands the batch to the recorder and passes it on. An artifact that
// cannot be written is not an error here.
func (p *logsProcessor) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	p.recorder.observeLogs(ctx, ld)
	return p.next.ConsumeLogs(ctx, ld)
}
