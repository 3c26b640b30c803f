package reprogenprocessor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
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

// recorder is the one writer of a component id. Consume calls hand it batches;
// one goroutine keeps the time, and workers write.
type recorder struct {
	observer
	writer writer

	withdraw func() // the notices
	started  bool
	busy     sync.WaitGroup // the workers
	handed   chan struct{}  // closed when all that waited is in the queue
	done     chan struct{}  // closed when the goroutines have ended

	stopped, aborted context.Context // done when no more failures come, and when the time to drain is over
	stop, abort      context.CancelFunc
}

func newRecorder(cfg *Config, kinds kind.Registry, id component.ID, set component.TelemetrySettings) (*recorder, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set)
	if err != nil {
		return nil, err
	}
	self := attribute.String("processor", id.String())
	a := &account{
		cfg: cfg, logger: set.Logger, telemetry: telemetry, now: time.Now,
		id: self, own: metric.WithAttributeSet(attribute.NewSet(self)),
	}
	history, failed := share.NewHistory(), &detect.Filter{}
	groups := group.NewCounters(group.Config{
		PerMinute: cfg.ArtifactsPerMinute, Burst: cmp.Or(cfg.limits.burst, 2*cfg.ArtifactsPerMinute),
		MaxGroups: cfg.limits.groups, Capture: cfg.CaptureContent,
	}, history)
	incidents := incident.NewTracker(incident.Config{
		Wait: cfg.SiblingWait, Queue: cfg.limits.queue, Spans: cfg.limits.spans, Bytes: cfg.limits.bytes,
	}, kinds, history, failed)
	r := &recorder{
		observer: observer{
			account: a, kinds: kinds, groups: groups, incidents: incidents, gpus: gpustate.New(),
			detector: detect.Detector{Kinds: kinds, History: history, Failed: failed},
		},
		writer: writer{
			account: a, kinds: kinds, groups: groups, incidents: incidents, artifacts: artifact.New(kinds, cfg.AllowedModules),
		},
		handed: make(chan struct{}),
		done:   make(chan struct{}),
	}
	r.stopped, r.stop = context.WithCancel(context.Background())
	r.aborted, r.abort = context.WithCancel(context.Background())
	return r, nil
}

// Start opens the directory and begins to write. A directory that cannot be used
// is an error, because no artifact could ever be written.
func (r *recorder) Start(_ context.Context, host component.Host) error {
	if r.writer.disk == nil {
		d, groups, warnings, err := store.Open(r.cfg.Directory, store.Limits{
			Artifacts: r.cfg.Retention.MaxArtifacts, Bytes: r.cfg.Retention.MaxBytes, Age: r.cfg.Retention.MaxAge, Free: r.cfg.MinFreeBytes,
		})
		if err != nil {
			return fmt.Errorf(`"directory": %w`, err)
		}
		for _, w := range warnings {
			r.logger.Warn("A summary cannot be read; its counts begin at zero", zap.Error(w))
		}
		r.writer.disk = d
		r.groups.Load(groups)
	}
	if err := r.registerGauges(); err != nil {
		return errors.Join(err, r.writer.disk.Close())
	}
	if len(r.cfg.AllowedModules) == 0 {
		r.logger.Info(`"allowed_modules" is empty: the scripts will refuse to call anything (exit 4) ` +
			`until a module is listed there or given with --allow-module`)
	}
	r.started = true
	r.withdraw = shared.StateOf(host).PublishNotices(r.id.Value.AsString(), func() []shared.Notice { return r.notices(r.groups.Len() > 0) })
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
		r.telemetry.RegisterProcessorReproGenQueueLengthCallback(gauge(func() int64 { return int64(r.incidents.Sizes().Reserved) })),
		r.telemetry.RegisterProcessorReproGenTracesCallback(gauge(func() int64 { return int64(r.incidents.Sizes().Traces) })),
		r.telemetry.RegisterProcessorReproGenGroupsCallback(gauge(func() int64 { return int64(r.groups.Len()) })),
		r.telemetry.RegisterProcessorReproGenDiskUsageCallback(gauge(r.writer.disk.Bytes)))
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
			r.incidents.Release(r.now(), false)
		case <-flush.C:
			r.writer.enforce()
			r.writer.flush()
		case <-r.stopped.Done():
		}
	}
	r.incidents.Release(r.now(), true)
	close(r.handed)
	r.busy.Wait()
	r.end()
}

// work writes until Shutdown, and then what is left until the deadline. A select takes
// any case that is ready: a full queue does not hide that the deadline has passed, because
// that is asked first.
func (r *recorder) work() {
	for r.aborted.Err() == nil {
		select {
		case i := <-r.incidents.Ready():
			r.writer.write(i)
		case <-r.handed:
			if len(r.incidents.Ready()) == 0 {
				return
			}
		}
	}
}

// end writes what is left when the workers have ended, and closes the
// directory.
func (r *recorder) end() {
	lost := len(r.incidents.Ready())
	for range lost {
		r.incidents.Begin(<-r.incidents.Ready())
	}
	r.dropped(context.Background(), lost, dropShutdown)
	r.writer.flush()
	if err := r.writer.disk.Close(); err != nil {
		r.warn("The directory could not be closed", err)
	}
}

// finishFor writes what is known before a logs pipeline ends, so that it can be
// sent there. It returns early when ctx ends.
func (r *recorder) finishFor(ctx context.Context, next consumer.Logs) {
	defer r.writer.outlets.Remove(ctx, next)
	if !r.cfg.EmitLog || !r.started {
		return
	}
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for {
		// Again and again: a traces pipeline may still run, and its failures
		// must not keep this one waiting for sibling_wait.
		r.incidents.Release(r.now(), true)
		if r.incidents.Sizes().Reserved == 0 && r.writer.working.Load() <= 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-r.done:
			return
		case <-poll.C:
		}
	}
}
