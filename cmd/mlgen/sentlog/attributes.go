package sentlog

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// maxDepth bounds how deep an attribute's value may nest when it is read.
const maxDepth = 32

// Attributes holds attribute values by name. A value is nil, a string, a bool,
// an int64, a float64, a []byte, a []any or an [Attributes] of the same kinds.
//
// In JSON an int64 has neither decimal point nor exponent and a float64 always
// has one of them, so 5 and 5.0 stay apart. Three kinds are objects of one
// member: {"double":"NaN"} (also "Infinity" and "-Infinity"), {"bytes":"…"} in
// base64 and {"map":{…}}.
type Attributes map[string]any

// FromMap copies an attribute map. The result shares nothing with its source.
func FromMap(m pcommon.Map) Attributes {
	out := make(Attributes, m.Len())
	for k, v := range m.All() {
		out[k] = fromValue(v)
	}
	return out
}

func fromValue(v pcommon.Value) any {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return v.Str()
	case pcommon.ValueTypeBool:
		return v.Bool()
	case pcommon.ValueTypeInt:
		return v.Int()
	case pcommon.ValueTypeDouble:
		return v.Double()
	case pcommon.ValueTypeBytes:
		return v.Bytes().AsRaw()
	case pcommon.ValueTypeSlice:
		list := make([]any, 0, v.Slice().Len())
		for _, item := range v.Slice().All() {
			list = append(list, fromValue(item))
		}
		return list
	case pcommon.ValueTypeMap:
		return FromMap(v.Map())
	default:
		return nil
	}
}

// MarshalJSON writes the values so that their types can be read back.
func (a Attributes) MarshalJSON() ([]byte, error) {
	if a == nil {
		return []byte("{}"), nil
	}
	out := make(map[string]json.RawMessage, len(a))
	for k, v := range a {
		raw, err := encodeValue(v)
		if err != nil {
			return nil, fmt.Errorf("attribute %q: %w", k, err)
		}
		out[k] = raw
	}
	return json.Marshal(out)
}

func encodeValue(v any) (json.RawMessage, error) {
	switch v := v.(type) {
	case nil, string, bool, int64:
		return json.Marshal(v)
	case float64:
		return encodeDouble(v), nil
	case []byte:
		return json.Marshal(map[string]string{"bytes": base64.StdEncoding.EncodeToString(v)})
	case []any:
		list := make([]json.RawMessage, len(v))
		for i, item := range v {
			raw, err := encodeValue(item)
			if err != nil {
				return nil, err
			}
			list[i] = raw
		}
		return json.Marshal(list)
	case Attributes:
		return json.Marshal(map[string]Attributes{"map": v})
	default:
		return nil, fmt.Errorf("unsupported type %T", v)
	}
}

func encodeDouble(v float64) json.RawMessage {
	switch {
	case math.IsNaN(v):
		return json.RawMessage(`{"double":"NaN"}`)
	case math.IsInf(v, 1):
		return json.RawMessage(`{"double":"Infinity"}`)
	case math.IsInf(v, -1):
		return json.RawMessage(`{"double":"-Infinity"}`)
	}
	text := strconv.FormatFloat(v, 'g', -1, 64)
	if !strings.ContainsAny(text, ".e") {
		text += ".0"
	}
	return json.RawMessage(text)
}

// UnmarshalJSON reads what MarshalJSON writes and refuses anything else.
func (a *Attributes) UnmarshalJSON(data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var raw map[string]any
	if err := decoder.Decode(&raw); err != nil {
		return err
	}
	out, err := decodeMap(raw, 0)
	if err != nil {
		return err
	}
	*a = out
	return nil
}

func decodeMap(raw map[string]any, depth int) (Attributes, error) {
	if depth > maxDepth {
		return nil, errors.New("attribute values nest too deep")
	}
	out := make(Attributes, len(raw))
	for k, v := range raw {
		value, err := decodeValue(v, depth)
		if err != nil {
			return nil, fmt.Errorf("attribute %q: %w", k, err)
		}
		out[k] = value
	}
	return out, nil
}

func decodeValue(v any, depth int) (any, error) {
	switch v := v.(type) {
	case nil, string, bool:
		return v, nil
	case json.Number:
		return decodeNumber(v)
	case []any:
		if depth >= maxDepth {
			return nil, errors.New("attribute values nest too deep")
		}
		list := make([]any, len(v))
		for i, item := range v {
			value, err := decodeValue(item, depth+1)
			if err != nil {
				return nil, err
			}
			list[i] = value
		}
		return list, nil
	case map[string]any:
		return decodeTagged(v, depth)
	default:
		return nil, fmt.Errorf("unexpected JSON value of type %T", v)
	}
}

func decodeNumber(n json.Number) (any, error) {
	if strings.ContainsAny(n.String(), ".eE") {
		return n.Float64()
	}
	return n.Int64()
}

func decodeTagged(v map[string]any, depth int) (any, error) {
	if len(v) != 1 {
		return nil, errors.New(`an object must have one member of "double", "bytes" and "map"`)
	}
	for tag, inner := range v {
		switch inner := inner.(type) {
		case string:
			switch tag {
			case "double":
				switch inner {
				case "NaN":
					return math.NaN(), nil
				case "Infinity":
					return math.Inf(1), nil
				case "-Infinity":
					return math.Inf(-1), nil
				}
				return nil, fmt.Errorf(`"double" is %q, want "NaN", "Infinity" or "-Infinity"`, inner)
			case "bytes":
				return base64.StdEncoding.DecodeString(inner)
			}
		case map[string]any:
			if tag == "map" {
				return decodeMap(inner, depth+1)
			}
		}
		return nil, fmt.Errorf("unknown value object %q", tag)
	}
	return nil, nil
}
