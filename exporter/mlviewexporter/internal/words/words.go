// Package words has the phrases and numbers that rows consist of.
package words

import (
	"strconv"
	"strings"
	"time"
)

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
	var parts []string
	for _, text := range texts[:min(len(texts), MaxNamed)] {
		parts = append(parts, write(text))
	}
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
