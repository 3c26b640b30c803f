package reprogenprocessor

import (
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

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/artifact"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/payload"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/store"
)

const (
	flushInterval = 30 * time.Second
	// maxQueuedBytes bounds the queue beside its length: 256 failures of the
	// largest size would be a gigabyte.
	maxQueuedBytes = 64 << 20
)

// Why a failure got no artefact.
const (
	dropBatchLimit   = "batch_limit"
	dropQueueFull    = "queue_full"
	dropRateLimited  = "rate_limited"
	dropUnsafeOutput = "unsafe_output"
	dropTooLarge     = "too_large"
	dropWriteError   = "write_error"
	dropShutdown     = "shutdown"
)

// disk is where artefacts go. It is used by one goroutine after it was opened.
type disk interface {
	Write(fingerprint, name string, files []store.File) error
	WriteGroup(store.Group) error
	ReadGroup(fingerprint string) (store.Group, bool)
	Enforce(now time.Time) ([]store.Removed, error)
	Bytes() int64
	Close() error
}

// recorder is the one writer of a component id. Consume calls ask it whether
// a failure is wanted and hand it copies; one goroutine writes.
type recorder struct {
	cfg       *Config
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	id        attribute.KeyValue       // the component's, on all metrics
	own       metric.MeasurementOption // id alone
	now       func() time.Time

	ledger      *ledger
	queue       chan *failure.Failure
	queuedBytes atomic.Int64

	open      func(dir string, limits store.Limits) (disk, []store.Group, []error, error)
	disk      disk
	diskBytes atomic.Int64
	lastWarn  time.Time // used by the writing goroutine only

	started bool
	stop    chan struct{} // closed when no more failures come
	abort   chan struct{} // closed when the time to drain is over
	done    chan struct{} // closed when the goroutine has ended

	closeStop, closeAbort func()
}

func newRecorder(cfg *Config, id component.ID, set component.TelemetrySettings) (*recorder, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set)
	if err != nil {
		return nil, err
	}
	books, err := newLedger(cfg.RateLimit)
	if err != nil {
		return nil, err
	}
	self := attribute.String("processor", id.String())
	r := &recorder{
		cfg:       cfg,
		logger:    set.Logger,
		telemetry: telemetry,
		id:        self,
		own:       metric.WithAttributeSet(attribute.NewSet(self)),
		now:       time.Now,
		open:      openStore,
		ledger:    books,
		queue:     make(chan *failure.Failure, cfg.QueueSize),
		stop:      make(chan struct{}),
		abort:     make(chan struct{}),
		done:      make(chan struct{}),
	}
	r.closeStop = sync.OnceFunc(func() { close(r.stop) })
	r.closeAbort = sync.OnceFunc(func() { close(r.abort) })
	return r, nil
}

func openStore(dir string, limits store.Limits) (disk, []store.Group, []error, error) {
	s, groups, warnings, err := store.Open(dir, limits)
	if err != nil {
		return nil, nil, nil, err
	}
	return s, groups, warnings, nil
}

// Start opens the directory and begins to write. A directory that cannot be
// used is an error, because everything later would be lost without a word.
func (r *recorder) Start(context.Context, component.Host) error {
	d, groups, warnings, err := r.open(r.cfg.Directory, store.Limits{
		Artifacts: r.cfg.Retention.Artifacts,
		Bytes:     r.cfg.Retention.Bytes,
		Age:       r.cfg.Retention.Age,
	})
	if err != nil {
		return fmt.Errorf(`"directory": %w`, err)
	}
	for _, w := range warnings {
		r.logger.Warn("The summary of a group cannot be read; its counts begin anew", zap.Error(w))
	}
	r.disk = d
	r.diskBytes.Store(d.Bytes())
	r.ledger.load(groups)
	if err := r.registerGauges(); err != nil {
		return errors.Join(err, d.Close())
	}
	if len(r.cfg.AllowedModules) == 0 {
		r.logger.Info(`"allowed_modules" is empty: the scripts will refuse to call anything (exit 4) ` +
			`until a module is listed there or given with --allow-module`)
	}
	r.started = true
	go r.run()
	return nil
}

