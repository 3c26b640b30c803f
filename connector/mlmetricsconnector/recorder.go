package mlmetricsconnector

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// recorder sends the records of the instance that receives spans for metrics into
// its own pipeline of logs. It reads no spans itself.
type recorder struct {
	set      connector.Settings
	cfg      *Config
	registry *instancesByID
	next     consumer.Logs

	shared  *instances
	release shared.Release
}

// Start lets the instance for metrics send records.
func (r *recorder) Start(ctx context.Context, host component.Host) error {
	instances, release, err := acquire(ctx, r.registry, host, r.set, r.cfg)
	if err != nil {
		return err
	}
	r.shared, r.release = instances, release
	r.shared.outlets.Add(r.next)
	return nil
}

// Shutdown waits for records that are on their way.
func (r *recorder) Shutdown(ctx context.Context) error {
	if r.release == nil {
		return nil
	}
	r.shared.outlets.Remove(ctx, r.next)
	return r.release(ctx)
}

// Capabilities reports that the recorder does not mutate traces.
func (*recorder) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: false}
}

// ConsumeTraces does nothing: the instance for metrics gets the same spans.
func (*recorder) ConsumeTraces(context.Context, ptrace.Traces) error { return nil }
