package text

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Words writes a name of the model, such as no_data, as words.
func Words(name string) string { return Printable(strings.ReplaceAll(name, "_", " ")) }

// State writes the state of a run, or what its time went to, as words.
func State(name string) string { return Words(api.StateWord(name)) }

// Kind writes a kind of problem as words.
func Kind(kind string) string {
	if known, ok := mlattr.ProblemNamed(kind); ok {
		return known.Title
	}
	return Words(kind)
}

// Headline writes what a problem is, with its measure.
func Headline(n *api.Need) string {
	kind := strings.ToUpper(Kind(n.Kind))
	switch n.Kind {
	case mlattr.ProblemSlow:
		return joined(" ", kind, Change(n.Value, n.Usual))
	case mlattr.ProblemFailing:
		return joined(" ", kind, Percent(n.Value))
	default:
		return kind
	}
}

// joined joins the texts that are known.
func joined(separator string, texts ...string) string {
	return strings.Join(mlattr.Where(slices.Values(texts), func(text string) bool { return text != "" }), separator)
}

// prefixed puts a known text between others.
func prefixed(before, text, after string) string {
	if text == "" {
		return ""
	}
	return before + text + after
}

// fixed writes a number with a number of digits after the point.
func fixed(v float64, digits int) string { return strconv.FormatFloat(v, 'f', digits, 64) }

// exponent writes a number with an exponent, with a number of digits after the point.
func exponent(v float64, digits int) string { return strconv.FormatFloat(v, 'e', digits, 64) }

// known returns a function that writes a number that is known, and nothing for nil.
func known(write func(float64) string) func(*float64) string {
	return func(value *float64) string {
		if value == nil {
			return ""
		}
		return write(*value)
	}
}

// number writes a value with about three significant digits, empty if it is nil.
var number = known(func(value float64) string {
	switch size := math.Abs(value); {
	case value == 0:
		return "0"
	case size < 0.001:
		return exponent(value, 1)
	case size < 0.1:
		return fixed(value, 3)
	case size < 9.995:
		return fixed(value, 2)
	case size < 99.95:
		return fixed(value, 1)
	default:
		return Count(&value)
	}
})

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
var Count = known(func(value float64) string {
	if math.Abs(value) < 99_999.5 {
		return fixed(value, 0)
	}
	scaled := value
	for _, prefix := range []string{"k", "M", "G", "T"} {
		// The rounded number must fit, or 999 999 would become 1000.0 k.
		if scaled /= 1000; math.Abs(scaled) < 999.95 {
			return fixed(scaled, 1) + prefix
		}
	}
	return exponent(value, 2)
})

// loss writes a loss with four digits after the point, or with an exponent where
// those would all be zero or the number is long.
var loss = known(func(value float64) string {
	if size := math.Abs(value); size != 0 && (size < 0.001 || size >= 1e6) {
		return exponent(value, 2)
	}
	return fixed(value, 4)
})

// Percent writes a fraction as a percentage, empty if it is nil. Percentages below 10 get
// a digit after the point.
var Percent = known(func(fraction float64) string {
	value := 100 * fraction
	switch size := math.Abs(value); {
	case size >= 1e6:
		return exponent(value, 1) + " %"
	case size != 0 && size < 9.95:
		return fixed(value, 1) + " %"
	default:
		return fixed(value, 0) + " %"
	}
})

// Change writes by how much a value differs from its usual, as a percentage, empty if one of
// them is nil.
func Change(value, usual *float64) string {
	if value == nil || usual == nil || *usual <= 0 {
		return ""
	}
	times := *value / *usual
	switch more := times - 1; {
	case math.Abs(more) < 0.005:
		return "0 %"
	case math.Abs(more) >= 100:
		return "×" + number(&times)
	case more > 0:
		return "+" + fixed(100*more, 0) + " %"
	default:
		return fixed(100*more, 0) + " %"
	}
}

// Seconds writes a duration in seconds in the unit that suits it, empty if it is nil.
var Seconds = known(func(value float64) string {
	switch s := math.Abs(value); {
	case s == 0:
		return "0 s"
	case s < 0.9995:
		return number(new(value*1000)) + " ms"
	case s < 120:
		return number(&value) + " s"
	default:
		return span(value)
	}
})

// span writes a longer duration, given in seconds.
func span(s float64) string {
	switch {
	case s < 60:
		return fixed(math.Floor(max(0, s)), 0) + " s"
	case s < 3600:
		return fixed(math.Floor(s/60), 0) + " min"
	case s < 2*86400:
		return fixed(s/3600, 1) + " h"
	case s < 1000*86400:
		return fixed(math.Floor(s/86400), 0) + " d"
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
	if now.Sub(then).Abs() >= 24*time.Hour {
		return then.UTC().Format("2 Jan 15:04")
	}
	return then.UTC().Format(time.TimeOnly)
}

// day writes a time with its day.
func day(at time.Time) string { return at.UTC().Format("2 Jan 15:04:05 UTC") }

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

// GiB writes a size in bytes as GiB, empty if it is nil.
var GiB = limited(nil, "GiB", gib)

var gib = known(func(bytes float64) string {
	value := bytes / (1 << 30)
	if math.Abs(value) >= 1e6 {
		return exponent(value, 1)
	}
	return fixed(value, 1)
})

// limited returns a function that writes a number as write does, with the limit if that is
// known, and the unit.
func limited(limit *float64, unit string, write func(*float64) string) func(*float64) string {
	return known(func(value float64) string {
		return joined("/", write(&value), write(limit)) + " " + unit
	})
}
