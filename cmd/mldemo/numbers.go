package main

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// missing stands for a value that is not known.
const missing = "–"

// orMissing returns a dash for an empty text.
func orMissing(text string) string {
	if text == "" {
		return missing
	}
	return printable(text)
}

// rateText writes a rate with about three significant digits.
func rateText(r reading) string {
	switch {
	case !r.known:
		return missing
	case r.value == 0:
		return "0"
	case math.Abs(r.value) < 10:
		return strconv.FormatFloat(r.value, 'f', 2, 64)
	case math.Abs(r.value) < 100:
		return strconv.FormatFloat(r.value, 'f', 1, 64)
	default:
		return countText(r)
	}
}

// countText writes a count in full up to 99 999 and with a unit prefix above.
func countText(r reading) string {
	if !r.known {
		return missing
	}
	value := math.Abs(r.value)
	if value < 99_999.5 {
		return strconv.FormatFloat(r.value, 'f', 0, 64)
	}
	for _, unit := range []struct {
		size float64
		name string
	}{{1e3, "k"}, {1e6, "M"}, {1e9, "G"}, {1e12, "T"}} {
		// The rounded number must fit, or 999 999 would become 1000.0 k.
		if value/unit.size < 999.95 {
			return strconv.FormatFloat(r.value/unit.size, 'f', 1, 64) + unit.name
		}
	}
	return strconv.FormatFloat(r.value, 'e', 2, 64)
}

// lossText writes a loss with four digits after the point, or with an
// exponent where those would all be zero or the number is long.
func lossText(r reading) string {
	switch value := math.Abs(r.value); {
	case !r.known:
		return missing
	case value != 0 && (value < 0.001 || value >= 1e6):
		return strconv.FormatFloat(r.value, 'e', 2, 64)
	default:
		return strconv.FormatFloat(r.value, 'f', 4, 64)
	}
}

// ageText writes an age in seconds in its largest unit or two.
func ageText(r reading) string {
	if !r.known {
		return missing
	}
	if r.value > 1000*24*3600 {
		return "long ago"
	}
	age := time.Duration(r.value * float64(time.Second))
	switch {
	case age < time.Minute:
		return fmt.Sprintf("%ds ago", int(age.Seconds()))
	case age < time.Hour:
		return fmt.Sprintf("%dm%02ds ago", int(age.Minutes()), int(age.Seconds())%60)
	case age < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm ago", int(age.Hours()), int(age.Minutes())%60)
	default:
		return fmt.Sprintf("%dd ago", int(age.Hours()/24))
	}
}

// shareText writes a share of 1 as a percentage.
func shareText(r reading) string {
	if !r.known {
		return missing
	}
	return numberWithUnit(known(100*r.value), "%")
}

// memoryText writes bytes in GiB.
func memoryText(r reading) string {
	if !r.known {
		return missing
	}
	gib := r.value / (1 << 30)
	if math.Abs(gib) >= 1e6 {
		return strconv.FormatFloat(gib, 'e', 2, 64)
	}
	return strconv.FormatFloat(gib, 'f', 1, 64)
}

// numberWithUnit writes a whole number and its unit; numbers beyond anything
// that a GPU reports get an exponent and so cannot break the layout.
func numberWithUnit(r reading, unit string) string {
	if !r.known {
		return missing
	}
	if math.Abs(r.value) >= 1e6 {
		return strconv.FormatFloat(r.value, 'e', 2, 64) + unit
	}
	return strconv.FormatFloat(r.value, 'f', 0, 64) + unit
}
