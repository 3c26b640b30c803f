package streams

import (
	"strings"
	"sync"
	"time"
)

// runs knows the runs that have streams of their own.
type runs struct {
	mu   sync.Mutex
	seen map[runKey]time.Time
}

type runKey struct {
	resource Resource
	id       string
}

// admit reports whether the run may have streams of its own, and keeps it
// alive if so.
func (r *runs) admit(key runKey, limit int, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, live := r.seen[key]
	if !live && len(r.seen) >= limit {
		return false
	}
	if !live {
		key = runKey{resource: key.resource.Clone(), id: strings.Clone(key.id)}
	}
	if !live || now.After(last) {
		r.seen[key] = now
	}
	return true
}

// expire forgets the runs that nothing has updated for longer than
// expiration. No stream of theirs is left then, as each update of a stream is
// one of its run.
func (r *runs) expire(expiration time.Duration, now time.Time) {
	if expiration <= 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, last := range r.seen {
		if now.Sub(last) > expiration {
			delete(r.seen, key)
		}
	}
}

func (r *runs) len() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return int64(len(r.seen))
}
