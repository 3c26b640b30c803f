package reprogenprocessor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/artifact"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/detect"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/gpustate"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/group"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/incident"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/store"
)

const (
	flushInterval = 30 * time.Second
	tickInterval  = time.Second
)

// Why a failure got no artifact.
const (
	dropBatchLimit   = "batch_limit"
	dropQueueFull    = "queue_full"
	dropMemory       = "memory_limit"
	dropRateLimited  = "rate_limited"
	dropUnsafeOutput = "unsafe_output"
	dropTooLarge     = "too_large"
	dropNoSpace      = "no_space"
	dropWriteError   = "write_error"
	dropShutdown     = "shutdown"
	dropEmit         = "emit_error"
)

// disk is where artifacts are kept. It is safe for concurrent use.
type disk interface {
	group.Disk
	Write(fingerprint, name string, origin share.Origin, files []store.File) error
	Bytes() int64
	Close() error
}

// recorder is the one writer of a component id. Consume calls hand it batches;
// one goroutine keeps the time, and workers write.
type recorder struct {
	cfg       *Config
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	id        attribute.KeyValue       // the component's, on all metrics
	own       metric.MeasurementOption // id alone
	now       func() time.Time
	serial    atomic.Uint64

	kinds        kind.Registry
	history      *share.History
	detector     detect.Detector
	failedTraces detect.Filter // the traces of incidents
	groups       *group.Counters
	incidents    *incident.Tracker
	queue        *incident.Queue
	gpus         *gpustate.State
	artifacts    *artifact.Builder

	disk      disk // opened by Start, unless a test has set another
	summaries *group.Summaries
	diskBytes atomic.Int64
	lastWarn  atomic.Int64 // in nanoseconds since 1970
	outlets   shared.Outlets

	// left counts what notices publishes, by reason.
	left     shared.Tally
	withdraw func()

	started bool
	busy    sync.WaitGroup // the workers
	working atomic.Int64   // artifacts that are being written
	handed  chan struct{}  // closed when all that waited is in the queue
	done    chan struct{}  // closed when the goroutines have ended

	stopped, aborted context.Context // done when no more failures come, and when the time to drain is over
	stop, abort      context.CancelFunc
}

func newRecorder(cfg *Config, kinds kind.Registry, id component.ID, set component.TelemetrySettings) (*recorder, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set)
	if err != nil {
		return nil, err
	}
	self := attribute.String("processor", id.String())
	burst := cmp.Or(cfg.limits.burst, 2*cfg.ArtifactsPerMinute)
	history := share.NewHistory()
	r := &recorder{
		cfg:       cfg,
		logger:    set.Logger,
		telemetry: telemetry,
		id:        self,
		own:       metric.WithAttributeSet(attribute.NewSet(self)),
		now:       time.Now,
		kinds:     kinds,
		history:   history,
		queue:     incident.NewQueue(cfg.limits.queue, history),
		groups:    group.NewCounters(group.Config{PerMinute: cfg.ArtifactsPerMinute, Burst: burst, MaxGroups: cfg.limits.groups}, history),
		gpus:      gpustate.New(),
		artifacts: artifact.New(kinds, cfg.AllowedModules),
		handed:    make(chan struct{}),
		done:      make(chan struct{}),
	}
	r.stopped, r.stop = context.WithCancel(context.Background())
	r.aborted, r.abort = context.WithCancel(context.Background())
	r.incidents = incident.NewTracker(incident.Config{
		Wait: cfg.SiblingWait, Traces: cfg.limits.traces, Spans: cfg.limits.spans, Bytes: cfg.limits.bytes,
	}, r.kinds, history, &r.failedTraces)
	r.detector = detect.Detector{Kinds: r.kinds, History: history, Failed: &r.failedTraces}
	return r, nil
}

