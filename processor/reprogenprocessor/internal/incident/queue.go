package incident

import (
	"sync/atomic"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

// Queue holds the incidents that are to be written. An incident reserves its
// room when it begins to wait, so that each one that waits fits. It is safe
// for concurrent use.
type Queue struct {
	history   *share.History
	ready     chan *Incident
	reserved  atomic.Int64
	newcomers atomic.Int64 // reserved by services that are not established
}

// NewQueue returns a Queue for size incidents.
func NewQueue(size int, history *share.History) *Queue {
	return &Queue{history: history, ready: make(chan *Incident, size)}
}

// Reserve reserves room for an incident and reports whether there was any.
// Services that are not established leave half of it to those that are.
func (q *Queue) Reserve(i *Incident) bool {
	i.newcomer = q.history.Newcomer(i.Failure.SentBy)
	held := int64(0)
	if i.newcomer {
		held = q.newcomers.Add(1)
	}
	if q.reserved.Add(1) <= int64(cap(q.ready)) && held <= int64(max(1, cap(q.ready)/2)) {
		return true
	}
	q.Release(i)
	return false
}

// Release ends an incident's reservation.
func (q *Queue) Release(i *Incident) {
	q.reserved.Add(-1)
	if i.newcomer {
		q.newcomers.Add(-1)
	}
}

// Put hands an incident with a reservation to the writers. It does not block.
func (q *Queue) Put(i *Incident) { q.ready <- i }

// Ready returns the channel of the incidents that are to be written. A writer
// that takes one calls Release.
func (q *Queue) Ready() <-chan *Incident { return q.ready }

// Reserved returns the number of reservations, of all services and of those that
// are not established.
func (q *Queue) Reserved() (all, newcomers int64) { return q.reserved.Load(), q.newcomers.Load() }
