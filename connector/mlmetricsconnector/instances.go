package mlmetricsconnector

import (
	"context"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/change"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/detect"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/points"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// instances is what the instances of one component id share.
type instances struct {
	set  connector.Settings
	cfg  *Config
	seen *points.Seen
	// outlets are the pipelines that get the records, history what changes are
	// compared with.
	outlets shared.Outlets
	history *change.History
	lemons  detect.Lemons
	// open are the problems that are open, restored those that were before a restart
	// until they are open again.
	open, restored atomic.Pointer[[]problem.Entry]

	keeping
}

func newInstances(set connector.Settings, cfg *Config) *instances {
	return &instances{set: set, cfg: cfg, seen: points.NewSeen(cfg.Prices.GPUHour), history: change.NewHistory()}
}

// instancesByID has the instances of each component id.
type instancesByID = shared.Registry[*instances]

// member is one of the instances of a component id. It has what they share from Start on.
type member struct {
	set connector.Settings
	cfg *Config
	shared.Use[*instances]
}

func newMember(set connector.Settings, cfg *Config, registry *instancesByID) member {
	return member{set, cfg, registry.Use(set.ID, func() (*instances, error) { return newInstances(set, cfg), nil })}
}

// Capabilities reports that no instance mutates what it gets.
func (*member) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

// recording returns the history if records go anywhere, else nil: then nobody
// learns of changes, and they cost nothing.
func (i *instances) recording() *change.History {
	if !i.outlets.Any() {
		return nil
	}
	return i.history
}

// restores reports whether problems wait to be open again, and their records go
// anywhere.
func (i *instances) restores() bool { return i.restored.Load() != nil && i.outlets.Any() }

// Start loads what was kept over a restart.
func (i *instances) Start(ctx context.Context, host component.Host) error {
	return i.load(ctx, host, i.set, i.cfg, "", i, saveInterval)
}

// Shutdown saves a last time.
func (i *instances) Shutdown(ctx context.Context) error { return i.close(ctx) }

// recorder sends the records of the instance that receives spans for metrics into
// its own pipeline of logs. It reads no spans itself.
type recorder struct {
	member
	next consumer.Logs
}

// Start lets the instance for metrics send records.
func (r *recorder) Start(ctx context.Context, host component.Host) error {
	if err := r.member.Start(ctx, host); err != nil {
		return err
	}
	r.Shared.outlets.Add(r.next)
	return nil
}

// Shutdown waits for records that are on their way.
func (r *recorder) Shutdown(ctx context.Context) error {
	if r.Shared != nil {
		r.Shared.outlets.Remove(ctx, r.next)
	}
	return r.member.Shutdown(ctx)
}

// ConsumeTraces does nothing: the instance for metrics gets the same spans.
func (*recorder) ConsumeTraces(context.Context, ptrace.Traces) error { return nil }

// watcher finds series in the clients' metrics that the connector would also
// write, so that each name has one writer, and what receivers say of GPUs and ranks. It
// forwards nothing.
type watcher struct {
	member
	now func() time.Time
}

// ConsumeMetrics reads what clients and receivers send.
func (w *watcher) ConsumeMetrics(_ context.Context, md pmetric.Metrics) error {
	w.Shared.seen.Read(md, w.Shared.recording(), w.now())
	return nil
}

// ConsumeLogs reads what the nccl receivers of all hosts send.
func (w *watcher) ConsumeLogs(_ context.Context, ld plog.Logs) error {
	w.Shared.seen.ReadLogs(ld, w.now())
	return nil
}
