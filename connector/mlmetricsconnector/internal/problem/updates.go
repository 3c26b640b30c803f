package problem

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strings"
	"time"
)

const (
	// updateAfter is the least time between two records of a problem whose evidence
	// changes, maxUpdates limits those of one emission.
	updateAfter, maxUpdates = time.Minute, 256
	// otherValue is the change of a value that is worth a record, as a fraction of it.
	otherValue = 0.2
)

// saying is what a record says of a problem.
type saying struct {
	at    time.Time
	value float64
	// words is a hash of the words, without their figures, and of where the problem is and
	// what to look at.
	words uint64
}

var wordsSeed = maphash.MakeSeed()

// say returns what a record says of the problem now.
func (e *Entry) say(now time.Time) saying {
	where := fmt.Sprintf("%q %q %q %d %d %d ", e.Rank, e.Host, e.GPU, e.PID, e.Recovery, len(e.Held))
	words := strings.Map(withoutFigures, fmt.Sprintf("%q %q %q", e.Evidence, e.Excluded, e.Next))
	return saying{now, e.Value, maphash.String(wordsSeed, where+words)}
}

// withoutFigures drops the characters of numbers.
func withoutFigures(c rune) rune {
	if c >= '0' && c <= '9' || c == '.' {
		return -1
	}
	return c
}

// update marks the problems that last and whose evidence has changed since it was last
// sent, those that wait for longest first. changed are sent anyway.
func (b *Board) update(changed map[*Entry]bool, now time.Time) {
	var entries []*Entry
	for id, entry := range b.open {
		said := entry.said
		entry.Updated = false
		if changed[entry] || b.reported[id] == nil || entry.Stale || !entry.Ended.IsZero() || now.Sub(said.at) < updateAfter {
			continue
		}
		if is := entry.say(now); is.words != said.words || math.Abs(is.value-said.value) > otherValue*math.Abs(said.value) {
			entries = append(entries, entry)
		}
	}
	slices.SortFunc(entries, func(x, y *Entry) int { return cmp.Or(x.said.at.Compare(y.said.at), inOrder(*x, *y)) })
	for _, entry := range entries[:min(len(entries), maxUpdates)] {
		entry.Updated, entry.said = true, entry.say(now)
	}
}
