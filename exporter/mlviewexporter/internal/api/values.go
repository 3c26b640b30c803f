package api

import (
	"encoding/hex"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// HexID returns an id as text, "" for the empty one.
func HexID(id []byte) string {
	if !slices.ContainsFunc(id, func(b byte) bool { return b != 0 }) {
		return ""
	}
	return hex.EncodeToString(id)
}

// Key returns the key of a row: a hash, so that it fits into an address and is
// the same in every collector and after a restart.
func Key(kind string, parts ...string) string {
	return mlattr.Digest(10, append([]string{kind}, parts...)...)
}

// Finite returns a pointer to a number, nil if it is not finite.
func Finite(v float64) *float64 {
	if v-v != 0 {
		return nil
	}
	return &v
}

// TimeOf returns a pointer to a time in UTC, nil for the zero time.
func TimeOf(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// Earlier returns the earlier one of two times, of which one that is nil does not count.
func Earlier(a, b *time.Time) *time.Time {
	return TimeOf(shared.Earlier(Value(a), Value(b)))
}

// Later returns the later one of two times, of which one that is nil does not count.
func Later(a, b *time.Time) *time.Time {
	return TimeOf(shared.Later(Value(a), Value(b)))
}

// TraceURL returns the address of a trace in Jaeger, "" if there is none.
func TraceURL(jaeger, trace string) string {
	if trace == "" || jaeger == "" {
		return ""
	}
	return strings.TrimSuffix(jaeger, "/") + "/trace/" + trace
}

// Exact returns the number with the digits that a float32 has.
func Exact(v float32) float64 {
	exact, _ := strconv.ParseFloat(strconv.FormatFloat(float64(v), 'g', -1, 32), 64)
	return exact
}

// Value returns what p points to, the zero value for nil.
func Value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// Clock formats the time of a day in UTC, with the day if it is not today.
func Clock(t, now time.Time) string {
	t, now = t.UTC(), now.UTC()
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04:05 UTC")
	}
	return t.Format("2006-01-02 15:04 UTC")
}

// List joins words, of many only the first ones.
func List(words []string, limit int) string {
	if more := len(words) - limit; more > 0 {
		return strings.Join(words[:limit], ", ") + " and " + strconv.Itoa(more) + " more"
	}
	return strings.Join(words, ", ")
}

// Ranges returns names, of which at least least whole numbers in a row become one, such as
// "4-7".
func Ranges(names []string, least int) (parts []string) {
	for len(names) > 0 {
		n := 1
		for first, err := strconv.Atoi(names[0]); err == nil && n < len(names) && names[n] == strconv.Itoa(first+n); {
			n++
		}
		if n >= least {
			parts = append(parts, names[0]+"-"+names[n-1])
		} else {
			parts = append(parts, names[:n]...)
		}
		names = names[n:]
	}
	return parts
}

// Counted formats a number of things.
func Counted(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + several
}

// MaxNamed limits the things of one kind that a text names.
const MaxNamed = 5

// MakeLists makes the lists of a document that are nil and that JSON must have, so that
// they are [] there and not null. The document must not be in use yet.
func MakeLists(document any) { makeLists(reflect.ValueOf(document)) }

func makeLists(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		makeLists(v.Elem())
	case reflect.Slice:
		if kind := v.Type().Elem().Kind(); kind == reflect.Struct || kind == reflect.Pointer {
			for i := range v.Len() {
				makeLists(v.Index(i))
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Field(i)
			list := field.Kind() == reflect.Slice || field.Kind() == reflect.Map
			switch {
			case !field.CanSet():
			case list && field.IsNil() && !strings.Contains(v.Type().Field(i).Tag.Get("json"), "omitempty"):
				if field.Kind() == reflect.Map {
					field.Set(reflect.MakeMap(field.Type()))
				} else {
					field.Set(reflect.MakeSlice(field.Type(), 0, 0))
				}
			default:
				makeLists(field)
			}
		}
	}
}

// TrueFirst orders rows of which something is true before others.
func TrueFirst(a, b bool) int { return shared.OneIf[int](b) - shared.OneIf[int](a) }

// Limited returns the first rows of a list, and counts the others.
func Limited[T any](others map[string]int, list string, rows []T, limit int) []T {
	if more := len(rows) - limit; more > 0 {
		others[list] += more
		return rows[:limit]
	}
	return rows
}

// Grouped returns the rows with the same key together, in the order of their first.
func Grouped[T any, K comparable](rows []T, key func(*T) K) (groups [][]*T) {
	places := make(map[K]int)
	for i := range rows {
		place := shared.Entry(places, key(&rows[i]), func() int {
			groups = append(groups, nil)
			return len(groups) - 1
		})
		groups[place] = append(groups[place], &rows[i])
	}
	return groups
}

// StateWord names the state of a run.
func StateWord(state string) string {
	if state == mlattr.RunStalled {
		return "looks hung"
	}
	return state
}
