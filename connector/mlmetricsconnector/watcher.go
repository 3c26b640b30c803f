package mlmetricsconnector

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// sentByClients maps metric names to series.
var sentByClients = func() map[string]series.ID {
	names := make(map[string]series.ID, len(series.All))
	for id := range series.All {
		names[series.All[id].Name] = series.ID(id) // #nosec G115 -- the table's index
	}
	return names
}()

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

// ConsumeMetrics records which program sends which series, the processes of
// runs, the state of GPUs, and what NCCL says about ranks. It ignores what ml_metrics has written.
func (w *watcher) ConsumeMetrics(_ context.Context, md pmetric.Metrics) error {
	now, history := w.now(), w.shared.recording()
	var facts mlattr.Facts
	for _, rm := range md.ResourceMetrics().All() {
		attrs := rm.Resource().Attributes()
		resource, _ := readResource(attrs)
		seeDriver(history, attrs, now)
		clients := false
		for _, sm := range rm.ScopeMetrics().All() {
			if sm.Scope().Name() == metadata.ScopeName {
				continue
			}
			for _, m := range sm.Metrics().All() {
				if id, ok := sentByClients[m.Name()]; ok {
					w.shared.seen.Note(resource, id, now)
				}
				w.shared.seen.noteGPU(m, attrs, now)
				w.shared.seen.noteCPU(m, attrs, resource, now)
				w.shared.seen.noteNCCL(m, attrs, now)
				clients = true
			}
		}
		if !clients {
			continue
		}
		mlattr.Default().Resource(attrs, &facts)
		if run := resourceRun(&facts); run.ID != "" && run.Rank != "" {
			w.shared.seen.noteProcess(clockKey{resource, run}, now)
		}
	}
	return nil
}
