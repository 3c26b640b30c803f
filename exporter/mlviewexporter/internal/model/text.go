package model

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"time"
)

// keyOf returns the key of a row: a hash, so that it fits into an address and is
// the same in every collector and after a restart.
func keyOf(kind string, parts ...string) string {
	h := sha256.New()
	for _, part := range append([]string{kind}, parts...) {
		// The length keeps "a", "bc" apart from "ab", "c".
		h.Write([]byte(strconv.Itoa(len(part)) + ":" + part))
	}
	return hex.EncodeToString(h.Sum(nil)[:10])
}

// number formats a number with three digits that matter, and a whole one without
// a fraction.
func number(v float64) string {
	switch abs := max(v, -v); {
	case abs >= 100 || v == math.Trunc(v):
		return strconv.FormatFloat(v, 'f', 0, 64)
	default:
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
}

// percent formats a fraction, below 10 % with a digit after the point.
func percent(v float64) string {
	digits := 0
	if v *= 100; v < 9.95 {
		digits = 1
	}
	return strings.TrimSuffix(strconv.FormatFloat(v, 'f', digits, 64), ".0") + " %"
}

// gib formats bytes.
func gib(v float64) string { return number(v/(1<<30)) + " GiB" }

// span formats a duration in the largest fitting unit.
func span(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return strconv.Itoa(int(d.Seconds())) + " s"
	case d < 2*time.Hour:
		return strconv.Itoa(int(d.Minutes())) + " min"
	default:
		return number(d.Hours()) + " h"
	}
}

// clock formats the time of a day in UTC, with the day if it is not today.
func clock(t, now time.Time) string {
	t, now = t.UTC(), now.UTC()
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04:05 UTC")
	}
	return t.Format("2006-01-02 15:04 UTC")
}

// list joins words, of many only the first ones.
func list(words []string, limit int) string {
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

// counted formats a number of things.
func counted(n int, one, several string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + several
}

// finite returns a pointer to a number, nil if it is not finite.
func finite(v float64) *float64 {
	if v-v != 0 {
		return nil
	}
	return &v
}

// unix returns the time of seconds since 1970, in UTC. ok is false for times that
// no clock shows.
func unix(seconds float64) (t time.Time, ok bool) {
	if !(seconds > 0 && seconds < 1e11) {
		return time.Time{}, false
	}
	whole := int64(seconds)
	return time.Unix(whole, int64((seconds-float64(whole))*1e9)).UTC(), true
}

func timePointer(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// traceURL returns the address of a trace in Jaeger, "" if there is none.
func traceURL(jaeger, trace string) string {
	if trace == "" || jaeger == "" {
		return ""
	}
	return strings.TrimSuffix(jaeger, "/") + "/trace/" + trace
}
