package mlenrichprocessor

import (
	"slices"
	"sync"
)

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
		n, size := one.queue.holds()
		records, bytes = records+n, bytes+size
	}
	return records, bytes
}
