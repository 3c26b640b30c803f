package mlattr

import (
	"encoding/base64"
	"strconv"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// maxNesting is how deeply arrays and maps may be nested for Text and Copy. It
// is the default limit of ml_guard, too.
const maxNesting = 64

// elementBytes estimates the memory of an element of an array or map, apart
// from its text.
const elementBytes = 32

// Text returns a value as pcommon.Value.AsString does, in at most limit bytes.
// A longer text is cut between characters. An array or map whose JSON is
// longer, or that is nested more than 64 levels deep, is replaced by a text
// that says so. whole reports that nothing was cut or replaced.
//
// pdata's own conversions recurse as deeply as a sender nests and overflow the
// stack. The linter forbids them outside of this file.
func Text(v pcommon.Value, limit int) (text string, whole bool) {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		text = v.Str()
	case pcommon.ValueTypeBytes:
		encoded := min(v.Bytes().Len(), base64.StdEncoding.DecodedLen(limit)+1)
		text = base64.StdEncoding.EncodeToString(v.Bytes().AsRaw()[:encoded])
	case pcommon.ValueTypeSlice, pcommon.ValueTypeMap:
		// JSON may have as little as two bytes for an element.
		if _, ok := Size(v, elementBytes*limit); !ok {
			return replacement(limit), false
		}
		if text = v.AsString(); len(text) > limit { //nolint:forbidigo // Size has bounded it
			return replacement(limit), false
		}
	default:
		text = v.AsString() //nolint:forbidigo // a number, a boolean or nothing
	}
	return CutText(text, limit), len(text) <= limit
}

// Copy copies a value as pcommon.Value.CopyTo does if it takes at most limit
// bytes and is nested at most 64 levels deep. Otherwise it writes the text that
// Text returns.
func Copy(from, to pcommon.Value, limit int) {
	if _, ok := Size(from, limit); ok {
		from.CopyTo(to)
		return
	}
	text, _ := Text(from, limit)
	to.SetStr(text)
}

func replacement(limit int) string {
	return CutText("[cut: nested deeper than "+strconv.Itoa(maxNesting)+" levels or longer than "+strconv.Itoa(limit)+" bytes]", limit)
}

// Size estimates the bytes that a value takes in memory. ok is false where it
// takes more than limit or is nested more than 64 levels deep; size is greater
// than limit then.
func Size(v pcommon.Value, limit int) (size int, ok bool) {
	left := limit
	if !spend(v, &left, 0) {
		return limit + 1, false
	}
	return limit - left, true
}

// spend subtracts the size of v, which depth arrays and maps enclose, from
// left. It reports whether v is within the limits.
func spend(v pcommon.Value, left *int, depth int) bool {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		*left -= len(v.Str())
	case pcommon.ValueTypeBytes:
		*left -= v.Bytes().Len()
	case pcommon.ValueTypeSlice:
		*left -= elementBytes * v.Slice().Len()
		if depth == maxNesting || *left < 0 {
			return false
		}
		for _, element := range v.Slice().All() {
			if !spend(element, left, depth+1) {
				return false
			}
		}
	case pcommon.ValueTypeMap:
		*left -= elementBytes * v.Map().Len()
		if depth == maxNesting || *left < 0 {
			return false
		}
		for key, element := range v.Map().All() {
			*left -= len(key)
			if !spend(element, left, depth+1) {
				return false
			}
		}
	}
	return *left >= 0
}
