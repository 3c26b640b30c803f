package vocabulary

import (
	"encoding/json"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// maxFields bounds the size of a map whose fields are read.
const maxFields = 64

// collectFields reads a value that is a map, or the JSON of one. Its fields
// become facts in settle.
func collectFields(value pcommon.Value, fields []fieldRule, f *Facts) {
	entries := pcommon.NewMap()
	switch value.Type() {
	case pcommon.ValueTypeMap:
		entries = value.Map()
	case pcommon.ValueTypeStr:
		var members map[string]any
		text := value.Str()
		if len(text) > mlattr.MaxJSON || json.Unmarshal([]byte(text), &members) != nil {
			f.Rejected++
			return
		}
		if entries.FromRaw(members) != nil { //nolint:forbidigo // MaxJSON bounds its nesting
			f.Rejected++
			return
		}
	default:
		f.Rejected++
		return
	}
	if entries.Len() > maxFields {
		f.Rejected++
		return
	}
	for i := range fields {
		field := &fields[i]
		if found, ok := fieldOf(entries, field.path); ok {
			f.Systems |= field.rule.system
			f.pending = append(f.pending, candidate{rule: &field.rule, value: found})
		}
	}
}

// fieldOf returns a number or a text of a map, or of a map in it. It looks no deeper.
func fieldOf(entries pcommon.Map, path string) (v pcommon.Value, ok bool) {
	if v, ok = entries.Get(path); !ok {
		outer, inner, _ := strings.Cut(path, ".")
		v, ok = entries.Get(outer)
		if !ok || v.Type() != pcommon.ValueTypeMap || v.Map().Len() > maxFields {
			return v, false
		}
		if v, ok = v.Map().Get(inner); !ok {
			return v, false
		}
	}
	switch v.Type() {
	case pcommon.ValueTypeStr, pcommon.ValueTypeInt, pcommon.ValueTypeDouble:
		return v, true
	default:
		return v, false
	}
}
