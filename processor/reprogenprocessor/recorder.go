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

// recorder is the one writer of a component id. Consume calls hand it batches, and
// workers write.
type recorder struct {
	observer
	writer  writer
	hangs   *hangs
	gateway gateway
	set     component.TelemetrySettings

	withdraw        func()         // the notices; nil before the start
	releases, saves shared.Loop    // what keeps the time
	gathering       shared.Loop    // of evidence
	busy            sync.WaitGroup // the workers
	ending          shared.Stop    // of all of them

	aborted context.Context // done when the time to drain is over
	abort   context.CancelFunc
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
	}
	r.hangs = newHangs(&cfg.Evidence, r.gpus, &r.writer)
	r.gateway.hangs, r.set = r.hangs, set
	r.aborted, r.abort = context.WithCancel(context.Background())
	return r, nil
}

// Start opens the directory and begins to write. A directory that cannot be used
// is an error, because no artifact could ever be written.
func (r *recorder) Start(ctx context.Context, host component.Host) error {
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
	if err := errors.Join(r.registerGauges(), r.gateway.start(ctx, host, r.set)); err != nil {
		return errors.Join(err, r.writer.disk.Close())
	}
	if len(r.cfg.AllowedModules) == 0 {
		r.logger.Info(`"allowed_modules" is empty: the scripts will refuse to call anything (exit 4) ` +
			`until a module is listed there or given with --allow-module`)
	}
	r.hangs.state = shared.StateOf(host)
	r.withdraw = r.hangs.state.PublishNotices(r.id.Value.AsString(), func() []shared.Notice { return r.notices(r.groups.Len() > 0) })
	for range r.cfg.limits.workers {
		r.busy.Go(r.work)
	}
	r.gathering.Start(0, 0, r.hangs.gather)
	r.releases.Start(tickInterval, tickInterval, func(context.Context) { r.incidents.Release(r.now(), false) })
	r.saves.Start(flushInterval, flushInterval, func(context.Context) {
		r.writer.enforce()
		r.writer.flush()
	})
	return nil
}

func (r *recorder) registerGauges() error {
	gauge := func(value func() int64) metric.Int64Callback { return shared.Gauge(value, r.own) }
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
	if r.withdraw == nil {
		return nil
	}
	r.withdraw()
	err := r.ending.Do(ctx, r.finish)
	if err == nil {
		return nil
	}
	// Each worker ends after the write that it is in. It is not waited for past
	// the deadline, because a disk may never answer.
	r.abort()
	short, cancel := context.WithTimeout(context.WithoutCancel(ctx), 100*time.Millisecond)
	defer cancel()
	_ = r.ending.Do(short, r.finish)
	return fmt.Errorf("repro_gen was stopped before all artifacts were written: %w", err)
}

// finish writes what is left, and ends the goroutines.
func (r *recorder) finish() error {
	for _, loop := range []*shared.Loop{&r.releases, &r.saves, &r.gateway.asking, &r.gathering} {
		_ = loop.Stop(context.Background())
	}
	r.incidents.Close()
	r.busy.Wait()
	r.writer.flush()
	if err := r.writer.disk.Close(); err != nil {
		r.warn("The directory could not be closed", err)
	}
	return nil
}

// work writes what is ready until Shutdown, and then what is left until the deadline.
func (r *recorder) work() {
	for i := range r.incidents.Ready() {
		if r.aborted.Err() != nil {
			r.incidents.Begin(i)
			r.dropped(context.Background(), 1, dropShutdown)
			continue
		}
		r.writer.write(i)
	}
}

// finishFor writes what is known before a logs pipeline ends, so that it can be
// sent there. It returns early when ctx ends.
func (r *recorder) finishFor(ctx context.Context, next consumer.Logs) {
	defer r.writer.outlets.Remove(ctx, next)
	if !r.cfg.EmitLog || r.withdraw == nil {
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
		case <-poll.C:
		}
	}
}
