// Package label answers one question: what would Prometheus lose of a metric's
// point, and of what is added to it?
//
// Two attribute keys can become one label, some labels are reserved, and a
// point whose clock is wrong or whose text is not UTF-8 is dropped. What stands
// behind ml_enrich can repair that, as the shipped configurations do. Only here
// a point is seen as its client sent it, so it is counted here.
package label

import (
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Taken reports whether an attribute would get the same Prometheus label as
// key. The exporter drops a point that has both, so the client's own attribute
// stands alone: error_type keeps error.type away.
func Taken(attrs pcommon.Map, key string) bool {
	for have := range attrs.All() {
		if same(have, key) {
			return true
		}
	}
	return false
}

// same reports whether two attribute keys become one label. Prometheus keeps
// ASCII letters and digits, and makes one underscore of any run of others.
func same(a, b string) bool {
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		inA, inB := labelByte(a[i]), labelByte(b[j])
		if inA != inB || inA && a[i] != b[j] {
			return false
		}
		i, j = i+1, j+1
		if inA {
			continue
		}
		for i < len(a) && !labelByte(a[i]) {
			i++
		}
		for j < len(b) && !labelByte(b[j]) {
			j++
		}
	}
	return i == len(a) && j == len(b)
}

func labelByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// maxCompared is how many attributes of a point are compared with each other.
const maxCompared = 32

// Problems counts points by what is wrong with them on their way to Prometheus: the value
// of reason in a metric. A point with several problems counts once for each.
type Problems map[string]int64

// Check counts the problems of a point, before anything is added to it.
// resourceValid is what ValidText reports of its resource, and now the collector's
// time. It reports whether the point's labels conflict: such a point is to be marked
// with ml.label.conflict.
func (p Problems) Check(point *mlattr.Point, resourceValid bool, now time.Time) (conflict bool) {
	if point.NoValue {
		p["missing_value"]++
	}
	switch sent := point.At.AsTime(); {
	case point.At == 0:
		p["missing_time"]++
	case sent.Sub(now) > mlattr.ClockAhead:
		p["clock_ahead"]++
	case now.Sub(sent) > mlattr.ClockBehind:
		p["clock_behind"]++
	}
	var keys [maxCompared]string
	n, valid, collides, isReserved := 0, resourceValid, false, false
	for key, v := range point.Attributes.All() {
		valid = valid && mlattr.ValidText(v)
		isReserved = isReserved || reserved(key)
		if collides || n == len(keys) {
			continue
		}
		for _, before := range keys[:n] {
			collides = collides || mayBeSame(before, key) && same(before, key)
		}
		keys[n] = key
		n++
	}
	if !valid {
		p["invalid_utf8"]++
	}
	if collides {
		p["label_collision"]++
	}
	if isReserved {
		p["reserved_label"]++
	}
	return collides || isReserved
}

// mayBeSame compares the first and the last bytes of two keys, which tells
// nearly all different labels apart.
func mayBeSame(a, b string) bool {
	if a == "" || b == "" {
		return a == b
	}
	return sameByte(a[0], b[0]) && sameByte(a[len(a)-1], b[len(b)-1])
}

func sameByte(a, b byte) bool { return a == b || !labelByte(a) && !labelByte(b) }

// reserved reports whether Prometheus or its exporter reserves the label of an
// attribute, or makes none of it. Which of them lose the point depends on the
// metric's type and its resource.
func reserved(key string) bool {
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

// ValidText reports whether all strings among attributes are UTF-8.
func ValidText(attrs pcommon.Map) bool {
	for _, v := range attrs.All() {
		if !mlattr.ValidText(v) {
			return false
		}
	}
	return true
}
