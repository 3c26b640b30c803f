package page

import (
	"math"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
)

// field is a field of a row with its name in JSON.
type field struct {
	index     int
	name      string
	omitEmpty bool
}

// fields are those of a type of rows that updates have: all but those of left.
type fields []field

// left are fields of runs, GPUs and collectors that change in each update and that the
// page does not show.
var left = map[string]bool{"last_seen": true, "step_rate": true}

var knownFields sync.Map // of reflect.Type to fields

// fieldsOf returns the fields of a type of rows.
func fieldsOf(row reflect.Type) fields {
	if known, ok := knownFields.Load(row); ok {
		return known.(fields)
	}
	var all fields
	for i := range row.NumField() {
		name, options, _ := strings.Cut(row.Field(i).Tag.Get("json"), ",")
		if left[name] && (row == reflect.TypeFor[api.Run]() || row == reflect.TypeFor[api.GPU]() || row == reflect.TypeFor[api.SendingCollector]()) {
			continue
		}
		all = append(all, field{index: i, name: name, omitEmpty: strings.Contains(options, "omitempty")})
	}
	knownFields.Store(row, all)
	return all
}

// diff returns the fields of next that differ from old, and nil if no row must be
// sent.
func (all fields) diff(old, next reflect.Value) map[string]any {
	var change map[string]any
	for _, f := range all {
		if same(old.Field(f.index), next.Field(f.index)) {
			continue
		}
		if change == nil {
			change = make(map[string]any)
		}
		change[f.name] = f.value(next)
	}
	return change
}

// value returns the field of a row as JSON shows it; nil if that leaves it out.
func (f field) value(row reflect.Value) any {
	v := row.Field(f.index)
	if f.omitEmpty && empty(v) {
		return nil
	}
	if v.Kind() == reflect.Pointer && v.Type().Elem().Kind() == reflect.Float64 && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() == reflect.Float64 {
		return rounded(v.Float())
	}
	return v.Interface()
}

// rounded returns a measure as updates have it: with four digits, which is one more than
// the page shows, and at least to the whole number. So a row is sent when what it shows
// changes.
func rounded(v float64) float64 {
	if size := math.Abs(v); size >= 1000 || v == math.Trunc(v) {
		return math.Round(v)
	}
	var text [32]byte
	short, err := strconv.ParseFloat(string(strconv.AppendFloat(text[:0], v, 'g', 4, 64)), 64)
	if err != nil {
		return v
	}
	return short
}

// empty reports whether JSON leaves out the value of a field with omitempty.
func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	case reflect.Struct:
		return false
	default:
		return v.IsZero()
	}
}

// same reports whether two values of a field are equal as updates have them. Most are numbers and
// texts, which it compares without an allocation.
func same(a, b reflect.Value) bool {
	switch a.Kind() {
	case reflect.Float64:
		return a.Float() == b.Float() || rounded(a.Float()) == rounded(b.Float())
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int64:
		return a.Equal(b)
	case reflect.Pointer:
		if a.IsNil() || b.IsNil() || a.Pointer() == b.Pointer() {
			return a.Pointer() == b.Pointer()
		}
		return same(a.Elem(), b.Elem())
	case reflect.Slice, reflect.Map:
		if a.Len() != b.Len() || a.Len() == 0 {
			return a.Len() == b.Len()
		}
		return a.UnsafePointer() == b.UnsafePointer() || reflect.DeepEqual(a.Interface(), b.Interface())
	}
	if t, ok := reflect.TypeAssert[time.Time](a); ok {
		other, _ := reflect.TypeAssert[time.Time](b)
		return t.Equal(other)
	}
	return reflect.DeepEqual(a.Interface(), b.Interface())
}
