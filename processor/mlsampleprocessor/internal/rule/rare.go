package rule

import (
	"maps"
	"time"
)

// maxOperations limits the operations that a Rare knows.
const maxOperations = 1024

// Rare finds the first of each operation in a minute. The zero Rare is ready to
// use. It is not safe for concurrent use.
type Rare struct {
	minutes map[uint64]int64
	// swept is the minute in which operations were last removed.
	swept int64
}

// First reports whether an operation, by its Hash, is the first of its kind in
// the minute. Beyond 1024 operations a minute it reports false for new ones.
func (r *Rare) First(operation uint64, now time.Time) bool {
	minute := now.Unix() / 60
	seen, known := r.minutes[operation]
	if known && seen == minute {
		return false
	}
	if r.minutes == nil {
		r.minutes = make(map[uint64]int64)
	}
	if !known && len(r.minutes) >= maxOperations {
		if r.swept == minute {
			return false
		}
		r.swept = minute
		maps.DeleteFunc(r.minutes, func(_ uint64, seen int64) bool { return seen != minute })
		if len(r.minutes) >= maxOperations {
			return false
		}
	}
	r.minutes[operation] = minute
	return true
}
