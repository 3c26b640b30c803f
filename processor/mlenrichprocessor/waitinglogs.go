package mlenrichprocessor

import (
	"cmp"
	"container/list"
	"context"
	"slices"
	"sync"
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

// waitingOverhead is what a waiting record, and a resource and a scope of waiting
// records, take beside their encoded size: their places, and what pdata needs
// beside the bytes themselves. What is counted was measured to be within a tenth
// of what it takes of the heap, for records that come alone and by the hundred.
const waitingOverhead = 512

// released says why a record goes on.
type released string

const (
	releasedFound    released = "found"
	releasedTimeout  released = "timeout"
	releasedOverflow released = "overflow"
	releasedShutdown released = "shutdown"
)

// waitingLogs are the records that wait at one logs instance. Consume only ever
// adds some: what goes on later is sent by one goroutine of its own, or by
// Shutdown after that one has ended. Its lock is not held while anything is
// sent, nor while pdata is touched.
type waitingLogs struct {
	store     *store
	next      consumer.Logs
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	processor attribute.KeyValue
	limits    waitingLimits

	mu sync.Mutex
	// batches are those with records that wait, the oldest first. All wait as
	// long, so the first is the first whose time is up.
	batches list.List
	traces  map[[16]byte][]waitingAt
	// asked are the traces of which something new may be known.
	asked map[[16]byte]struct{}
	// records and bytes are what waits or is being sent.
	records, bytes int
	added          uint64
	closed         bool

	// marks is of whoever sends.
	marks marks

	cancel     context.CancelFunc
	wake       chan struct{}
	stop, done chan struct{}
}

// waitingLimits are those of the configuration.
type waitingLimits struct {
	wait           time.Duration
	records, bytes int
}

// waitingBatch is the part of one request that waits. Its records leave it with
// the resource, the scope and the sender's metadata that they came with.
type waitingBatch struct {
	number  uint64
	until   time.Time
	info    client.Info
	records []waitingRecord
	left    int
	// shared is the size of resources and scopes.
	shared  int
	element *list.Element
}

// waitingRecord is one record; its scope is nil once it has gone.
type waitingRecord struct {
	record plog.LogRecord
	state  recordState
	scope  *waitingScope
	size   int
}

// waitingScope is a scope without records, and waitingResource a resource
// without scopes.
type waitingScope struct {
	resource *waitingResource
	logs     plog.ScopeLogs
	size     int
}

type waitingResource struct {
	logs    plog.ResourceLogs
	run     run
	process process
	size    int
}

// waitingAt is where a record waits.
type waitingAt struct {
	batch *waitingBatch
	at    int
}

func (w waitingAt) record() *waitingRecord { return &w.batch.records[w.at] }

func newWaitingLogs(e *enricher, next consumer.Logs, limits waitingLimits) *waitingLogs {
	return &waitingLogs{
		next:      next,
		logger:    e.set.Logger,
		telemetry: e.telemetry,
		processor: attribute.String("processor", e.set.ID.String()),
		limits:    limits,
		traces:    make(map[[16]byte][]waitingAt),
		asked:     make(map[[16]byte]struct{}),
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
	w.mu.Lock()
	begun, closed := w.store != nil, w.closed
	w.closed = true
	w.mu.Unlock()
	if !begun || closed {
		return
	}
	defer context.AfterFunc(ctx, w.cancel)()
	defer w.cancel()
	close(w.stop)
	<-w.done
	w.store.waiting.remove(w)
	w.send(ctx, w.unlink(func(*waitingBatch) bool { return true }), releasedShutdown)
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
		now := w.store.now()
		w.send(ctx, w.unlink(func(b *waitingBatch) bool { return !b.until.After(now) }), releasedTimeout)
		if first, ok := w.first(); ok {
			timer.Reset(first.Sub(w.store.now()))
		}
	}
}

// first is when the time of the oldest batch is up.
func (w *waitingLogs) first() (until time.Time, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	front := w.batches.Front()
	if front == nil {
		return time.Time{}, false
	}
	return front.Value.(*waitingBatch).until, true
}

func (w *waitingLogs) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// spansCame says that spans of these traces have just been resolved. It is
// called with each batch of spans and looks each trace up at most.
func (w *waitingLogs) spansCame(traces []traceState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.traces) == 0 {
		return
	}
	news := false
	for i := range traces {
		if _, waits := w.traces[traces[i].id]; waits {
			w.asked[traces[i].id] = struct{}{}
			news = true
		}
	}
	if news {
		w.signal()
	}
}

