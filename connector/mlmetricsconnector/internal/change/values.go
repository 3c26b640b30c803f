package change

import (
	"strings"
	"time"
)

const (
	// maxValues limits the values of one item that are remembered.
	maxValues = 16
	// outOfUse is the time after which a value that was not seen makes room for
	// another one, and is a change when it returns.
	outOfUse = time.Hour
	// settling is how long the values of a new item are its first ones, if it may
	// have several at the same time.
	settling = time.Minute
	// maxAnHour and maxADay limit the changes of one item. What has another value
	// for each request is no change.
	maxAnHour, maxADay = 3, 10
)

// rule is how the values of a kind become changes.
type rule struct {
	// settles reports whether an item may have several values from the beginning,
	// as a service that uses two models.
	settles bool
	// returns reports whether a value that returns after outOfUse is a change, as
	// a version that is rolled back.
	returns bool
}

// value is a value of an item.
type value struct {
	Text string    `json:"text"`
	Seen time.Time `json:"seen"`
}

// values are those of one item. The zero value is ready.
type values struct {
	// known is by text, in the order of first sight.
	known []*value
	// current is the one that was seen last.
	current *value
	// first is when the item was first seen, fresh when each of the newest values
	// that were new was.
	first time.Time
	fresh [maxADay]time.Time
	next  int
}

// see notes that a value was seen. If it is a change, it returns the value before,
// and ok. It allocates only for a value that is not known.
func (v *values) see(text string, now time.Time, r rule) (from, to string, ok bool) {
	for _, one := range v.known {
		if one.Text != text {
			continue
		}
		back := r.returns && one != v.current && now.Sub(one.Seen) >= outOfUse
		was := v.current
		one.Seen, v.current = now, one
		if back && v.mayChange(now) {
			return was.Text, one.Text, true
		}
		return "", "", false
	}
	if !v.makeRoom(now) {
		return "", "", false
	}
	one, was := &value{Text: strings.Clone(text), Seen: now}, v.current
	v.known, v.current = append(v.known, one), one
	if was == nil {
		v.first = now
		return "", "", false
	}
	if r.settles && now.Sub(v.first) < settling || !v.mayChange(now) {
		return "", "", false
	}
	return was.Text, one.Text, true
}

// makeRoom reports whether there is room for one more value. As many values that
// are in use at the same time are no changes.
func (v *values) makeRoom(now time.Time) bool {
	if len(v.known) < maxValues {
		return true
	}
	oldest := 0
	for i, one := range v.known {
		if one.Seen.Before(v.known[oldest].Seen) {
			oldest = i
		}
	}
	if now.Sub(v.known[oldest].Seen) < outOfUse {
		return false
	}
	v.known = append(v.known[:oldest], v.known[oldest+1:]...)
	return true
}

// mayChange notes one more change, and reports whether there were few of them
// before it.
func (v *values) mayChange(now time.Time) bool {
	at := func(ago int) time.Time { return v.fresh[(v.next+2*maxADay-ago)%maxADay] }
	few := now.Sub(at(maxAnHour)) >= time.Hour && now.Sub(at(maxADay)) >= 24*time.Hour
	v.fresh[v.next%maxADay] = now
	v.next = (v.next + 1) % maxADay
	return few
}

// seen returns when any value was seen last.
func (v *values) seen() time.Time {
	if v.current == nil {
		return v.first
	}
	return v.current.Seen
}
