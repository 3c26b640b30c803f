package mlmetricsconnector

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// silences are what the instances of one component id share: what their clients
// send themselves. It is told by the instance that gets the clients' metrics,
// and heeded by the one that gets their spans.
type silences struct {
	streams.Silences
}

// Start implements shared.Object.
func (*silences) Start(context.Context, component.Host) error { return nil }

// Shutdown implements shared.Object.
func (*silences) Shutdown(context.Context) error { return nil }

var _ shared.Object = (*silences)(nil)

// sentByClients has the series of each metric's name.
var sentByClients = func() map[string]series.ID {
	names := make(map[string]series.ID, len(series.All))
	for id := range series.All {
		names[series.All[id].Name] = series.ID(id) // #nosec G115 -- the table's index
	}
	return names
}()

// watcher looks at the clients' metrics for series that the connector would
// write too. It passes nothing on: there is one writer a name.
type watcher struct {
	id     component.ID
	shared *shared.Registry[*silences]
	now    func() time.Time

	silences *silences
	release  shared.Release
}

// Start gets what is shared with the instance that writes.
func (w *watcher) Start(ctx context.Context, host component.Host) (err error) {
	w.silences, w.release, err = w.shared.Acquire(ctx, host, w.id, newSilences)
	return err
}

func newSilences() (*silences, error) { return new(silences), nil }

// Shutdown gives it back.
func (w *watcher) Shutdown(ctx context.Context) error {
	if w.release == nil {
		return nil
	}
	return w.release(ctx)
}

// Capabilities says that the watcher leaves the metrics as they are.
func (*watcher) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: false}
}

// ConsumeMetrics notes who sends what. What an ml_metrics has written is no
// client's.
func (w *watcher) ConsumeMetrics(_ context.Context, md pmetric.Metrics) error {
	now := w.now()
	for _, rm := range md.ResourceMetrics().All() {
		resource, _ := readResource(rm.Resource().Attributes())
		for _, sm := range rm.ScopeMetrics().All() {
			if sm.Scope().Name() == metadata.ScopeName {
				continue
			}
			for _, m := range sm.Metrics().All() {
				if id, ok := sentByClients[m.Name()]; ok {
					w.silences.Note(resource, id, now)
				}
			}
		}
	}
	return nil
}
