package vocabulary

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// maxTexts bounds how many elements of a list of labels are read. A request has
// one finish reason for each of its answers.
const maxTexts = 16

// readTexts reads KindTexts. The list may be text, as JSON.
func readTexts(v pcommon.Value) (text string, ok bool) {
	if v.Type() != pcommon.ValueTypeSlice {
		if text, ok = mlattr.ReadText(v); ok && text[0] == '[' {
			return firstReason(text)
		}
		return text, ok
	}
	list := v.Slice()
	for i := range min(list.Len(), maxTexts) {
		element, readable := mlattr.ReadText(list.At(i))
		if readable && (!ok || mlattr.CutByLength(element)) {
			text, ok = element, true
			if mlattr.CutByLength(element) {
				break
			}
		}
	}
	return text, ok
}

// firstReason returns the element of a list in JSON that readTexts chooses.
// Elements with escaped characters are no reasons.
func firstReason(list string) (text string, ok bool) {
	inside := false
	for element := range strings.SplitSeq(list, `"`) {
		if inside && element != "" && (!ok || mlattr.CutByLength(element)) {
			text, ok = element, true
			if mlattr.CutByLength(element) {
				break
			}
		}
		inside = !inside
	}
	return text, ok
}