// take keeps those of a batch's records whose state says that they wait, as far
// as there is room, and takes them out of the logs. The states of the others say
// afterwards that they do not wait.
func (w *waitingLogs) take(ctx context.Context, ld plog.Logs, b *batch, states []recordState) {
	kept := w.admit(ctx, w.sizes(ld, b, states), states)
	if kept == nil {
		return
	}
	next := 0
	var ordinal int32
	ld.ResourceLogs().RemoveIf(func(rl plog.ResourceLogs) bool {
		took := false
		rl.ScopeLogs().RemoveIf(func(sl plog.ScopeLogs) bool {
			before := sl.LogRecords().Len()
			sl.LogRecords().RemoveIf(func(record plog.LogRecord) bool {
				ordinal++
				if next == len(kept.records) || kept.records[next].state.ordinal != ordinal-1 {
					return false
				}
				to := &kept.records[next]
				to.record = plog.NewLogRecord()
				record.MoveTo(to.record)
				to.state.attrs = to.record.Attributes()
				next++
				return true
			})
			took = took || sl.LogRecords().Len() < before
			return before > 0 && sl.LogRecords().Len() == 0
		})
		return took && rl.ScopeLogs().Len() == 0
	})
	w.link(ctx, kept)
}

// sizes lists the records that are to wait, with copies of what they share and
// with what all of it takes.
func (w *waitingLogs) sizes(ld plog.Logs, b *batch, states []recordState) []waitingRecord {
	var marshaler plog.ProtoMarshaler
	var wanted []waitingRecord
	next := 0
	var ordinal int32
	for i, rl := range ld.ResourceLogs().All() {
		var resource *waitingResource
		for _, sl := range rl.ScopeLogs().All() {
			var scope *waitingScope
			for _, record := range sl.LogRecords().All() {
				ordinal++
				for next < len(states) && (states[next].ordinal < ordinal-1 || !states[next].waits) {
					next++
				}
				if next == len(states) {
					return wanted
				}
				if states[next].ordinal != ordinal-1 {
					continue
				}
				if resource == nil {
					resource = &waitingResource{logs: plog.NewResourceLogs(), run: b.resources[i].run, process: b.resources[i].process}
					rl.Resource().CopyTo(resource.logs.Resource())
					resource.logs.SetSchemaUrl(rl.SchemaUrl())
					resource.size = marshaler.ResourceLogsSize(resource.logs) + waitingOverhead
				}
				if scope == nil {
					scope = &waitingScope{resource: resource, logs: plog.NewScopeLogs()}
					sl.Scope().CopyTo(scope.logs.Scope())
					scope.logs.SetSchemaUrl(sl.SchemaUrl())
					scope.size = marshaler.ScopeLogsSize(scope.logs) + waitingOverhead
				}
				wanted = append(wanted, waitingRecord{
					state: states[next], scope: scope, size: marshaler.LogRecordSize(record) + waitingOverhead,
				})
			}
		}
	}
	return wanted
}

// admit chooses those for which there is room, in their order, and counts the
// others. It returns nil where there is room for none.
func (w *waitingLogs) admit(ctx context.Context, wanted []waitingRecord, states []recordState) *waitingBatch {
	kept := &waitingBatch{until: w.store.now().Add(w.limits.wait), info: client.FromContext(ctx)}
	for i := range states {
		states[i].waits = false
	}
	var resource *waitingResource
	var scope *waitingScope
	next := 0
	w.mu.Lock()
	for i := range wanted {
		r := &wanted[i]
		shared := 0
		if r.scope.resource != resource {
			shared += r.scope.resource.size
		}
		if r.scope != scope {
			shared += r.scope.size
		}
		if w.records >= w.limits.records || w.bytes+r.size+shared > w.limits.bytes {
			continue
		}
		resource, scope = r.scope.resource, r.scope
		w.records, w.bytes = w.records+1, w.bytes+r.size+shared
		kept.shared += shared
		kept.records = append(kept.records, *r)
		for states[next].ordinal != r.state.ordinal {
			next++
		}
		states[next].waits = true
	}
	w.mu.Unlock()
	kept.left = len(kept.records)
	if over := len(wanted) - kept.left; over > 0 {
		w.count(ctx, over, releasedOverflow)
	}
	if kept.left == 0 {
		return nil
	}
	return kept
}

// link adds a batch whose records have left their logs. What is known of their
// traces is looked up once more: spans may have come since.
func (w *waitingLogs) link(ctx context.Context, kept *waitingBatch) {
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		// Nobody may send to a processor that is shut down. Its records are
		// not lost all the same.
		w.send(ctx, kept.all(), releasedShutdown)
		return
	}
	defer w.mu.Unlock()
	w.added++
	kept.number = w.added
	kept.element = w.batches.PushBack(kept)
	for at := range kept.records {
		trace := kept.records[at].state.trace
		w.traces[trace] = append(w.traces[trace], waitingAt{kept, at})
		w.asked[trace] = struct{}{}
	}
	w.signal()
}

// all are the records of a batch that have not gone.
func (b *waitingBatch) all() []waitingAt {
	list := make([]waitingAt, 0, b.left)
	for at := range b.records {
		if b.records[at].scope != nil {
			list = append(list, waitingAt{b, at})
		}
	}
	return list
}

