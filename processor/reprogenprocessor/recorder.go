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

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/fairness"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/gpustate"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/progress"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/store"
)

const (
	flushInterval = 30 * time.Second
	tickInterval  = time.Second
)

// Why a failure got no artefact.
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

// disk is where artefacts go. It is safe for concurrent use.
type disk interface {
	Write(fingerprint, name string, origin fairness.Origin, files []store.File) error
	Replace(fingerprint, name, file string, content []byte) error
	WriteGroup(store.Group) error
	WriteCounts([]store.Group) error
	ReadGroup(fingerprint string) (store.Group, bool)
	Enforce(now time.Time, path func(fairness.Origin) fairness.Path) ([]store.Removed, error)
	Bytes() int64
	Close() error
}

// recorder is the one writer of a component id. Consume calls tell it what
// they see; one goroutine keeps the time, and workers write.
type recorder struct {
	cfg       *Config
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	id        attribute.KeyValue       // the component's, on all metrics
	own       metric.MeasurementOption // id alone
	now       func() time.Time
	serial    atomic.Uint64

	standings  *fairness.Standings
	ledger     *ledger
	book       *book
	calls      *shelf[string, recording]
	exceptions *shelf[spanKey, failure.Error]
	reader     *reader
	gpus       *gpustate.State
	steps      *progress.Board

	// queue holds what is to be written. It has room for all that was
	// reserved, so that nothing waits for it.
	queue    chan *incident
	reserved atomic.Int64
	// newcomers are those of the reserved places that services hold which are
	// not established.
	newcomers atomic.Int64
	rewrites  chan *incident

	open      func(dir string, limits store.Limits) (disk, []store.Group, []error, error)
	disk      disk
	diskBytes atomic.Int64
	lastWarn  atomic.Int64 // in nanoseconds since 1970
	// summaries is held from the making of a group's summary until it is on
	// disk, so that two workers cannot leave the older one there.
	summaries sync.Mutex
	outlets   outlets

	started bool
	busy    sync.WaitGroup // the workers
	working atomic.Int64   // artefacts that are being written, or are to be rewritten
	stop    chan struct{}  // closed when no more failures come
	told    chan struct{}  // closed when all that waited is in the queue
	abort   chan struct{}  // closed when the time to drain is over
	done    chan struct{}  // closed when the goroutines have ended

	closeStop, closeAbort func()
}

