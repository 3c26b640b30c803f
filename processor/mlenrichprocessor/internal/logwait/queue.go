package logwait

import (
	"cmp"
	"container/list"
	"iter"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
)

// overhead is the memory in bytes of a waiting record, and of a resource and a
// scope of waiting records, beyond its encoded size. The sum was measured to be
// within a tenth of the heap in use, for records that come alone and by the
// hundred.
const overhead = 512

// part is the part of one request that waits. Its records leave with the
// resource, the scope and the sender's metadata that they came with.
type part[S any] struct {
	number  uint64
	until   time.Time
	info    client.Info
	records []waitingRecord[S]
	left    int
	// shared is the size of resources, scopes and the sender's metadata.
	shared  int
	element *list.Element
}

// waitingRecord is one record. Its scope is nil once it was sent.
type waitingRecord[S any] struct {
	Record[S]
	log   plog.LogRecord
	scope *waitingScope
	size  int
}

// waitingScope is a scope without records.
type waitingScope struct {
	resource *waitingResource
	logs     plog.ScopeLogs
	size     int
}

// waitingResource is a resource without scopes.
type waitingResource struct {
	logs plog.ResourceLogs
	size int
}

// position is where a record waits.
type position[S any] struct {
	part *part[S]
	at   int
}

func (p position[S]) record() *waitingRecord[S] { return &p.part.records[p.at] }

// all returns the records that were not sent.
func (p *part[S]) all() []position[S] {
	list := make([]position[S], 0, p.left)
	for at := range p.records {
		if p.records[at].scope != nil {
			list = append(list, position[S]{p, at})
		}
	}
	return list
}

// queue is what waits, by request and by trace, and the memory that it takes.
// It touches no pdata. Any goroutine may add to it; only the one that sends
// takes records out.
type queue[S any] struct {
	maxBytes int

	mu sync.Mutex
	// parts are those with records that wait, the oldest first. All wait for
	// the same time, so the first is the first to expire.
	parts  list.List
	traces map[pcommon.TraceID][]position[S]
	// asked are the traces about which something new may be known, and fresh
	// the records that were looked up before they were added.
	asked map[pcommon.TraceID]struct{}
	fresh []position[S]
	// records and bytes are what waits or is being sent.
	records, bytes int
	added          uint64
	closed         bool
}

func newQueue[S any](maxBytes int) *queue[S] {
	return &queue[S]{maxBytes: maxBytes, traces: make(map[pcommon.TraceID][]position[S]), asked: make(map[pcommon.TraceID]struct{})}
}

// reserve puts the records for which there is memory into the part, in their
// order, and returns the others. metadata is the size of the sender's.
func (q *queue[S]) reserve(p *part[S], wanted []waitingRecord[S], metadata int) (refused []waitingRecord[S]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var resource *waitingResource
	var scope *waitingScope
	for i := range wanted {
		r := &wanted[i]
		shared := 0
		if len(p.records) == 0 {
			shared += metadata
		}
		if r.scope.resource != resource {
			shared += r.scope.resource.size
		}
		if r.scope != scope {
			shared += r.scope.size
		}
		if q.bytes+r.size+shared > q.maxBytes {
			refused = append(refused, *r)
			continue
		}
		resource, scope = r.scope.resource, r.scope
		q.records, q.bytes = q.records+1, q.bytes+r.size+shared
		p.shared += shared
		p.records = append(p.records, *r)
	}
	p.left = len(p.records)
	return refused
}

// add adds a part that has its memory, and asks about its records: something
// may have become known since they were looked up. It returns false if the
// queue is closed.
func (q *queue[S]) add(p *part[S]) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.added++
	p.number = q.added
	p.element = q.parts.PushBack(p)
	for at := range p.records {
		trace := p.records[at].Trace
		q.traces[trace] = append(q.traces[trace], position[S]{p, at})
		q.fresh = append(q.fresh, position[S]{p, at})
	}
	return true
}

// close refuses what is added from now on. It returns false if the queue was
// closed before.
func (q *queue[S]) close() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	was := q.closed
	q.closed = true
	return !was
}

// ask notes the traces for which records wait, and reports whether there are
// any.
func (q *queue[S]) ask(traces iter.Seq[pcommon.TraceID]) (waiting bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.traces) == 0 {
		return false
	}
	for trace := range traces {
		if _, waits := q.traces[trace]; waits {
			q.asked[trace] = struct{}{}
			waiting = true
		}
	}
	return waiting
}

// answer returns the records that were asked about since the last call, on
// their own or with their traces. They stay in the queue.
func (q *queue[S]) answer() []position[S] {
	q.mu.Lock()
	defer q.mu.Unlock()
	var waiting []position[S]
	for trace := range q.asked {
		waiting = append(waiting, q.traces[trace]...)
	}
	for _, at := range q.fresh {
		if r := at.record(); r.scope != nil {
			if _, with := q.asked[r.Trace]; !with {
				waiting = append(waiting, at)
			}
		}
	}
	clear(q.asked)
	q.fresh = nil
	return waiting
}

// take takes records out, and sorts them into the order in which they came.
func (q *queue[S]) take(records []position[S]) {
	going := make(map[position[S]]struct{}, len(records))
	traces := make(map[pcommon.TraceID]struct{})
	for _, at := range records {
		going[at] = struct{}{}
		traces[at.record().Trace] = struct{}{}
	}
	slices.SortFunc(records, func(a, b position[S]) int {
		return cmp.Or(cmp.Compare(a.part.number, b.part.number), cmp.Compare(a.at, b.at))
	})
	q.mu.Lock()
	defer q.mu.Unlock()
	for trace := range traces {
		rest := slices.DeleteFunc(q.traces[trace], func(at position[S]) bool { _, goes := going[at]; return goes })
		if len(rest) > 0 {
			q.traces[trace] = rest
		} else {
			delete(q.traces, trace)
		}
	}
}

// takeUntil takes the parts out whose time is up by then, and returns their
// records in order.
func (q *queue[S]) takeUntil(then time.Time) []position[S] {
	return q.takeOldest(func(p *part[S]) bool { return !p.until.After(then) })
}

// takeAll takes everything out.
func (q *queue[S]) takeAll() []position[S] {
	return q.takeOldest(func(*part[S]) bool { return true })
}

// takeOldest takes the oldest parts out, as long as they are wanted.
func (q *queue[S]) takeOldest(wanted func(*part[S]) bool) []position[S] {
	q.mu.Lock()
	defer q.mu.Unlock()
	var going []position[S]
	for front := q.parts.Front(); front != nil; front = q.parts.Front() {
		p := front.Value.(*part[S])
		if !wanted(p) {
			break
		}
		q.parts.Remove(front)
		p.element = nil
		all := p.all()
		for _, at := range all {
			// It is the oldest of its trace.
			trace := at.record().Trace
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

// free releases the memory of n records of a part that have been sent.
func (q *queue[S]) free(p *part[S], n, size int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	p.left -= n
	q.records, q.bytes = q.records-n, q.bytes-size
	if p.left > 0 {
		return
	}
	q.bytes -= p.shared
	if p.element != nil {
		q.parts.Remove(p.element)
		p.element = nil
	}
}

// first returns when the time of the oldest part is up.
func (q *queue[S]) first() (until time.Time, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	front := q.parts.Front()
	if front == nil {
		return time.Time{}, false
	}
	return front.Value.(*part[S]).until, true
}

// waiting returns how many records wait or are being sent, and their bytes.
func (q *queue[S]) waiting() (records, bytes int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.records, q.bytes
}