func (r *recorder) registerGauges() error {
	return errors.Join(
		r.telemetry.RegisterProcessorReproGenQueueLengthCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(len(r.queue)), r.own)
			return nil
		}),
		r.telemetry.RegisterProcessorReproGenGroupsCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(r.ledger.size()), r.own)
			return nil
		}),
		r.telemetry.RegisterProcessorReproGenDiskUsageCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(r.diskBytes.Load(), r.own)
			return nil
		}))
}

// Shutdown writes what is queued and ends the goroutine. When ctx ends first,
// the rest is dropped and counted, and the error says so.
func (r *recorder) Shutdown(ctx context.Context) error {
	defer r.telemetry.Shutdown()
	if !r.started {
		return nil
	}
	r.closeStop()
	select {
	case <-r.done:
		return nil
	case <-ctx.Done():
	}
	// The goroutine ends after the write that it is in. It is not waited for
	// past the deadline, because a disk may never answer.
	r.closeAbort()
	select {
	case <-r.done:
	case <-time.After(100 * time.Millisecond):
	}
	return fmt.Errorf("repro_gen was stopped before all artefacts were written: %w", ctx.Err())
}

// admit counts an occurrence and says what becomes of it. Where an artefact
// is wanted, the caller must enqueue one.
func (r *recorder) admit(ctx context.Context, o occurrence) ruling {
	d := r.ledger.admit(o, r.now())
	switch d.verdict {
	case verdictWanted:
		r.telemetry.ProcessorReproGenCandidates.Add(ctx, 1, r.own)
	case verdictCounted:
		r.telemetry.ProcessorReproGenCandidates.Add(ctx, 1, r.own)
		r.telemetry.ProcessorReproGenDeduplicated.Add(ctx, 1, r.own)
	case verdictLimited:
		r.telemetry.ProcessorReproGenCandidates.Add(ctx, 1, r.own)
		r.dropped(ctx, 1, dropRateLimited)
	}
	return d
}

// overlooked counts error spans that were not looked at.
func (r *recorder) overlooked(ctx context.Context, n int) {
	r.dropped(ctx, n, dropBatchLimit)
}

// enqueue hands a failure to the writing goroutine, and reports whether there
// was room for it. It never blocks.
func (r *recorder) enqueue(ctx context.Context, f *failure.Failure) bool {
	if r.queuedBytes.Add(int64(f.Weight)) <= maxQueuedBytes {
		select {
		case r.queue <- f:
			return true
		default:
		}
	}
	r.queuedBytes.Add(-int64(f.Weight))
	r.ledger.gaveUp(f.Fingerprint)
	r.dropped(ctx, 1, dropQueueFull)
	return false
}

func (r *recorder) dropped(ctx context.Context, n int, reason string) {
	r.telemetry.ProcessorReproGenDropped.Add(ctx, int64(n),
		metric.WithAttributes(r.id, attribute.String("reason", reason)))
}

// run writes until Shutdown.
func (r *recorder) run() {
	defer close(r.done)
	ticker := time.NewTicker(flushInterval)
	defer ticker.Stop()
	for !r.stopping() {
		select {
		case f := <-r.queue:
			r.take(f)
		case <-ticker.C:
			r.enforce()
			r.flush()
		case <-r.stop:
		}
	}
	r.drain()
	r.flush()
	if err := r.disk.Close(); err != nil {
		r.warn("The directory could not be closed", err)
	}
}

// stopping is asked before each wait, because a select takes any case that is
// ready: a full queue must not hide that the deadline has passed.
func (r *recorder) stopping() bool {
	select {
	case <-r.stop:
		return true
	default:
		return false
	}
}

func (r *recorder) drain() {
	for {
		select {
		case <-r.abort:
			if n := len(r.queue); n > 0 {
				r.dropped(context.Background(), n, dropShutdown)
			}
			return
		default:
		}
		select {
		case f := <-r.queue:
			r.take(f)
		default:
			return
		}
	}
}

