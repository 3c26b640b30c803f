// Package words has the phrases and numbers that rows consist of.
package words

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Number formats a number with three digits that matter, and a whole one without
// a fraction.
func Number(v float64) string {
	switch abs := max(v, -v); {
	case abs >= 100 || v == math.Trunc(v):
		return strconv.FormatFloat(v, 'f', 0, 64)
	default:
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
}

// Percent formats a fraction, below 10 % with a digit after the point.
func Percent(v float64) string {
	digits := 0
	if v *= 100; v < 9.95 {
		digits = 1
	}
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', digits, 64), ".0") + " %"
}

// GiB formats bytes.
func GiB(v float64) string { return Number(v/(1<<30)) + " GiB" }

// Span formats a duration in the largest fitting unit.
func Span(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return strconv.Itoa(int(d.Seconds())) + " s"
	case d < 2*time.Hour:
		return strconv.Itoa(int(d.Minutes())) + " min"
	default:
		return Number(d.Hours()) + " h"
	}
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
