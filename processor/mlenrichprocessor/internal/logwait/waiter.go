package logwait

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/metadata"
)

// Record is a log record that names a trace. S is what its Correlator needs to
// know about it, apart from its attributes.
type Record[S any] struct {
	// Ordinal is the record's index among all records of its request.
	Ordinal int
	Trace   pcommon.TraceID
	Attrs   pcommon.Map
	State   S
}

// Correlator finds what the spans of records say about them.
type Correlator[S any] interface {
	// Learns reports for each record whether it gets a key by now.
	Learns(records []*Record[S]) []bool
	// Write adds to each record what is known about it.
	Write(records []*Record[S])
}

// reason is why a record goes on: the value of reason in a metric.
type reason string

const (
	reasonFound    reason = "found"
	reasonTimeout  reason = "timeout"
	reasonOverflow reason = "overflow"
	reasonShutdown reason = "shutdown"
)

// Waiter lets the records of one logs instance wait. Records that waited are
// sent by one goroutine, or by Shutdown after that one has ended.
type Waiter[S any] struct {
	correlator Correlator[S]
	now        func() time.Time
	next       consumer.Logs
	logger     *zap.Logger
	telemetry  *metadata.TelemetryBuilder
	processor  attribute.KeyValue
	config     Config
	queue      *queue[S]
	// left counts the records that went on without their spans, by reason.
	left shared.Tally

	cancel     context.CancelFunc
	wake       chan struct{}
	stop, done chan struct{}
}

// New returns a Waiter that sends records to next. It has to be started.
func New[S any](config Config, next consumer.Logs, logger *zap.Logger, telemetry *metadata.TelemetryBuilder, processor attribute.KeyValue) *Waiter[S] {
	return &Waiter[S]{
		next:      next,
		logger:    logger,
		telemetry: telemetry,
		processor: processor,
		config:    config,
		queue:     newQueue[S](config.MaxBytes),
		wake:      make(chan struct{}, 1),
		stop:      make(chan struct{}),
		done:      make(chan struct{}),
	}
}

// Start begins to release what waits. It ends with Shutdown.
func (w *Waiter[S]) Start(correlator Correlator[S], now func() time.Time) {
	ctx, cancel := context.WithCancel(context.Background())
	w.correlator, w.now, w.cancel = correlator, now, cancel
	go func() {
		defer cancel()
		w.run(ctx)
	}()
}

// Shutdown sends everything that waits. If ctx ends first, what is being sent is
// given up. It does nothing if the Waiter was not started.
func (w *Waiter[S]) Shutdown(ctx context.Context) {
	if first := w.queue.close(); !first || w.correlator == nil {
		return
	}
	defer context.AfterFunc(ctx, w.cancel)()
	close(w.stop)
	<-w.done
	w.send(ctx, w.queue.takeAll(), reasonShutdown)
}

// run releases records when their trace is known or their time is up.
func (w *Waiter[S]) run(ctx context.Context) {
	defer close(w.done)
	timer := time.NewTimer(w.config.Wait)
	defer timer.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-w.wake:
		case <-timer.C:
		}
		w.sendFound(ctx)
		w.send(ctx, w.queue.takeUntil(w.now()), reasonTimeout)
		if first, ok := w.queue.first(); ok {
			timer.Reset(first.Sub(w.now()))
		}
	}
}

func (w *Waiter[S]) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// sendFound sends the records that can learn something by now.
func (w *Waiter[S]) sendFound(ctx context.Context) {
	waiting := w.queue.answer()
	if len(waiting) == 0 {
		return
	}
	// Nobody else takes records out, so those listed are still there.
	learns := w.correlator.Learns(records(waiting))
	found := waiting[:0]
	for i, at := range waiting {
		if learns[i] {
			found = append(found, at)
		}
	}
	if len(found) == 0 {
		return
	}
	w.queue.take(found)
	w.send(ctx, found, reasonFound)
}

// send writes to records, which are in order, what is known of them, and sends
// those of each request together.
func (w *Waiter[S]) send(ctx context.Context, going []position[S], why reason) {
	if len(going) == 0 {
		return
	}
	w.correlator.Write(records(going))
	for len(going) > 0 {
		p, n := going[0].part, 0
		for n < len(going) && going[n].part == p {
			n++
		}
		ld, size := logsOf(going[:n])
		err := w.next.ConsumeLogs(client.NewContext(ctx, p.info), ld)
		w.count(ctx, n, why)
		if err != nil {
			w.telemetry.ProcessorMlEnrichLogRecordsLost.Add(ctx, int64(n), metric.WithAttributes(w.processor))
			w.left.Add(lost, int64(n))
			w.logger.Error("Log records that had waited were refused by the next component and are lost", zap.Int("records", n), zap.Error(err))
		}
		w.queue.free(p, n, size)
		going = going[n:]
	}
}

// logsOf moves records of one request into logs of their own.
func logsOf[S any](going []position[S]) (ld plog.Logs, size int) {
	ld = plog.NewLogs()
	var resource *waitingResource
	var scope *waitingScope
	var rl plog.ResourceLogs
	var sl plog.ScopeLogs
	for _, at := range going {
		r := at.record()
		if r.scope.resource != resource {
			resource, rl = r.scope.resource, ld.ResourceLogs().AppendEmpty()
			resource.logs.CopyTo(rl)
		}
		if r.scope != scope {
			scope, sl = r.scope, rl.ScopeLogs().AppendEmpty()
			scope.logs.CopyTo(sl)
		}
		r.log.MoveTo(sl.LogRecords().AppendEmpty())
		size += r.size
		*r = waitingRecord[S]{}
	}
	return ld, size
}

func records[S any](at []position[S]) []*Record[S] {
	list := make([]*Record[S], len(at))
	for i := range at {
		list[i] = &at[i].record().Record
	}
	return list
}

func (w *Waiter[S]) count(ctx context.Context, n int, why reason) {
	w.telemetry.ProcessorMlEnrichLogRecordsReleased.Add(ctx, int64(n),
		metric.WithAttributes(w.processor, attribute.String("reason", string(why))))
	if why != reasonFound {
		w.left.Add(string(why), int64(n))
	}
}

// Waiters are the Waiters of all logs instances of one component id. The zero
// value is ready for use. It is safe for concurrent use.
type Waiters[S any] struct {
	mu   sync.RWMutex
	list []*Waiter[S]
}

// Add adds a Waiter that has been started.
func (ws *Waiters[S]) Add(w *Waiter[S]) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.list = append(ws.list, w)
}

// Remove removes a Waiter, if it was added.
func (ws *Waiters[S]) Remove(w *Waiter[S]) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.list = slices.DeleteFunc(ws.list, func(have *Waiter[S]) bool { return have == w })
}

// SpansArrived wakes the Waiters at which records wait for one of the traces,
// of which spans were just correlated. It only looks each trace up.
func (ws *Waiters[S]) SpansArrived(traces iter.Seq[pcommon.TraceID]) {
	ws.mu.RLock()
	defer ws.mu.RUnlock()
	for _, w := range ws.list {
		if w.queue.ask(traces) {
			w.signal()
		}
	}
}

// Waiting returns how many records wait or are being sent, and their bytes.
func (ws *Waiters[S]) Waiting() (records, bytes int) {
	ws.mu.RLock()
	defer ws.mu.RUnlock()
	for _, w := range ws.list {
		n, size := w.queue.waiting()
		records, bytes = records+n, bytes+size
	}
	return records, bytes
}
