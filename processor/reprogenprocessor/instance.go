package reprogenprocessor

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// instance is what the traces and the logs processor of one component id have
// in common: the life of the recorder that they share.
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

// Shutdown gives the recorder back; the last instance of an id waits until
// what is queued has been written, or until ctx ends.
func (i *instance) Shutdown(ctx context.Context) error {
	if i.release == nil {
		return nil
	}
	return i.release(ctx)
}

// logsProcessor passes logs on unchanged. It exists so that a configuration
// that names repro_gen in a logs pipeline is valid; exceptions that arrive as
// log records are not joined to their spans yet.
type logsProcessor struct {
	instance
	next consumer.Logs
}

// Capabilities says that logs are not changed.
func (*logsProcessor) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: false}
}

// ConsumeLogs passes the logs on.
func (p *logsProcessor) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	return p.next.ConsumeLogs(ctx, ld)
}
