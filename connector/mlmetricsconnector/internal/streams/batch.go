package streams

import (
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
)

// ValueAt returns the update of a gauge or state of a source.
func ValueAt(source *Source, id series.ID, value float64, now time.Time, labels ...string) Update {
	u := Update{Source: source, Series: id, Value: value, At: now.UnixNano()}
	copy(u.Labels[:], labels)
	return u
}

// Batch collects what one emission concludes about a source. Its Source must not change
// after the first update.
type Batch struct {
	Source  Source
	Now     time.Time
	Updates []Update
}

// Value adds the value of a series.
func (b *Batch) Value(id series.ID, value float64, labels ...string) {
	b.Updates = append(b.Updates, ValueAt(&b.Source, id, value, b.Now, labels...))
}

// Time adds a time, in seconds since 1970.
func (b *Batch) Time(id series.ID, at time.Time, labels ...string) {
	b.Value(id, float64(at.UnixNano())/1e9, labels...)
}

// Choose adds 1 for the current value of a label, and 0 for another.
func (b *Batch) Choose(id series.ID, label string, is bool) {
	value := 0.0
	if is {
		value = 1
	}
	b.Value(id, value, label)
}
