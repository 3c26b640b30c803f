package mlmetricsconnector

import (
	"context"

	"go.opentelemetry.io/collector/component"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// instances is what the instances of one component id share.
type instances struct {
	seen *seenMetrics
	// outlets are the pipelines that get the records.
	outlets shared.Outlets
}

var _ shared.Object = (*instances)(nil)

func newInstances() *instances { return &instances{seen: newSeenMetrics()} }

// acquire returns the object that the instances of a component id share.
func acquire(ctx context.Context, registry *shared.Registry[*instances], host component.Host, id component.ID) (*instances, shared.Release, error) {
	return registry.Acquire(ctx, host, id, func() (*instances, error) { return newInstances(), nil })
}

// Start implements shared.Object.
func (*instances) Start(context.Context, component.Host) error { return nil }

// Shutdown implements shared.Object.
func (*instances) Shutdown(context.Context) error { return nil }
