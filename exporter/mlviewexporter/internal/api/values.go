package api

import (
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
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
	if a == nil || b != nil && b.Before(*a) {
		return b
	}
	return a
}

// Later returns the later one of two times, of which one that is nil does not count.
func Later(a, b *time.Time) *time.Time {
	if a == nil || b != nil && b.After(*a) {
		return b
	}
	return a
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

// Each joins what write makes of the first texts, with an ellipsis for others.
func Each(texts []string, write func(string) string) string {
	parts := mlattr.Mapped(texts[:min(len(texts), MaxNamed)], write)
	if len(texts) > MaxNamed {
		parts = append(parts, "…")
	}
	return strings.Join(parts, ", ")
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
