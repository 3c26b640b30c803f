package mlenrichprocessor

import (
	"cmp"
	"container/list"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/pdata/plog"
)

// waitingOverhead is what a waiting record, and a resource and a scope of waiting
// records, take beside their encoded size: their places, and what pdata needs
// beside the bytes themselves. What is counted was measured to be within a tenth
// of what it takes of the heap, for records that come alone and by the hundred.
const waitingOverhead = 512

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
	// shared is the size of resources, scopes and the sender's metadata.
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

// waitingQueue is what waits, by request and by trace, and the room that it takes.
// It touches no pdata. Anybody may add to it; whoever sends, one at a time, takes
// out.
type waitingQueue struct {
	limits waitingLimits

	mu sync.Mutex
	// batches are those with records that wait, the oldest first. All wait as
	// long, so the first is the first whose time is up.
	batches list.List
	traces  map[[16]byte][]waitingAt
	// asked are the traces of which something new may be known, and fresh the
	// records that were looked up before they were here.
	asked map[[16]byte]struct{}
	fresh []waitingAt
	// records and bytes are what waits or is being sent.
	records, bytes int
	added          uint64
	closed         bool
}

func newWaitingQueue(limits waitingLimits) *waitingQueue {
	return &waitingQueue{limits: limits, traces: make(map[[16]byte][]waitingAt), asked: make(map[[16]byte]struct{})}
}

// reserve takes room for those of the records for which there is some, in their
// order, and puts them into the batch. Its own size comes with the first of them.
func (q *waitingQueue) reserve(b *waitingBatch, wanted []waitingRecord, own int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var resource *waitingResource
	var scope *waitingScope
	for i := range wanted {
		r := &wanted[i]
		shared := 0
		if len(b.records) == 0 {
			shared += own
		}
		if r.scope.resource != resource {
			shared += r.scope.resource.size
		}
		if r.scope != scope {
			shared += r.scope.size
		}
		if q.records >= q.limits.records || q.bytes+r.size+shared > q.limits.bytes {
			continue
		}
		resource, scope = r.scope.resource, r.scope
		q.records, q.bytes = q.records+1, q.bytes+r.size+shared
		b.shared += shared
		b.records = append(b.records, *r)
	}
	b.left = len(b.records)
}

// add adds a batch that has room, and asks about its records: something may have
// become known since they were looked up. It returns false where the queue is
// closed.
func (q *waitingQueue) add(b *waitingBatch) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.added++
	b.number = q.added
	b.element = q.batches.PushBack(b)
	for at := range b.records {
		trace := b.records[at].state.trace
		q.traces[trace] = append(q.traces[trace], waitingAt{b, at})
		q.fresh = append(q.fresh, waitingAt{b, at})
	}
	return true
}

// close lets nothing be added any more. It returns false where that is so.
func (q *waitingQueue) close() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	was := q.closed
	q.closed = true
	return !was
}

// ask notes those of the traces for which records wait, and says whether there
// are any.
func (q *waitingQueue) ask(traces []traceState) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.traces) == 0 {
		return false
	}
	news := false
	for i := range traces {
		if _, waits := q.traces[traces[i].id]; waits {
			q.asked[traces[i].id] = struct{}{}
			news = true
		}
	}
	return news
}

// answer returns the records that were asked about since the last call, alone or
// with their traces. They stay.
func (q *waitingQueue) answer() []waitingAt {
	q.mu.Lock()
	defer q.mu.Unlock()
	var waiting []waitingAt
	for trace := range q.asked {
		waiting = append(waiting, q.traces[trace]...)
	}
	for _, at := range q.fresh {
		if r := at.record(); r.scope != nil {
			if _, with := q.asked[r.state.trace]; !with {
				waiting = append(waiting, at)
			}
		}
	}
	clear(q.asked)
	q.fresh = nil
	return waiting
}

// take takes records out, and puts them into the order in which they came.
func (q *waitingQueue) take(records []waitingAt) {
	going := make(map[waitingAt]struct{}, len(records))
	traces := make(map[[16]byte]struct{})
	for _, at := range records {
		going[at] = struct{}{}
		traces[at.record().state.trace] = struct{}{}
	}
	slices.SortFunc(records, func(a, b waitingAt) int {
		return cmp.Or(cmp.Compare(a.batch.number, b.batch.number), cmp.Compare(a.at, b.at))
	})
	q.mu.Lock()
	defer q.mu.Unlock()
	for trace := range traces {
		rest := slices.DeleteFunc(q.traces[trace], func(at waitingAt) bool { _, goes := going[at]; return goes })
		if len(rest) > 0 {
			q.traces[trace] = rest
		} else {
			delete(q.traces, trace)
		}
	}
}

// takeUntil takes the batches out whose time is up by then, and returns their
// records in order.
func (q *waitingQueue) takeUntil(then time.Time) []waitingAt {
	return q.takeOldest(func(b *waitingBatch) bool { return !b.until.After(then) })
}

// takeAll takes everything out.
func (q *waitingQueue) takeAll() []waitingAt {
	return q.takeOldest(func(*waitingBatch) bool { return true })
}

// takeOldest takes the oldest batches out, as long as they are wanted.
func (q *waitingQueue) takeOldest(wanted func(*waitingBatch) bool) []waitingAt {
	q.mu.Lock()
	defer q.mu.Unlock()
	var going []waitingAt
	for front := q.batches.Front(); front != nil; front = q.batches.Front() {
		b := front.Value.(*waitingBatch)
		if !wanted(b) {
			break
		}
		q.batches.Remove(front)
		b.element = nil
		all := b.all()
		for _, at := range all {
			// It is the oldest of its trace.
			trace := at.record().state.trace
			if rest := q.traces[trace][1:]; len(rest) > 0 {
				q.traces[trace] = rest
			} else {
				delete(q.traces, trace)
				delete(q.asked, trace)
			}
		}
		going = append(going, all...)
	}
	return going
}

// free gives the room of records back that have been sent.
func (q *waitingQueue) free(b *waitingBatch, n, size int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	b.left -= n
	q.records, q.bytes = q.records-n, q.bytes-size
	if b.left > 0 {
		return
	}
	q.bytes -= b.shared
	if b.element != nil {
		q.batches.Remove(b.element)
		b.element = nil
	}
}

// first is when the time of the oldest batch is up.
func (q *waitingQueue) first() (until time.Time, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	front := q.batches.Front()
	if front == nil {
		return time.Time{}, false
	}
	return front.Value.(*waitingBatch).until, true
}

// holds is how many records wait, or are being sent, and what they take.
func (q *waitingQueue) holds() (records, bytes int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.records, q.bytes
}