// Start opens the directory and begins to write. A directory that cannot be used
// is an error, because no artifact could ever be written.
func (r *recorder) Start(_ context.Context, host component.Host) error {
	if r.disk == nil {
		d, groups, warnings, err := store.Open(r.cfg.Directory, store.Limits{
			Artifacts: r.cfg.Retention.MaxArtifacts, Bytes: r.cfg.Retention.MaxBytes, Age: r.cfg.Retention.MaxAge, Free: r.cfg.MinFreeBytes,
		})
		if err != nil {
			return fmt.Errorf(`"directory": %w`, err)
		}
		for _, w := range warnings {
			r.logger.Warn("A summary cannot be read; its counts begin at zero", zap.Error(w))
		}
		r.disk = d
		r.groups.Load(groups)
	}
	r.summaries = &group.Summaries{Counters: r.groups, Disk: r.disk, Warn: r.warn}
	r.diskBytes.Store(r.disk.Bytes())
	if err := r.registerGauges(); err != nil {
		return errors.Join(err, r.disk.Close())
	}
	if len(r.cfg.AllowedModules) == 0 {
		r.logger.Info(`"allowed_modules" is empty: the scripts will refuse to call anything (exit 4) ` +
			`until a module is listed there or given with --allow-module`)
	}
	r.started = true
	r.withdraw = shared.StateOf(host).PublishNotices(r.id.Value.AsString(), r.notices)
	go r.run()
	return nil
}

func (r *recorder) registerGauges() error {
	gauge := func(value func() int64) metric.Int64Callback {
		return func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(value(), r.own)
			return nil
		}
	}
	return errors.Join(
		r.telemetry.RegisterProcessorReproGenQueueLengthCallback(gauge(r.reserved)),
		r.telemetry.RegisterProcessorReproGenTracesCallback(gauge(func() int64 { return int64(r.incidents.Sizes().Traces) })),
		r.telemetry.RegisterProcessorReproGenGroupsCallback(gauge(func() int64 { return int64(r.groups.Len()) })),
		r.telemetry.RegisterProcessorReproGenDiskUsageCallback(gauge(r.diskBytes.Load)))
}

// reserved returns the number of incidents that wait or are in the queue.
func (r *recorder) reserved() int64 {
	all, _ := r.queue.Reserved()
	return all
}

// Shutdown writes what is queued and what waits, and ends the goroutines. When
// ctx ends first, the rest is dropped and counted, and Shutdown returns an error.
func (r *recorder) Shutdown(ctx context.Context) error {
	defer r.telemetry.Shutdown()
	if !r.started {
		return nil
	}
	r.withdraw()
	r.stop()
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
	}
	// Each worker ends after the write that it is in. It is not waited for past
	// the deadline, because a disk may never answer.
	r.abort()
	select {
	case <-r.done:
	case <-time.After(100 * time.Millisecond):
	}
	return fmt.Errorf("repro_gen was stopped before all artifacts were written: %w", ctx.Err())
}

// run keeps the time until Shutdown.
func (r *recorder) run() {
	defer close(r.done)
	for range r.cfg.limits.workers {
		r.busy.Go(r.work)
	}
	tick, flush := time.NewTicker(tickInterval), time.NewTicker(flushInterval)
	defer tick.Stop()
	defer flush.Stop()
	for r.stopped.Err() == nil {
		select {
		case <-tick.C:
			r.release(r.now(), false)
		case <-flush.C:
			r.enforce()
			r.summaries.Flush()
		case <-r.stopped.Done():
		}
	}
	r.release(r.now(), true)
	close(r.handed)
	r.busy.Wait()
	r.end()
}

// release hands the incidents whose waiting is over to the workers.
func (r *recorder) release(now time.Time, all bool) {
	for _, i := range r.incidents.Due(now, all) {
		r.queue.Put(i)
	}
}

func (r *recorder) dropped(ctx context.Context, n int, reason string) {
	if n > 0 {
		r.left.Add(reason, int64(n))
		r.telemetry.ProcessorReproGenDropped.Add(ctx, int64(n),
			metric.WithAttributes(r.id, attribute.String("reason", reason)))
	}
}

// end writes what is left when the workers have ended, and closes the
// directory.
func (r *recorder) end() {
	lost := len(r.queue.Ready())
	for range lost {
		r.queue.Release(<-r.queue.Ready())
	}
	if lost > 0 {
		r.dropped(context.Background(), lost, dropShutdown)
	}
	r.summaries.Flush()
	if err := r.disk.Close(); err != nil {
		r.warn("The directory could not be closed", err)
	}
}

// warn logs at most once a minute: a full disk fails every write.
func (r *recorder) warn(message string, err error) {
	now, last := r.now().UnixNano(), r.lastWarn.Load()
	if now-last >= int64(time.Minute) && r.lastWarn.CompareAndSwap(last, now) {
		r.logger.Warn(message+"; the telemetry itself is not affected", zap.Error(err))
	}
}
