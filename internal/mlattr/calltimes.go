package mlattr

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// MaxCallTime is the longest accepted duration of a call, in seconds: about a
// month. A client that sends a time of day as a duration is far above it.
const MaxCallTime = 31 * 24 * 3600

// nativeUnit is Erlang's native unit of time on Linux and macOS, in seconds.
const nativeUnit = 1e-9

// timeSuffixes are the suffixes of keys that name a unit, in seconds.
var timeSuffixes = []struct {
	suffix string
	unit   float64
}{{"_ns", 1e-9}, {"_us", 1e-6}, {"_ms", 1e-3}, {"_s", 1}, {"_native", nativeUnit}}

// CallTimeKey splits the key of a duration in an event about a call into its name
// and its unit in seconds. Without a suffix the unit is Erlang's native one.
func CallTimeKey(key string) (what string, unit float64) {
	for _, s := range timeSuffixes {
		if what, ok := strings.CutSuffix(key, s.suffix); ok {
			return what, s.unit
		}
	}
	return key, nativeUnit
}

// ReadCallTime reads a duration of an event about a call, in seconds. unit is the
// value's unit in seconds; a text may state its own, as in 45.6ms. It returns false
// for anything else and for more than MaxCallTime. A negative duration, which two
// clocks that disagree can yield, is returned as it is.
func ReadCallTime(v pcommon.Value, unit float64) (seconds float64, ok bool) {
	if StatesUnit(v) {
		unit = 1
	}
	n, ok, _ := ReadSeconds(v)
	n *= unit
	return n, ok && n <= MaxCallTime
}

// ReadWord reads a label of one word, of which Elixir may have printed the colon
// of an atom. It returns "" for anything else, and for nil.
func ReadWord(v pcommon.Value) string {
	text, ok := ReadText(v)
	text = strings.TrimPrefix(text, ":")
	if !ok || !ValidID(text) || text == "nil" {
		return ""
	}
	return text
}
