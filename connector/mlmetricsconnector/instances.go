package mlmetricsconnector

import (
	"bytes"
	"cmp"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/change"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/points"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/saved"
)

const (
	// saveInterval is the time between two saves to the storage extension.
	saveInterval = time.Minute
	// closeTimeout limits the wait for the storage extension.
	closeTimeout = 5 * time.Second
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
	// open are the problems that are open, restored those that were before a restart
	// until they are open again.
	open, restored atomic.Pointer[[]problem.Entry]

	keeping
}

// keeping saves a state again and again. saved is nil if nothing is kept over restarts.
type keeping struct {
	saved   *saved.State
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// load opens what the configuration names, if it names anything, and loads what is kept.
func (k *keeping) load(ctx context.Context, host component.Host, of *instances, name string, kept saved.Kept, every time.Duration) (err error) {
	switch {
	case of.cfg.Storage != nil:
		if k.saved, err = saved.Open(ctx, host, *of.cfg.Storage, component.KindConnector, of.set.ID, name, kept, of.storageFailed); err != nil {
			return err
		}
	case of.cfg.StateDirectory != "":
		k.saved = saved.OpenFolder(ctx, of.cfg.StateDirectory, component.KindConnector, of.set.ID, name, kept, of.storageFailed)
	default:
		return nil
	}
	// The context of Start ends with Start.
	background, cancel := context.WithCancel(context.Background())
	k.cancel = cancel
	k.running.Go(func() { k.saved.SaveEvery(background, every) })
	return nil
}

// close saves a last time. It waits a few seconds at most, because the Collector gives it
// no deadline.
func (k *keeping) close(ctx context.Context) error {
	if k.saved == nil {
		return nil
	}
	k.cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		k.running.Wait()
		k.saved.Close()
	}()
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return errors.New("the storage did not answer in time, so the newest changes are not saved")
	}
}

var _ shared.Object = (*instances)(nil)

func newInstances(set connector.Settings, cfg *Config) *instances {
	return &instances{set: set, cfg: cfg, seen: points.NewSeen(cfg.Prices.GPUHour), history: change.NewHistory()}
}

// instancesByID has the instances of each component id.
type instancesByID = shared.Registry[*instances]

// member is one of the instances of a component id.
type member struct {
	set      connector.Settings
	cfg      *Config
	registry *instancesByID

	shared  *instances
	release shared.Release
}

// Start acquires the object that the instances share.
func (m *member) Start(ctx context.Context, host component.Host) error {
	of, release, err := m.registry.Acquire(ctx, host, m.set.ID, func() (*instances, error) { return newInstances(m.set, m.cfg), nil })
	if err != nil {
		return err
	}
	m.shared, m.release = of, release
	return nil
}

// Shutdown releases it.
func (m *member) Shutdown(ctx context.Context) error {
	if m.release == nil {
		return nil
	}
	return m.release(ctx)
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
	return i.load(ctx, host, i, "", keeper{i}, saveInterval)
}

// Shutdown saves a last time.
func (i *instances) Shutdown(ctx context.Context) error { return i.close(ctx) }

// keeper keeps what the instances know over restarts: what changes are compared with,
// and the open problems.
type keeper struct{ *instances }

// kept is what a keeper keeps. Problems are in the form of gob, which has NaN.
type kept struct {
	History  json.RawMessage `json:"history"`
	Problems []byte          `json:"problems,omitempty"`
}

// Export returns both as JSON. If they are too much, it leaves out the problems.
func (k keeper) Export() ([]byte, error) {
	history, err := k.history.Export()
	if err != nil {
		return nil, err
	}
	var problems bytes.Buffer
	if open := cmp.Or(k.open.Load(), k.restored.Load()); open != nil && len(*open) > 0 {
		if err := gob.NewEncoder(&problems).Encode(*open); err != nil {
			return nil, err
		}
	}
	data, err := json.Marshal(kept{history, problems.Bytes()})
	if len(data) > change.MaxKept {
		return json.Marshal(kept{History: history})
	}
	return data, err
}

// Import reads what Export wrote. It returns an error for anything else.
func (k keeper) Import(data []byte) error {
	var in kept
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	if len(in.Problems) > 0 {
		var open []problem.Entry
		if err := gob.NewDecoder(bytes.NewReader(in.Problems)).Decode(&open); err != nil {
			return err
		}
		open = problem.Plausible(open)
		defer k.restored.Store(&open)
	}
	return k.history.Import(in.History)
}

// storageFailures say what a failed operation of the storage means.
var storageFailures = map[string]string{
	saved.Read:   "What ml_metrics keeps over restarts could not be read. It is read again at the next save, but for counts, which begin at zero.",
	saved.Decode: "What ml_metrics keeps over restarts is damaged, or a newer version wrote it. It is kept as state.backup, and not used: counters begin at zero, what was there before is no change, and problems begin anew.",
	saved.Encode: "What ml_metrics keeps over restarts could not be saved.",
	saved.Write:  "What ml_metrics keeps over restarts could not be saved. It is tried again: counts each second, the rest each minute.",
}

// storageFailed reports a failed operation of the storage extension.
func (i *instances) storageFailed(_ context.Context, operation string, err error, again bool) {
	if !again {
		i.set.Logger.Warn(storageFailures[operation], zap.Error(err))
	}
}

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
	r.shared.outlets.Add(r.next)
	return nil
}

// Shutdown waits for records that are on their way.
func (r *recorder) Shutdown(ctx context.Context) error {
	if r.release != nil {
		r.shared.outlets.Remove(ctx, r.next)
	}
	return r.member.Shutdown(ctx)
}

// ConsumeTraces does nothing: the instance for metrics gets the same spans.
func (*recorder) ConsumeTraces(context.Context, ptrace.Traces) error { return nil }

// watcher finds series in the clients' metrics that the connector would also
// write, so that each name has one writer. It forwards nothing.
type watcher struct {
	member
	now func() time.Time
}

// ConsumeMetrics reads what clients and receivers send.
func (w *watcher) ConsumeMetrics(_ context.Context, md pmetric.Metrics) error {
	w.shared.seen.Read(md, w.shared.recording(), w.now())
	return nil
}
