package mlmetricsconnector

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// watcher finds series in the clients' metrics that the connector would also
// write, so that each name has one writer. It forwards nothing.
type watcher struct {
	set      connector.Settings
	cfg      *Config
	registry *instancesByID
	now      func() time.Time

	shared  *instances
	release shared.Release
}

// Start acquires the object that is shared with the instance that writes.
func (w *watcher) Start(ctx context.Context, host component.Host) error {
	shared, release, err := acquire(ctx, w.registry, host, w.set, w.cfg)
	if err != nil {
		return err
	}
	w.shared, w.release = shared, release
	return nil
}

// Shutdown releases it.
func (w *watcher) Shutdown(ctx context.Context) error {
	if w.release == nil {
		return nil
	}
	return w.release(ctx)
}

// Capabilities reports that the watcher does not mutate metrics.
func (*watcher) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: false}
}

// ConsumeMetrics reads what clients and receivers send.
func (w *watcher) ConsumeMetrics(_ context.Context, md pmetric.Metrics) error {
	w.shared.seen.Read(md, w.shared.recording(), w.now())
	return nil
}
