package mlattr

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

const (
	// MaxID is the length of the longest identifier, in bytes.
	MaxID = 128
	// MaxText is the length at which a label is cut, in bytes.
	MaxText = 128
	// MaxCount is the largest accepted number of tokens or samples of one span. It
	// is far above real ones and keeps sums from overflowing.
	MaxCount = 1 << 53
	// maxNumber is the length of the longest text that is read as a number, in
	// bytes.
	maxNumber = 40
	// maxExact is the largest integer below which every integer is a double.
	maxExact = 1 << 53
	// maxDevice is above every GPU index of a host.
	maxDevice = 4096
)

// ReadPID reads a process id, 0 of a value that is none.
func ReadPID(v pcommon.Value) int64 {
	if pid, ok := ReadInt(v); ok && pid > 0 && pid <= math.MaxInt32 {
		return pid
	}
	return 0
}

// ReadInt reads a whole number from an integer, a double without a fraction or
// decimal text. It returns false for anything else, and for doubles beyond
// 2^53, which are not exact.
func ReadInt(v pcommon.Value) (int64, bool) {
	switch v.Type() {
	case pcommon.ValueTypeInt:
		return v.Int(), true
	case pcommon.ValueTypeDouble:
		return wholeDouble(v.Double())
	case pcommon.ValueTypeStr:
		return parseInt(v.Str())
	default:
		return 0, false
	}
}

func wholeDouble(d float64) (int64, bool) {
	if d != math.Trunc(d) || math.Abs(d) > maxExact {
		return 0, false
	}
	return int64(d), true
}

func parseInt(text string) (int64, bool) {
	if text == "" || len(text) > maxNumber {
		return 0, false
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, true
	}
	d, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, false
	}
	return wholeDouble(d)
}

// ReadDouble reads a finite number from a double, an integer or text. ok is
// false for anything else. nonFinite reports that the value is NaN or infinite.
func ReadDouble(v pcommon.Value) (value float64, ok, nonFinite bool) {
	switch v.Type() {
	case pcommon.ValueTypeDouble:
		value = v.Double()
	case pcommon.ValueTypeInt:
		return float64(v.Int()), true, false
	case pcommon.ValueTypeStr:
		text := v.Str()
		if text == "" || len(text) > maxNumber {
			return 0, false, false
		}
		var err error
		if value, err = strconv.ParseFloat(text, 64); err != nil && !math.IsInf(value, 0) {
			return 0, false, false
		}
	default:
		return 0, false, false
	}
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return 0, false, true
	}
	return value, true, false
}

// ReadSeconds reads a time in seconds from a number, or from text with a unit
// as Rust and Go print durations, such as "1.23s", "45.6ms", "789µs" or "12ns".
// It returns what ReadDouble returns.
func ReadSeconds(v pcommon.Value) (value float64, ok, nonFinite bool) {
	if !StatesUnit(v) {
		return ReadDouble(v)
	}
	text := v.Str()
	if len(text) > maxNumber {
		return 0, false, false
	}
	d, err := time.ParseDuration(text)
	return d.Seconds(), err == nil, false
}

// StatesUnit reports whether a value is text that ends in the unit of a duration.
func StatesUnit(v pcommon.Value) bool {
	return v.Type() == pcommon.ValueTypeStr && strings.HasSuffix(v.Str(), "s")
}

// ReadInstant reads a point in time, in nanoseconds since 1970, from RFC 3339
// text, with or without the quotes of JSON. It returns false for anything else,
// and for years before 1970 and after 2200.
func ReadInstant(v pcommon.Value) (int64, bool) {
	if v.Type() != pcommon.ValueTypeStr || len(v.Str()) > maxNumber {
		return 0, false
	}
	at, err := time.Parse(time.RFC3339Nano, strings.Trim(v.Str(), `"`))
	// Nanoseconds of other years do not fit.
	if err != nil || at.Year() < 1970 || at.Year() > 2200 {
		return 0, false
	}
	return at.UnixNano(), true
}

// ReadID reads an identifier from text or an integer. It returns false for text
// that is empty, longer than MaxID bytes, not UTF-8, or that has white space or
// control characters.
func ReadID(v pcommon.Value) (string, bool) {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		id := v.Str()
		return id, ValidID(id)
	case pcommon.ValueTypeInt:
		return strconv.FormatInt(v.Int(), 10), true
	default:
		return "", false
	}
}

