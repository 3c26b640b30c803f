package unwrap

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// Stamp is the time that a program states in a line, by its own clock.
type Stamp struct {
	Time time.Time
	// Exact is the difference of two such times: a second, or less with a fraction.
	Exact time.Duration
}

// within is how far from the beginning of a line its time may begin.
const within = 48

// Stated returns the time that a line states near its beginning, in a local time zone:
// 2025-04-13 23:41:12,123, 07/01 12:00:00, or glog's I0706 16:50:26.230209. A time without
// a year is the one that is nearest to another time. ok is false without one.
func Stated(line string, near time.Time) (s Stamp, ok bool) {
	head := line[:min(len(line), within+32)]
	for from := 0; ; {
		at := strings.IndexByte(head[from:], ':')
		if at < 0 || from+at > within {
			return s, false
		}
		at += from
		if s, ok = clockAt(head, at, near); ok {
			return s, true
		}
		from = at + 1
	}
}

// clockAt reads a time whose hours end at an index.
func clockAt(head string, at int, near time.Time) (s Stamp, ok bool) {
	if at < 8 || at+6 > len(head) || head[at+3] != ':' {
		return s, false
	}
	hour, ok1 := digits(head[at-2 : at])
	minute, ok2 := digits(head[at+1 : at+3])
	second, ok3 := digits(head[at+4 : at+6])
	if sep := head[at-3]; !ok1 || !ok2 || !ok3 || hour > 23 || minute > 59 || second > 60 || sep != ' ' && sep != 'T' {
		return s, false
	}
	year, month, day, ok := dateBefore(head[:at-3], near)
	if !ok {
		return s, false
	}
	nanos, exact := 0, time.Second
	if rest := head[at+6:]; len(rest) > 1 && (rest[0] == '.' || rest[0] == ',') {
		end := 1
		for end < len(rest) && end < 10 && rest[end] >= '0' && rest[end] <= '9' {
			end++
		}
		if n, ok := digits(rest[1:end]); ok {
			unit := int(math.Pow10(9 - (end - 1)))
			nanos, exact = n*unit, time.Duration(unit)
		}
	}
	return Stamp{time.Date(year, month, day, hour, minute, second, nanos, time.Local), exact}, true
}

// dateBefore reads a date that a text ends with.
func dateBefore(text string, near time.Time) (year int, month time.Month, day int, ok bool) {
	n := len(text)
	part := func(from, to int) (number int) {
		if from < 0 || !ok {
			ok = false
			return 0
		}
		number, ok = digits(text[from:to])
		return number
	}
	ok = true
	var m int
	switch {
	case n >= 10 && (text[n-3] == '-' || text[n-3] == '/') && text[n-6] == text[n-3]:
		year, m, day = part(n-10, n-6), part(n-5, n-3), part(n-2, n)
	case n >= 5 && text[n-3] == '/':
		m, day = part(n-5, n-3), part(n-2, n)
		year = near.Year()
	case n >= 5 && strings.IndexByte("IWEF", text[n-5]) >= 0:
		m, day = part(n-4, n-2), part(n-2, n)
		year = near.Year()
	default:
		return 0, 0, 0, false
	}
	if !ok || m < 1 || m > 12 || day < 1 || day > 31 || year < 2000 || year > 2200 {
		return 0, 0, 0, false
	}
	month = time.Month(m)
	if near.Month() == time.January && month == time.December {
		year-- // of the year before
	}
	return year, month, day, true
}

func digits(text string) (number int, ok bool) {
	n, err := strconv.ParseUint(text, 10, 31)
	return int(n), err == nil // #nosec G115 -- below 2^31
}
