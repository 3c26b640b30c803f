package intake

import (
	"fmt"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/content"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Limits of what an opened span shows.
const (
	maxShownEvents = 32
	// maxDetails are the bytes of attributes and events, maxValue those of a value, maxStack
	// those of a stack trace, and maxLine those of its lines without content.
	maxDetails = 16 << 10
	maxValue   = 1 << 10
	maxStack   = 8 << 10
	maxLine    = 200
)

// listedKeys say which text is no content.
var listedKeys = content.NewKeys(nil, nil)

// readDetails reads what an opened span shows.
func (r *spanReader) readDetails(span ptrace.Span) []byte {
	start := len(r.details)
	r.readAttributes(span.Attributes(), start)
	events := span.Events()
	for i := max(0, events.Len()-maxShownEvents); i < events.Len() && len(r.details)-start < maxDetails; i++ {
		event := events.At(i)
		r.details = r.details.Event(mlattr.CutText(event.Name(), maxLine), instant(event.Timestamp())-instant(span.StartTimestamp()))
		r.readAttributes(event.Attributes(), start)
	}
	return r.details[start:len(r.details):len(r.details)]
}

func (r *spanReader) readAttributes(attrs pcommon.Map, start int) {
	for key, v := range attrs.All() {
		if len(r.details)-start+len(key) < maxDetails && key != "" {
			r.value = r.appendShown(r.value[:0], key, v)
			r.details = r.details.Attribute(key, r.value)
		}
	}
}

// appendShown appends a value as an opened span shows it. Without content of the settings,
// only the size is held of text that is no word, name, id or path as its key says.
func (r *spanReader) appendShown(b []byte, key string, v pcommon.Value) []byte {
	form, whole := listedKeys.Form(key), r.store.Content
	withheld := !whole && (form == content.Removed || form == content.Unlisted && content.IsPrivate(key))
	switch v.Type() {
	case pcommon.ValueTypeStr:
		switch text := strings.ToValidUTF8(v.Str(), "\uFFFD"); {
		case key == "exception.stacktrace":
			for line := range strings.Lines(mlattr.CutText(text, maxStack)) {
				b = append(append(b, mlattr.CutText(strings.TrimSuffix(line, "\n"), r.most())...), '\n')
			}
			return b
		case whole || key == "exception.message" || key == mlattr.ErrorMessage:
			return append(b, mlattr.CutText(text, r.most())...)
		case !withheld && (form > content.Removed && form.Fits(text) || content.KeepsUnlisted(key, text)):
			return append(b, text...)
		}
		return fmt.Appendf(b, "[%d bytes]", len(v.Str()))
	case pcommon.ValueTypeSlice:
		for i := range min(v.Slice().Len(), 8) {
			if item := v.Slice().At(i); item.Type() != pcommon.ValueTypeSlice {
				b = append(r.appendShown(b, key, item), ' ')
			}
		}
		return b[:min(len(b), maxValue)]
	case pcommon.ValueTypeInt, pcommon.ValueTypeDouble, pcommon.ValueTypeBool:
		switch {
		case withheld:
		case v.Type() == pcommon.ValueTypeInt:
			return strconv.AppendInt(b, v.Int(), 10)
		case v.Type() == pcommon.ValueTypeDouble:
			return strconv.AppendFloat(b, v.Double(), 'g', -1, 64)
		default:
			return strconv.AppendBool(b, v.Bool())
		}
	}
	return append(append(append(b, '['), v.Type().String()...), ']')
}

// most is how many bytes of a text are held.
func (r *spanReader) most() int {
	if r.store.Content {
		return maxValue
	}
	return maxLine
}