func newRecorder(cfg *Config, id component.ID, set component.TelemetrySettings) (*recorder, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set)
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
		standings: fairness.NewStandings(),
		queue:     make(chan *incident, cfg.QueueSize),
		rewrites:  make(chan *incident, cfg.QueueSize),
		stop:      make(chan struct{}),
		told:      make(chan struct{}),
		abort:     make(chan struct{}),
		done:      make(chan struct{}),
	}
	// Half of the memory is the traces' own; the rest is for what may belong
	// to a failure that has not come yet.
	r.book = newBook(cfg, r.standings)
	if r.ledger, err = newLedger(cfg.RateLimit, cfg.MaxGroups, r.standings); err != nil {
		return nil, err
	}
	if r.reader, err = newReader(cfg); err != nil {
		return nil, err
	}
	if r.gpus, err = gpustate.New(); err != nil {
		return nil, err
	}
	if r.steps, err = progress.New(); err != nil {
		return nil, err
	}
	period := max(cfg.EnrichWindow, cfg.SiblingWait, time.Minute)
	if r.calls, err = newShelf[string, recording](cfg.Traces.Held, cfg.Traces.Bytes/4, period, r.standings.Path); err != nil {
		return nil, err
	}
	if r.exceptions, err = newShelf[spanKey, failure.Error](cfg.Traces.Held, cfg.Traces.Bytes/4, period, r.standings.Path); err != nil {
		return nil, err
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
		Free:      r.cfg.MinFreeBytes,
	})
	if err != nil {
		return fmt.Errorf(`"directory": %w`, err)
	}
	for _, w := range warnings {
		r.logger.Warn("A summary cannot be read; its counts begin anew", zap.Error(w))
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
			o.Observe(r.reserved.Load(), r.own)
			return nil
		}),
		r.telemetry.RegisterProcessorReproGenTracesCallback(func(_ context.Context, o metric.Int64Observer) error {
			traces, _ := r.book.sizes()
			o.Observe(int64(traces), r.own)
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

// Shutdown writes what is queued and what waits, and ends the goroutines. When
// ctx ends first, the rest is dropped and counted, and the error says so.
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
	// Each worker ends after the write that it is in. It is not waited for past
	// the deadline, because a disk may never answer.
	r.closeAbort()
	select {
	case <-r.done:
	case <-time.After(100 * time.Millisecond):
	}
	return fmt.Errorf("repro_gen was stopped before all artefacts were written: %w", ctx.Err())
}

// run keeps the time until Shutdown.
func (r *recorder) run() {
	defer close(r.done)
	for range r.cfg.Workers {
		r.busy.Go(r.work)
	}
	tick, flush := time.NewTicker(tickInterval), time.NewTicker(flushInterval)
	defer tick.Stop()
	defer flush.Stop()
	for stopped := false; !stopped; {
		select {
		case <-tick.C:
			r.tick(r.now())
		case <-flush.C:
			r.enforce()
			r.flush()
		case <-r.stop:
			stopped = true
		}
	}
	r.release(r.now(), true)
	close(r.told)
	r.busy.Wait()
	r.end()
}

// tick does what is due.
func (r *recorder) tick(now time.Time) {
	r.release(now, false)
	for _, i := range r.book.changed(now, false) {
		r.working.Add(1)
		select {
		case r.rewrites <- i:
		default:
			r.working.Add(-1)
			r.book.again(i)
		}
	}
	r.book.expire(now)
}

// release hands the failures whose waiting is over to the workers.
func (r *recorder) release(now time.Time, all bool) {
	for _, i := range r.book.due(now, all) {
		r.queue <- i // has room: see reserve
	}
}

// reserve takes a place in the queue, and reports whether there was one. It
// is given back when a worker takes what came of it, or when nothing does.
// Services that are not established leave half to those that are.
func (r *recorder) reserve(i *incident) bool {
	i.newcomer = r.standings.Newcomer(i.failure.SentBy)
	held := int64(0)
	if i.newcomer {
		held = r.newcomers.Add(1)
	}
	if r.reserved.Add(1) <= int64(cap(r.queue)) && held <= int64(max(1, cap(r.queue)/2)) {
		return true
	}
	r.unreserve(i)
	return false
}

func (r *recorder) unreserve(i *incident) {
	r.reserved.Add(-1)
	if i.newcomer {
		r.newcomers.Add(-1)
	}
}

// refused notes that a failure for which an artefact was wanted gets none.
func (r *recorder) refused(ctx context.Context, i *incident, reason string) {
	r.ledger.gaveUp(i.group, i.failure.Variant.ID)
	r.dropped(ctx, 1, reason)
}

// withdrawn notes that an incident which waited needs no artefact, because
// another one tells what there is to tell.
func (r *recorder) withdrawn(ctx context.Context, i *incident) {
	r.unreserve(i)
	r.ledger.withdrew(i.group, i.variant)
	r.telemetry.ProcessorReproGenDeduplicated.Add(ctx, 1, r.own)
}

// count counts what was decided about a failure.
func (r *recorder) count(ctx context.Context, v verdict) {
	switch v {
	case verdictWanted:
		r.telemetry.ProcessorReproGenCandidates.Add(ctx, 1, r.own)
	case verdictCounted:
		r.telemetry.ProcessorReproGenCandidates.Add(ctx, 1, r.own)
		r.telemetry.ProcessorReproGenDeduplicated.Add(ctx, 1, r.own)
	case verdictLimited:
		r.telemetry.ProcessorReproGenCandidates.Add(ctx, 1, r.own)
		r.dropped(ctx, 1, dropRateLimited)
	}
}

func (r *recorder) dropped(ctx context.Context, n int, reason string) {
	r.telemetry.ProcessorReproGenDropped.Add(ctx, int64(n),
		metric.WithAttributes(r.id, attribute.String("reason", reason)))
}

// end writes what is left when the workers have ended, and closes the
// directory.
func (r *recorder) end() {
	lost := len(r.queue)
	for range lost {
		r.unreserve(<-r.queue)
	}
	if lost > 0 {
		r.dropped(context.Background(), lost, dropShutdown)
	} else {
		for len(r.rewrites) > 0 {
			r.rewrite(<-r.rewrites)
		}
		for _, i := range r.book.changed(r.now(), true) {
			r.working.Add(1)
			r.rewrite(i)
		}
	}
	r.flush()
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
