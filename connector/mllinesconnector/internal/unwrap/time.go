package unwrap

import (
	"math"
	"regexp"
	"strconv"
	"time"
)

// within is the part of a line that its time is in.
const within = 80

// stated is a date, of which the year may be missing, and a time of day.
var stated = regexp.MustCompile(`(?:(\d{4})[-/](\d\d)[-/](\d\d)[T ]|\b(\d\d)/(\d\d) |\b[IWEF](\d\d)(\d\d) )(\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?`)

// Stated returns the time that a line states near its beginning, in a local time zone:
// 2025-04-13 23:41:12,123, 07/01 12:00:00, or glog's I0706 16:50:26.230209. A time without
// a year is the one that is nearest to another time. exact is the difference of two such
// times: a second, or less with a fraction. ok is false without one.
func Stated(line string, near time.Time) (at time.Time, exact time.Duration, ok bool) {
	m := stated.FindStringSubmatch(line[:min(len(line), within)])
	if m == nil {
		return at, 0, false
	}
	number := func(texts ...string) (n int) {
		for _, text := range texts {
			if text != "" {
				n, _ = strconv.Atoi(text) // digits, by the expression
			}
		}
		return n
	}
	year, month, day := number(m[1]), number(m[2], m[4], m[6]), number(m[3], m[5], m[7])
	hour, minute, second := number(m[8]), number(m[9]), number(m[10])
	if m[1] == "" {
		if year = near.Year(); near.Month() == time.January && month == 12 {
			year-- // of the year before
		}
	}
	if year < 2000 || year > 2200 || month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59 || second > 60 {
		return at, 0, false
	}
	unit := int(math.Pow10(9 - len(m[11])))
	return time.Date(year, time.Month(month), day, hour, minute, second, number(m[11])*unit, time.Local), time.Duration(unit), true
}