func (r *recorder) take(f *failure.Failure) {
	r.queuedBytes.Add(-int64(f.Weight))
	begun := time.Now()
	r.write(f)
	r.telemetry.ProcessorReproGenWriteDuration.Record(context.Background(), time.Since(begun).Seconds(), r.own)
}

// write makes an artefact. Whatever goes wrong is counted and stays here.
func (r *recorder) write(f *failure.Failure) {
	ctx := context.Background()
	files, f, err := r.build(ctx, f)
	if err != nil {
		r.ledger.gaveUp(f.Fingerprint)
		return
	}
	name := store.ArtifactName(f.SeenAt, f.Span.TraceID, f.Span.SpanID)
	err = r.disk.Write(f.Fingerprint, name, []store.File{
		{Name: artifact.ScriptName, Content: files.Script},
		{Name: artifact.TraceName, Content: files.Trace},
		{Name: artifact.ReportName, Content: files.Report},
	})
	if errors.Is(err, store.ErrExists) {
		r.ledger.repeated(f.Fingerprint)
		r.telemetry.ProcessorReproGenDeduplicated.Add(ctx, 1, r.own)
		return
	}
	if err != nil {
		r.ledger.gaveUp(f.Fingerprint)
		r.dropped(ctx, 1, dropWriteError)
		r.warn("An artefact could not be written", err)
		return
	}
	r.telemetry.ProcessorReproGenWritten.Add(ctx, 1, r.own)
	for _, p := range files.Redactions {
		r.telemetry.ProcessorReproGenRedactions.Add(ctx, 1,
			metric.WithAttributes(r.id, attribute.String("rule", p.Rule)))
	}
	old, _ := r.disk.ReadGroup(f.Fingerprint)
	group := r.ledger.wrote(f, name, old)
	if err := r.disk.WriteGroup(group); err != nil {
		r.ledger.markDirty(f.Fingerprint)
		r.warn("The summary of a group could not be written", err)
	}
	r.enforce()
	r.diskBytes.Store(r.disk.Bytes())
	r.logger.Info("Wrote a reproduction artefact",
		zap.String("kind", string(f.Kind)), zap.String("path", f.Fingerprint+"/"+name))
}

// build renders a failure; where the call cannot be written safely, without
// it.
func (r *recorder) build(ctx context.Context, f *failure.Failure) (artifact.Files, *failure.Failure, error) {
	gates := artifact.Gates{AllowedModules: r.cfg.AllowedModules}
	files, err := artifact.Build(f, gates)
	if err == nil {
		return files, f, nil
	}
	reason, drop := payload.UnsafeOutput, dropUnsafeOutput
	if errors.Is(err, artifact.ErrTooLarge) {
		reason, drop = payload.TooLargeOutput, dropTooLarge
	}
	r.dropped(ctx, 1, drop)
	f = artifact.WithoutCall(f, reason)
	files, err = artifact.Build(f, gates)
	return files, f, err
}

func (r *recorder) enforce() {
	removed, err := r.disk.Enforce(r.now())
	if err != nil {
		r.warn("An artefact could not be removed", err)
	}
	for _, a := range removed {
		r.ledger.removed(a.Fingerprint, a.Name)
	}
	if len(removed) > 0 {
		r.telemetry.ProcessorReproGenRemoved.Add(context.Background(), int64(len(removed)), r.own)
		r.diskBytes.Store(r.disk.Bytes())
	}
}

// flush writes the summaries that changed. Groups without an artefact have no
// folder and are only counted in memory.
func (r *recorder) flush() {
	for _, g := range r.ledger.takeDirty() {
		if err := r.disk.WriteGroup(g); err != nil {
			r.ledger.markDirty(g.Fingerprint)
			r.warn("The summary of a group could not be written", err)
		}
	}
}

// warn logs at most once a minute: a full disk fails every write.
func (r *recorder) warn(message string, err error) {
	if now := r.now(); now.Sub(r.lastWarn) >= time.Minute {
		r.lastWarn = now
		r.logger.Warn(message+"; the telemetry itself is not affected", zap.Error(err))
	}
}
