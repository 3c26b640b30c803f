package identity

import (
	"crypto/sha256"
	"encoding/hex"
	"hash/maphash"
	"math"
	"math/bits"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

const (
	// maxLabelBytes is the length of the longest label value. A longer one is cut to
	// mlattr.MaxText, at which ml_metrics cuts, and ends with a hash of the whole, so
	// that two long values stay two labels.
	maxLabelBytes = 256
	// maxTextBytes limits the text of a value that is hashed. Beyond it, arrays and maps
	// are one label.
	maxTextBytes = 1 << 20
	// hashBytes are those of the hash, each of which is two digits.
	hashBytes = 8
	// maxResourceBytes limits the attributes of a resource, which become the labels
	// of target_info.
	maxResourceBytes = 8192
	// maxDescriptionBytes limits the description of a metric.
	maxDescriptionBytes = 1024

	// lineBytes is what a line of a scrape has besides names, labels and values, and
	// labelBytes what a label has.
	lineBytes  = 64
	labelBytes = 4
	// linesOfCombination is how many lines the series of a span's labels have:
	// counters and histograms of ml_metrics.
	linesOfCombination = 40
)

// fits reports whether a value is a label as it is: at most maxLabelBytes of UTF-8.
func fits(v pcommon.Value) bool {
	switch v.Type() {
	case pcommon.ValueTypeStr, pcommon.ValueTypeBytes, pcommon.ValueTypeSlice, pcommon.ValueTypeMap:
		text, whole := mlattr.Text(v, maxLabelBytes)
		return whole && utf8.ValidString(text)
	default:
		return true
	}
}

// fit makes a label of a value that does not fit. Bytes that are not UTF-8 become
// U+FFFD, because a series with them is missing in Prometheus.
func fit(v pcommon.Value) {
	whole, _ := mlattr.Text(v, maxTextBytes)
	v.SetStr(strings.ToValidUTF8(whole, "\uFFFD"))
	if len(v.Str()) <= maxLabelBytes {
		return
	}
	hash := sha256.Sum256([]byte(whole))
	head, _ := mlattr.Text(v, mlattr.MaxText-2*hashBytes-1)
	v.SetStr(head + "~" + hex.EncodeToString(hash[:hashBytes]))
}

// fitAll makes labels of all values that do not fit, and reports whether there were any.
func fitAll(attrs pcommon.Map) (changed bool) {
	for _, v := range attrs.All() {
		if !fits(v) {
			fit(v)
			changed = true
		}
	}
	return changed
}

// fitsResource reports whether the attributes of a resource can stay as they are: texts
// are UTF-8, those that become labels of each series fit, and all together are within
// maxResourceBytes.
func fitsResource(attrs pcommon.Map) bool {
	left := maxResourceBytes
	for key, v := range attrs.All() {
		if !mlattr.ValidText(v) || identifies(key) && !fits(v) {
			return false
		}
		size, _ := mlattr.Size(v, maxResourceBytes)
		if left -= len(key) + size; left < 0 {
			return false
		}
	}
	return true
}

// fitResource changes attributes that cannot stay as they are. If all are too many
// bytes, long ones are cut, and of others than labels only the first stay.
func fitResource(attrs pcommon.Map) {
	fitAll(attrs)
	left := maxResourceBytes
	attrs.RemoveIf(func(key string, v pcommon.Value) bool {
		left -= len(key) + textBytes(v)
		return left < 0 && !identifies(key)
	})
}

// identifies reports whether an attribute of a resource becomes a label of each series.
func identifies(key string) bool {
	switch key {
	case mlattr.ServiceNamespace, mlattr.ServiceName, mlattr.ServiceInstanceID, mlattr.HostName:
		return true
	}
	_, known := kindsOfKeys[key]
	return known || isSpanLabel(key)
}

// lineOf returns the bytes of the labels of a series.
func lineOf(attrs pcommon.Map, label func(key string) bool) (bytes int) {
	for key, v := range attrs.All() {
		if label == nil || label(key) {
			bytes += len(key) + textBytes(v) + labelBytes
		}
	}
	return bytes
}

// isProgram reports whether a resource's attribute is a label of each of its series.
func isProgram(key string) bool {
	return key == mlattr.ServiceNamespace || key == mlattr.ServiceName || key == mlattr.ServiceInstanceID
}

// sizeOf returns a number of bytes, at most the largest that a request has.
func sizeOf(bytes int) uint32 { return uint32(min(bytes, math.MaxUint32)) }

// textBytes returns the length of a value that fits.
func textBytes(v pcommon.Value) int {
	text, _ := mlattr.Text(v, maxLabelBytes)
	return len(text)
}

// hasher hashes with a random seed, so that clients cannot craft collisions.
type hasher struct{ seed maphash.Seed }

func (h hasher) text(s string) uint64 { return maphash.String(h.seed, s) }

// value hashes a value of any type, an array or a map as the text that is its label.
func (h hasher) value(v pcommon.Value) uint64 {
	sum := uint64(v.Type()) // differs from that of a text
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return h.text(v.Str())
	case pcommon.ValueTypeInt:
		return mix(sum, maphash.Comparable(h.seed, v.Int()))
	case pcommon.ValueTypeDouble:
		return mix(sum, maphash.Comparable(h.seed, math.Float64bits(v.Double())))
	case pcommon.ValueTypeBool:
		return mix(sum, maphash.Comparable(h.seed, v.Bool()))
	case pcommon.ValueTypeBytes:
		return mix(sum, maphash.Bytes(h.seed, v.Bytes().AsRaw()))
	case pcommon.ValueTypeSlice, pcommon.ValueTypeMap:
		text, _ := mlattr.Text(v, maxTextBytes)
		return mix(sum, h.text(text))
	}
	return sum
}

// mix combines two hashes; their order matters.
func mix(a, b uint64) uint64 {
	high, low := bits.Mul64(a^0xa0761d6478bd642f, b^0xe7037ed1a0b428db)
	return high ^ low
}