// IDAt returns the identifier of an attribute, or "".
func IDAt(attrs pcommon.Map, key string) string {
	if v, ok := attrs.Get(key); ok {
		if id, ok := ReadID(v); ok {
			return id
		}
	}
	return ""
}

// TextAt returns the text of an attribute, as ReadText does, or "".
func TextAt(attrs pcommon.Map, key string) (text string) {
	if v, ok := attrs.Get(key); ok {
		text, _ = ReadText(v)
	}
	return text
}

// PutText sets an attribute to a text, unless that is empty.
func PutText(attrs pcommon.Map, key, text string) {
	if text != "" {
		attrs.PutStr(key, text)
	}
}

// FirstText returns the first of the attributes that is a text and not empty, or "".
func FirstText(attrs pcommon.Map, keys ...string) string {
	for _, key := range keys {
		if v, ok := attrs.Get(key); ok && v.Type() == pcommon.ValueTypeStr && v.Str() != "" {
			return v.Str()
		}
	}
	return ""
}

// ValidID reports whether text is an identifier; see ReadID.
func ValidID(id string) bool {
	if id == "" || len(id) > MaxID {
		return false
	}
	for i := range len(id) {
		if c := id[i]; c >= utf8.RuneSelf {
			return validRest(id[i:])
		} else if c <= ' ' || c == 0x7f {
			return false
		}
	}
	return true
}

// validRest is ValidID for text with characters beyond ASCII.
func validRest(id string) bool {
	if !utf8.ValidString(id) {
		return false
	}
	for _, r := range id {
		if unicode.IsSpace(r) || unicode.IsControl(r) {
			return false
		}
	}
	return true
}

// ReadText reads a label from text, an integer or a boolean. It cuts the label
// to MaxText bytes between characters. It returns false for empty text and text
// that is not UTF-8.
func ReadText(v pcommon.Value) (string, bool) {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		text := v.Str()
		if text == "" || !utf8.ValidString(text) {
			return "", false
		}
		return CutText(text, MaxText), true
	case pcommon.ValueTypeInt:
		return strconv.FormatInt(v.Int(), 10), true
	case pcommon.ValueTypeBool:
		return strconv.FormatBool(v.Bool()), true
	default:
		return "", false
	}
}

// ValidText reports whether a value is UTF-8 if it is a text.
func ValidText(v pcommon.Value) bool {
	return v.Type() != pcommon.ValueTypeStr || utf8.ValidString(v.Str())
}

// CutText shortens valid UTF-8 to at most limit bytes between characters.
func CutText(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

// ReadDevice reads a GPU index from 0, "0", "cuda:0" or Elixir's
// "{:cuda, 0}". A bare "cuda" or "cpu" names no GPU.
func ReadDevice(v pcommon.Value) (int64, bool) {
	if v.Type() != pcommon.ValueTypeStr {
		n, ok := ReadInt(v)
		return n, ok && n >= 0 && n < maxDevice
	}
	text := v.Str()
	if inner, ok := strings.CutPrefix(text, "{:cuda,"); ok {
		text = strings.TrimSpace(strings.TrimSuffix(inner, "}"))
	} else {
		text = strings.TrimPrefix(text, "cuda:")
	}
	n, ok := ReadDigits(text)
	return n, ok && n < maxDevice
}

// IsDevice reports whether text names a kind of device without an index, as
// Python or Elixir writes it.
func IsDevice(text string) bool {
	switch strings.TrimPrefix(text, ":") {
	case "cpu", "cuda", "mps":
		return true
	default:
		return false
	}
}

// ReadDigits reads text of one to eighteen decimal digits.
func ReadDigits(text string) (int64, bool) {
	if text == "" || len(text) > 18 || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

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

// Sentinel reports whether an identifier is empty or one of those that launchers
// write where they have none: 0, -1, none, null, local, unknown or a dash, in
// any case.
func Sentinel(id string) bool {
	return len(id) <= len("unknown") &&
		slices.ContainsFunc(sentinels[:], func(none string) bool { return strings.EqualFold(id, none) })
}

var sentinels = [...]string{"", "0", "-", "-1", "none", "null", "local", "unknown"}
