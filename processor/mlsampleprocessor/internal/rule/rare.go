package rule

import "time"

// maxOperations limits the operations that a Rare knows.
const maxOperations = 4096

// Rare finds the first of each operation in a minute. The zero Rare is ready to
// use. It is not safe for concurrent use.
type Rare struct{ minutes map[uint64]int64 }

// First reports whether an operation, by its Hash, is the first of its kind in
// the minute. Beyond 4096 operations a minute it reports false for new ones.
func (r *Rare) First(operation uint64, now time.Time) bool {
	minute := now.Unix() / 60
	if seen, known := r.minutes[operation]; known && seen == minute {
		return false
	}
	if r.minutes == nil {
		r.minutes = make(map[uint64]int64)
	}
	if _, known := r.minutes[operation]; !known && len(r.minutes) >= maxOperations {
		for other, seen := range r.minutes {
			if seen != minute {
				delete(r.minutes, other)
			}
		}
		if len(r.minutes) >= maxOperations {
			return false
		}
	}
	r.minutes[operation] = minute
	return true
}
