package mlenrichprocessor

import (
	"context"
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/metadata"
)

// A log record is written while its span is open, and a span leaves its process
// when it ends: records are nearly always ahead of what could be said of them.
// Where log_wait allows it, those that have learnt nothing wait here until their
// span or trace gives them a key, and go on without one when their time is up.

// released says why a record goes on.
type released string

const (
	releasedFound    released = "found"
	releasedTimeout  released = "timeout"
	releasedOverflow released = "overflow"
	releasedShutdown released = "shutdown"
)

// waitingLogs lets records wait at one logs instance. Consume only ever adds
// some: what goes on later is sent by one goroutine of its own, or by Shutdown
// after that one has ended.
type waitingLogs struct {
	store     *store
	next      consumer.Logs
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	processor attribute.KeyValue
	limits    waitingLimits
	queue     *waitingQueue

	cancel     context.CancelFunc
	wake       chan struct{}
	stop, done chan struct{}
}

func newWaitingLogs(e *enricher, next consumer.Logs, limits waitingLimits) *waitingLogs {
	return &waitingLogs{
		next:      next,
		logger:    e.set.Logger,
		telemetry: e.telemetry,
		processor: attribute.String("processor", e.set.ID.String()),
		limits:    limits,
		queue:     newWaitingQueue(limits),
		wake:      make(chan struct{}, 1),
		stop:      make(chan struct{}),
		done:      make(chan struct{}),
	}
}

// start begins to release what waits. It ends with shutdown.
func (w *waitingLogs) start(s *store) {
	var ctx context.Context
	ctx, w.cancel = context.WithCancel(context.Background())
	w.store = s
	s.waiting.add(w)
	go w.run(ctx)
}

// shutdown sends everything that waits. Where ctx ends first, what is being sent
// is given up.
func (w *waitingLogs) shutdown(ctx context.Context) {
	if first := w.queue.close(); !first || w.store == nil {
		return
	}
	defer context.AfterFunc(ctx, w.cancel)()
	defer w.cancel()
	close(w.stop)
	<-w.done
	w.store.waiting.remove(w)
	w.send(ctx, w.queue.takeAll(), releasedShutdown)
}

// run releases records when their trace is known or their time is up.
func (w *waitingLogs) run(ctx context.Context) {
	defer close(w.done)
	timer := time.NewTimer(w.limits.wait)
	defer timer.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-w.wake:
		case <-timer.C:
		}
		w.sendFound(ctx)
		w.send(ctx, w.queue.takeUntil(w.store.now()), releasedTimeout)
		if first, ok := w.queue.first(); ok {
			timer.Reset(first.Sub(w.store.now()))
		}
	}
}

func (w *waitingLogs) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// spansCame says that spans of these traces have just been resolved. It is
// called with each batch of spans, and does no more than look each trace up.
func (w *waitingLogs) spansCame(traces []traceState) {
	if w.queue.ask(traces) {
		w.signal()
	}
}

// sendFound sends the records that can learn something by now.
func (w *waitingLogs) sendFound(ctx context.Context) {
	waiting := w.queue.answer()
	if len(waiting) == 0 {
		return
	}
	// Nobody else takes records out, so those listed are there still.
	spans, traces := w.lookup(waiting)
	found := slices.DeleteFunc(waiting, func(at waitingAt) bool {
		r := at.record()
		return !r.state.learns(spans[r.state.span], traces[r.state.trace], &r.scope.resource.run)
	})
	if len(found) == 0 {
		return
	}
	w.queue.take(found)
	w.send(ctx, found, releasedFound)
}

// lookupSize is how many records are looked up at once, with the store's lock
// held: everybody else may come in between.
const lookupSize = 1024

// lookup asks the store for what is known of records.
func (w *waitingLogs) lookup(records []waitingAt) (map[spanKey]*keySet, map[[16]byte]*agreement) {
	spans := make(map[spanKey]*keySet)
	traces := make(map[[16]byte]*agreement)
	for some := range slices.Chunk(records, lookupSize) {
		ofSpans, ofTraces := make(map[spanKey]*keySet), make(map[[16]byte]*agreement)
		for _, at := range some {
			at.record().state.wants(ofSpans, ofTraces)
		}
		w.store.lookup(ofSpans, ofTraces)
		maps.Copy(spans, ofSpans)
		maps.Copy(traces, ofTraces)
	}
	return spans, traces
}

// send enriches records, which are in order, and sends those of each request
// together.
func (w *waitingLogs) send(ctx context.Context, records []waitingAt, why released) {
	if len(records) == 0 {
		return
	}
	spans, traces := w.lookup(records)
	var marks marks
	for len(records) > 0 {
		b, n := records[0].batch, 0
		for n < len(records) && records[n].batch == b {
			n++
		}
		ld, size := logsOf(records[:n], spans, traces, &marks)
		err := w.next.ConsumeLogs(client.NewContext(ctx, b.info), ld)
		w.count(ctx, n, why)
		if err != nil {
			w.telemetry.ProcessorMlEnrichLogRecordsLost.Add(ctx, int64(n), metric.WithAttributes(w.processor))
			w.logger.Error("Log records that had waited were refused and are lost", zap.Int("records", n), zap.Error(err))
		}
		w.queue.free(b, n, size)
		records = records[n:]
	}
}

// logsOf moves records of a batch into logs of their own.
func logsOf(records []waitingAt, spans map[spanKey]*keySet, traces map[[16]byte]*agreement, marks *marks) (ld plog.Logs, size int) {
	ld = plog.NewLogs()
	var resource *waitingResource
	var scope *waitingScope
	var rl plog.ResourceLogs
	var sl plog.ScopeLogs
	for _, at := range records {
		r := at.record()
		if r.scope.resource != resource {
			resource, rl = r.scope.resource, ld.ResourceLogs().AppendEmpty()
			resource.logs.CopyTo(rl)
		}
		if r.scope != scope {
			scope, sl = r.scope, rl.ScopeLogs().AppendEmpty()
			scope.logs.CopyTo(sl)
		}
		s := &r.state
		s.write(spans[s.span], traces[s.trace], &resource.run, &resource.process, marks)
		r.record.MoveTo(sl.LogRecords().AppendEmpty())
		size += r.size
		*r = waitingRecord{}
	}
	return ld, size
}

func (w *waitingLogs) count(ctx context.Context, n int, why released) {
	w.telemetry.ProcessorMlEnrichLogRecordsReleased.Add(ctx, int64(n),
		metric.WithAttributes(w.processor, attribute.String("reason", string(why))))
}
