package shared

import (
	"maps"
	"sync"
	"time"
)

// Notice says what a component left out, why, and what changes it.
type Notice struct {
	// Key tells the notices of a component apart.
	Key string
	// Kind groups notices with similar causes, such as limit or content.
	Kind string
	// What was left out, in a few words, and Why in a sentence.
	What, Why string
	// Count is how often, since the component started. 0 means that it cannot be
	// counted.
	Count int64
	// Since is when it began, if it goes on and somebody has to know now. Such
	// notices stand at the top of the page. It is zero for all others.
	Since time.Time
	// Fix is the line of configuration, or the command, that changes it.
	Fix string
}

// Tally counts by reason what a component leaves out. The zero value is ready. It
// is safe for concurrent use. It is meant for what is rare: Add takes a lock.
type Tally struct {
	mu     sync.Mutex
	counts map[string]int64
}

// Add adds n to the count of a reason.
func (t *Tally) Add(reason string, n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = make(map[string]int64)
	}
	t.counts[reason] += n
}

// Notices returns a notice for each counted reason that describe knows, with its
// count and with the reason as its key.
func (t *Tally) Notices(describe func(reason string) (notice Notice, ok bool)) []Notice {
	t.mu.Lock()
	counts := maps.Clone(t.counts)
	t.mu.Unlock()
	var all []Notice
	for reason, n := range counts {
		if notice, ok := describe(reason); ok {
			notice.Key, notice.Count = reason, n
			all = append(all, notice)
		}
	}
	return all
}