// unlink takes the oldest batches out, as long as they are wanted, and returns
// their records in order.
func (w *waitingLogs) unlink(wanted func(*waitingBatch) bool) []waitingAt {
	w.mu.Lock()
	defer w.mu.Unlock()
	var going []waitingAt
	for front := w.batches.Front(); front != nil; front = w.batches.Front() {
		b := front.Value.(*waitingBatch)
		if !wanted(b) {
			break
		}
		w.batches.Remove(front)
		b.element = nil
		all := b.all()
		for _, at := range all {
			// It is the oldest of its trace.
			trace := at.record().state.trace
			if rest := w.traces[trace][1:]; len(rest) > 0 {
				w.traces[trace] = rest
			} else {
				delete(w.traces, trace)
				delete(w.asked, trace)
			}
		}
		going = append(going, all...)
	}
	return going
}

// sendFound sends the records that can learn something by now.
func (w *waitingLogs) sendFound(ctx context.Context) {
	w.mu.Lock()
	var waiting []waitingAt
	for trace := range w.asked {
		waiting = append(waiting, w.traces[trace]...)
	}
	clear(w.asked)
	w.mu.Unlock()
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
	going := make(map[waitingAt]struct{}, len(found))
	left := make(map[[16]byte]struct{})
	for _, at := range found {
		going[at] = struct{}{}
		left[at.record().state.trace] = struct{}{}
	}
	w.mu.Lock()
	for trace := range left {
		rest := slices.DeleteFunc(w.traces[trace], func(at waitingAt) bool { _, goes := going[at]; return goes })
		if len(rest) > 0 {
			w.traces[trace] = rest
		} else {
			delete(w.traces, trace)
		}
	}
	w.mu.Unlock()
	slices.SortFunc(found, func(a, b waitingAt) int {
		return cmp.Or(cmp.Compare(a.batch.number, b.batch.number), cmp.Compare(a.at, b.at))
	})
	w.send(ctx, found, releasedFound)
}

// lookup asks the store for what is known of records.
func (w *waitingLogs) lookup(records []waitingAt) (map[spanKey]*keySet, map[[16]byte]*agreement) {
	spans := make(map[spanKey]*keySet)
	traces := make(map[[16]byte]*agreement)
	for _, at := range records {
		at.record().state.wants(spans, traces)
	}
	w.store.lookup(spans, traces)
	return spans, traces
}

// send enriches records, which are in order, and sends those of each request
// together.
func (w *waitingLogs) send(ctx context.Context, records []waitingAt, why released) {
	if len(records) == 0 {
		return
	}
	spans, traces := w.lookup(records)
	for len(records) > 0 {
		b, n := records[0].batch, 0
		for n < len(records) && records[n].batch == b {
			n++
		}
		ld, size := w.logsOf(records[:n], spans, traces)
		err := w.next.ConsumeLogs(client.NewContext(ctx, b.info), ld)
		w.count(ctx, n, why)
		if err != nil {
			w.telemetry.ProcessorMlEnrichLogRecordsLost.Add(ctx, int64(n), metric.WithAttributes(w.processor))
			w.logger.Error("Log records that had waited were refused and are lost", zap.Int("records", n), zap.Error(err))
		}
		w.gone(b, n, size)
		records = records[n:]
	}
}

// logsOf moves records of a batch into logs of their own.
func (w *waitingLogs) logsOf(records []waitingAt, spans map[spanKey]*keySet, traces map[[16]byte]*agreement) (ld plog.Logs, size int) {
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
		s.write(spans[s.span], traces[s.trace], &resource.run, &resource.process, &w.marks)
		r.record.MoveTo(sl.LogRecords().AppendEmpty())
		size += r.size
		*r = waitingRecord{}
	}
	return ld, size
}

// gone gives the room of records back that have been sent.
func (w *waitingLogs) gone(b *waitingBatch, n, size int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	b.left -= n
	w.records, w.bytes = w.records-n, w.bytes-size
	if b.left > 0 {
		return
	}
	w.bytes -= b.shared
	if b.element != nil {
		w.batches.Remove(b.element)
		b.element = nil
	}
}

func (w *waitingLogs) count(ctx context.Context, n int, why released) {
	w.telemetry.ProcessorMlEnrichLogRecordsReleased.Add(ctx, int64(n),
		metric.WithAttributes(w.processor, attribute.String("reason", string(why))))
}

// holds is how many records wait, or are being sent, and what they take.
func (w *waitingLogs) holds() (records, bytes int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.records, w.bytes
}

// waiters are the logs instances of a store at which records may wait. The zero
// value is ready for use.
type waiters struct {
	mu   sync.RWMutex
	list []*waitingLogs
}

func (w *waiters) add(one *waitingLogs) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, one)
}

func (w *waiters) remove(one *waitingLogs) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = slices.DeleteFunc(w.list, func(have *waitingLogs) bool { return have == one })
}

// spansCame tells all that spans of these traces have been resolved.
func (w *waiters) spansCame(traces []traceState) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	for _, one := range w.list {
		one.spansCame(traces)
	}
}

// holds is how many records wait at all of them, and what they take.
func (w *waiters) holds() (records, bytes int) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	for _, one := range w.list {
		n, size := one.holds()
		records, bytes = records+n, bytes+size
	}
	return records, bytes
}
