package mlenrichprocessor

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Some of what clients send does not survive the way to Prometheus: a point of a
// clock that is set is older than what is shown, text that is not UTF-8, two
// attributes of one label and names that it keeps for itself cost the series. What
// comes behind ml_enrich may mend that, as the shipped configurations do. Here it
// is counted: only here is it seen as it came.

// A point is off the collector's clock where it is further ahead or behind than
// this. Points wait in the queues of clients and collectors, hence the
// difference. The shipped configurations have the same numbers.
const (
	clockAhead  = time.Minute
	clockBehind = 10 * time.Minute
)

// maxLabelsCompared is how many attributes of a point are compared with each
// other.
const maxLabelsCompared = 32

// unsafety says what is wrong with a point on its way to Prometheus.
type unsafety string

const (
	unsafeAhead     unsafety = "clock_ahead"
	unsafeBehind    unsafety = "clock_behind"
	unsafeNoTime    unsafety = "missing_time"
	unsafeText      unsafety = "invalid_utf8"
	unsafeCollision unsafety = "label_collision"
	unsafeReserved  unsafety = "reserved_label"
)

// unsafePoints counts the points of a batch by what is wrong with them. One that
// has several things wrong counts for each.
type unsafePoints map[unsafety]int64

// look counts what is wrong with a point, before anything is added to it, given
// whether the text of its resource is valid and when it came. It says whether its
// labels are in conflict: such a point is marked, for what stands behind.
func (u unsafePoints) look(attrs pcommon.Map, at pcommon.Timestamp, resourceValid bool, now time.Time) (conflict bool) {
	switch sent := at.AsTime(); {
	case at == 0:
		u[unsafeNoTime]++
	case sent.Sub(now) > clockAhead:
		u[unsafeAhead]++
	case now.Sub(sent) > clockBehind:
		u[unsafeBehind]++
	}
	var keys [maxLabelsCompared]string
	n, valid, collides, reserved := 0, resourceValid, false, false
	for key, v := range attrs.All() {
		valid = valid && validText(v)
		reserved = reserved || reservedLabel(key)
		if collides || n == len(keys) {
			continue
		}
		for _, before := range keys[:n] {
			collides = collides || mayBeSame(before, key) && sameLabel(before, key)
		}
		keys[n] = key
		n++
	}
	if !valid {
		u[unsafeText]++
	}
	if collides {
		u[unsafeCollision]++
	}
	if reserved {
		u[unsafeReserved]++
	}
	return collides || reserved
}

// mayBeSame says whether two keys begin and end like one label. Nearly all that are
// not one do not.
func mayBeSame(a, b string) bool {
	if a == "" || b == "" {
		return a == b
	}
	return sameByte(a[0], b[0]) && sameByte(a[len(a)-1], b[len(b)-1])
}

func sameByte(a, b byte) bool { return a == b || !labelByte(a) && !labelByte(b) }

// markConflict marks a point whose labels are in conflict.
func markConflict(attrs pcommon.Map) {
	if !labelTaken(attrs, mlattr.LabelConflict) {
		attrs.PutBool(mlattr.LabelConflict, true)
	}
}

// reservedLabel says whether Prometheus or its exporter keep the label of an
// attribute for themselves, or have none for it. Which of them cost the series
// depends on the metric's type and its resource.
func reservedLabel(key string) bool {
	switch key {
	case "job", "instance", "le", "quantile":
		return true
	}
	if strings.HasPrefix(key, "__") {
		return true
	}
	for i := range len(key) {
		if labelByte(key[i]) {
			return false
		}
	}
	return true
}

// validTexts says whether all texts among attributes are UTF-8.
func validTexts(attrs pcommon.Map) bool {
	for _, v := range attrs.All() {
		if !validText(v) {
			return false
		}
	}
	return true
}

func validText(v pcommon.Value) bool {
	return v.Type() != pcommon.ValueTypeStr || utf8.ValidString(v.Str())
}

// countUnsafe reports the points of a batch that do not survive as they came.
func (e *enricher) countUnsafe(ctx context.Context, points unsafePoints) {
	for what, n := range points {
		e.telemetry.ProcessorMlEnrichPointsUnsafe.Add(ctx, n, metric.WithAttributes(
			attribute.String("processor", e.set.ID.String()), attribute.String("reason", string(what))))
	}
}
