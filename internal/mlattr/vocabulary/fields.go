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
	var find func(path string) (pcommon.Value, bool)
	switch value.Type() {
	case pcommon.ValueTypeMap:
		entries := value.Map()
		if entries.Len() > maxFields {
			f.Rejected++
			return
		}
		find = func(path string) (pcommon.Value, bool) { return fieldOf(entries, path) }
	case pcommon.ValueTypeStr:
		var entries map[string]any
		if text := value.Str(); len(text) > mlattr.MaxJSON || json.Unmarshal([]byte(text), &entries) != nil {
			f.Rejected++
			return
		}
		find = func(path string) (pcommon.Value, bool) { return jsonFieldOf(entries, path) }
	default:
		f.Rejected++
		return
	}
	for i := range fields {
		field := &fields[i]
		if found, ok := find(field.path); ok {
			f.Systems |= field.rule.system
			f.pending = append(f.pending, candidate{rule: &field.rule, value: found})
		}
	}
}

// fieldOf returns a field of a map, or a field of a field. It looks no deeper.
func fieldOf(entries pcommon.Map, path string) (pcommon.Value, bool) {
	if v, ok := entries.Get(path); ok {
		return v, true
	}
	outer, inner, nested := strings.Cut(path, ".")
	if !nested {
		return pcommon.Value{}, false
	}
	v, ok := entries.Get(outer)
	if !ok || v.Type() != pcommon.ValueTypeMap || v.Map().Len() > maxFields {
		return pcommon.Value{}, false
	}
	return v.Map().Get(inner)
}

// jsonFieldOf is fieldOf for a map from JSON. It returns numbers and texts
// only.
func jsonFieldOf(entries map[string]any, path string) (pcommon.Value, bool) {
	value := entries[path]
	if outer, inner, nested := strings.Cut(path, "."); value == nil && nested {
		within, _ := entries[outer].(map[string]any)
		value = within[inner]
	}
	switch value := value.(type) {
	case float64:
		return pcommon.NewValueDouble(value), true
	case string:
		return pcommon.NewValueStr(value), true
	default:
		return pcommon.Value{}, false
	}
}
