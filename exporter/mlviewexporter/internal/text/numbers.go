package text

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// number writes a value with about three significant digits, empty if it is nil.
func number(value *float64) string {
	if value == nil {
		return ""
	}
	switch size := math.Abs(*value); {
	case *value == 0:
		return "0"
	case size < 0.001:
		return strconv.FormatFloat(*value, 'e', 1, 64)
	case size < 0.1:
		return strconv.FormatFloat(*value, 'f', 3, 64)
	case size < 9.995:
		return strconv.FormatFloat(*value, 'f', 2, 64)
	case size < 99.95:
		return strconv.FormatFloat(*value, 'f', 1, 64)
	default:
		return Count(value)
	}
}

// Number writes a value with about three digits that matter and no zeros at the end, empty
// if it is nil.
func Number(value *float64) string {
	text := number(value)
	if strings.Contains(text, ".") && !strings.Contains(text, "e") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// Count writes a whole number in full up to 99 999 and with a unit prefix above, empty if it
// is nil.
func Count(value *float64) string {
	if value == nil {
		return ""
	}
	size := math.Abs(*value)
	if size < 99_999.5 {
		return strconv.FormatFloat(*value, 'f', 0, 64)
	}
	for _, unit := range []struct {
		size float64
		name string
	}{{1e3, "k"}, {1e6, "M"}, {1e9, "G"}, {1e12, "T"}} {
		// The rounded number must fit, or 999 999 would become 1000.0 k.
		if size/unit.size < 999.95 {
			return strconv.FormatFloat(*value/unit.size, 'f', 1, 64) + unit.name
		}
	}
	return strconv.FormatFloat(*value, 'e', 2, 64)
}

// loss writes a loss with four digits after the point, or with an exponent where
// those would all be zero or the number is long.
func loss(value *float64) string {
	if value == nil {
		return ""
	}
	if size := math.Abs(*value); size != 0 && (size < 0.001 || size >= 1e6) {
		return strconv.FormatFloat(*value, 'e', 2, 64)
	}
	return strconv.FormatFloat(*value, 'f', 4, 64)
}

// Percent writes a fraction as a percentage, empty if it is nil. Percentages below 10 get
// a digit after the point.
func Percent(fraction *float64) string {
	if fraction == nil {
		return ""
	}
	value, digits := 100**fraction, 0
	switch size := math.Abs(value); {
	case size >= 1e6:
		return strconv.FormatFloat(value, 'e', 1, 64) + " %"
	case size != 0 && size < 9.95:
		digits = 1
	}
	return strconv.FormatFloat(value, 'f', digits, 64) + " %"
}

// Change writes by how much a value differs from its usual, as a percentage, empty if one of
// them is nil.
func Change(value, usual *float64) string {
	if value == nil || usual == nil || *usual <= 0 {
		return ""
	}
	ratio := *value / *usual - 1
	if math.Abs(ratio) < 0.005 {
		return "0 %"
	}
	if math.Abs(ratio) >= 100 {
		return "×" + number(new(*value / *usual))
	}
	text := strconv.FormatFloat(100*ratio, 'f', 0, 64) + " %"
	if ratio > 0 {
		text = "+" + text
	}
	return text
}

// Seconds writes a duration in seconds in the unit that suits it, empty if it is nil.
func Seconds(value *float64) string {
	if value == nil {
		return ""
	}
	switch s := math.Abs(*value); {
	case s == 0:
		return "0 s"
	case s < 0.9995:
		return number(new(*value*1000)) + " ms"
	case s < 120:
		return number(value) + " s"
	default:
		return span(*value)
	}
}

// span writes a longer duration, given in seconds.
func span(s float64) string {
	switch {
	case s < 60:
		return strconv.FormatFloat(math.Floor(max(0, s)), 'f', 0, 64) + " s"
	case s < 3600:
		return strconv.FormatFloat(math.Floor(s/60), 'f', 0, 64) + " min"
	case s < 2*86400:
		return strconv.FormatFloat(s/3600, 'f', 1, 64) + " h"
	case s < 1000*86400:
		return strconv.FormatFloat(math.Floor(s/86400), 'f', 0, 64) + " d"
	default:
		return "years"
	}
}

// age writes the time since then, empty if then is nil or zero.
func age(now time.Time, then *time.Time) string {
	if then == nil || then.IsZero() {
		return ""
	}
	return span(now.Sub(*then).Seconds())
}

// ago writes how long ago a time was, empty if then is nil or zero.
func ago(now time.Time, then *time.Time) string { return prefixed("", age(now, then), " ago") }

// clock writes a time of the last day with seconds, an older one with its date.
func clock(now, then time.Time) string {
	if then.IsZero() {
		return ""
	}
	if difference := now.Sub(then); difference >= 24*time.Hour || difference <= -24*time.Hour {
		return then.UTC().Format("2 Jan 15:04")
	}
	return then.UTC().Format("15:04:05")
}

// between writes the least and the most of two written values with the same end.
func between(least, most string) string {
	if least == most {
		return most
	}
	if i := strings.IndexAny(most, "/ "); i >= 0 {
		least = strings.TrimSuffix(least, most[i:])
	}
	return least + "-" + most
}

// memory writes bytes as GiB, used of limit where both are known.
func memory(used, limit *float64) string {
	switch {
	case used == nil:
		return ""
	case limit == nil:
		return gib(*used) + " GiB"
	default:
		return gib(*used) + "/" + gib(*limit) + " GiB"
	}
}

// GiB writes a size in bytes as GiB, empty if it is nil.
func GiB(bytes *float64) string { return memory(bytes, nil) }

func gib(bytes float64) string {
	value := bytes / (1 << 30)
	if math.Abs(value) >= 1e6 {
		return strconv.FormatFloat(value, 'e', 1, 64)
	}
	return strconv.FormatFloat(value, 'f', 1, 64)
}

// withUnit writes a whole number and its unit, of limit where that is known.
func withUnit(value, limit *float64, unit string) string {
	if value == nil {
		return ""
	}
	text := Count(value)
	if limit != nil {
		text += "/" + Count(limit)
	}
	return text + " " + unit
}
