package model

import "time"

// maxOccurrences limits the times that are held.
const maxOccurrences = 64

// occurrences count what came, and say how many came since a time. Times are held
// the more densely the newer they are.
type occurrences struct {
	n    int64
	held []occurrence
}

// occurrence is when the n-th one came.
type occurrence struct {
	at time.Time
	n  int64
}

// add counts one that came now.
func (o *occurrences) add(now time.Time) {
	if len(o.held) == maxOccurrences {
		older := o.held[:maxOccurrences/2]
		for i := range maxOccurrences / 4 {
			older[i] = older[2*i+1]
		}
		o.held = append(older[:maxOccurrences/4], o.held[maxOccurrences/2:]...)
	}
	o.n++
	o.held = append(o.held, occurrence{now, o.n})
}

// since returns how many came at a time or later. It is exact for the newest, and
// otherwise too large by a fraction at most.
func (o *occurrences) since(at time.Time) int64 {
	before := int64(0)
	for _, one := range o.held {
		if !one.at.Before(at) {
			break
		}
		before = one.n
	}
	return o.n - before
}
