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

// sentByClients maps metric names to the series that a program which sends them
// needs no more: the one of that name, and those that say the same by another name.
var sentByClients = func() map[string][]series.ID {
	names := make(map[string][]series.ID, len(series.All))
	for i := range series.All {
		s, id := &series.All[i], series.ID(i) // #nosec G115 -- the table's index
		names[s.Name] = append(names[s.Name], id)
		for _, next := range s.Next {
			names[next] = append(names[next], id)
		}
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
// runs, their progress, the state of GPUs, and what NCCL says about ranks. It ignores
// what ml_metrics has written.
func (w *watcher) ConsumeMetrics(_ context.Context, md pmetric.Metrics) error {
	now, history := w.now(), w.shared.recording()
	var facts mlattr.Facts
	var points trainingPoints
	for _, rm := range md.ResourceMetrics().All() {
		attrs := rm.Resource().Attributes()
		resource, _ := readResource(attrs)
		seeDriver(history, attrs, now)
		clients := false
		mlattr.Default().Resource(attrs, &facts)
		points = points[:0]
		for _, sm := range rm.ScopeMetrics().All() {
			if sm.Scope().Name() == metadata.ScopeName {
				continue
			}
			known := facts.Systems | mlattr.Default().Scope(sm.Scope().Name())
			for _, m := range sm.Metrics().All() {
				for _, id := range sentByClients[m.Name()] {
					w.shared.seen.Note(resource, id, now)
				}
				w.shared.seen.noteGPU(m, attrs, now)
				w.shared.seen.noteCPU(m, attrs, resource, now)
				points.read(known, m)
				w.shared.seen.noteNCCL(m, attrs, now)
				clients = clients || !mlattr.IsDerived(m.Name())
			}
		}
		if !clients {
			continue
		}
		run := resourceRun(&facts)
		w.shared.seen.heard.see(run.Host, now)
		if run.ID != "" && run.Rank != "" {
			w.shared.seen.noteProcess(clockKey{resource, run}, now)
		}
		if run.ID != "" && run.ID != mlattr.Other && len(points) > 0 {
			w.shared.seen.noteTraining(clockKey{resource, run}, programOf(&facts, attrs), points, now)
		}
	}
	return nil
}
