package reprogenprocessor

import (
	"context"

	"go.opentelemetry.io/collector/component"

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
