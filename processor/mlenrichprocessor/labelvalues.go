package mlenrichprocessor

import (
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// overflow is the attribute, always true, of a point that lacks a label because
// the label's key had too many values.
const overflow = "otel.metric.overflow"

// labelValues bounds how many values each label that is added to points has at
// a time: a value is a series more in whatever stores them. It is safe for
// concurrent use.
type labelValues struct {
	mu   sync.Mutex
	keys map[string]*bounded[string, struct{}]
}

func newLabelValues() *labelValues {
	return &labelValues{keys: make(map[string]*bounded[string, struct{}])}
}

// admit says whether a label of this key may have the value: it has had it
// within keyAge, or has fewer than limit others. The limit of a key is that of
// its first call. Keys are those of this project and of the configuration.
func (l *labelValues) admit(key, value string, limit int, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	values := l.keys[key]
	if values == nil {
		values = newBounded[string, struct{}](limit, keyAge)
		l.keys[key] = values
	}
	if values.find(value, now) != nil {
		return true
	}
	if !values.room(now) {
		return false
	}
	values.insert(strings.Clone(value), now)
	return true
}

// admission is what a batch is told about its labels.
type admission struct {
	// at is when the batch came.
	at time.Time
	// refused counts, for each key, the labels that were left off points.
	refused map[string]int64
}

// admits says whether a label may be added, and counts it where not.
func (e *enricher) admits(key, value string, a *admission) bool {
	if e.store.values.admit(key, value, e.maxValues, a.at) {
		return true
	}
	a.refused[key]++
	return false
}

// markOverflow marks a point that lacks a label.
func markOverflow(attrs pcommon.Map) {
	if !labelTaken(attrs, overflow) {
		attrs.PutBool(overflow, true)
	}
}

// overflows says whether a point lacks labels already: an ml_enrich before this
// one left them off, and each of its series should stay one.
func overflows(attrs pcommon.Map) bool {
	v, ok := attrs.Get(overflow)
	return ok && v.Type() == pcommon.ValueTypeBool && v.Bool()
}
