package reprogenprocessor

import (
	"encoding/base64"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/payload"
)

// hasParts reports whether a span has a call's arguments and something that
// says what they belong to.
func (c *CallAttributesConfig) hasParts(attributes pcommon.Map) bool {
	if _, ok := firstOf(attributes, c.Args); !ok {
		if _, ok = firstOf(attributes, c.Kwargs); !ok {
			return false
		}
	}
	return c.namesFunction(attributes) || qualifiedName(attributes) != ""
}

// uri returns where a payload lies that is not on the span, and the name that
// it would have there.
func (c *CallAttributesConfig) uri(attributes pcommon.Map) (name, uri string) {
	for _, name := range c.Payload {
		if uri := firstText(attributes, name+uriSuffix); uri != "" {
			return name, uri
		}
	}
	return "", ""
}

// namesFunction reports whether a span names module and function of a call.
func (c *CallAttributesConfig) namesFunction(attributes pcommon.Map) bool {
	return firstText(attributes, c.Function...) != "" &&
		(firstText(attributes, c.PythonModule...) != "" || firstText(attributes, c.Library...) != "")
}

// callOfParts makes a call of the attributes of a span that hasParts.
func (r *reader) callOfParts(attributes pcommon.Map) (*payload.Call, payload.Reason) {
	p := payload.Parts{
		Library:  strings.Clone(firstText(attributes, r.names.Library...)),
		Module:   strings.Clone(firstText(attributes, r.names.PythonModule...)),
		Function: strings.Clone(firstText(attributes, r.names.Function...)),
		CallType: strings.Clone(firstText(attributes, r.names.CallType...)),
		Named:    qualifiedName(attributes),
	}
	left := r.maxBytes
	for _, part := range [...]struct {
		names []string
		value *any
	}{{r.names.Args, &p.Args}, {r.names.Kwargs, &p.Kwargs}} {
		v, ok := firstOf(attributes, part.names)
		if !ok {
			continue
		}
		if v.Type() != pcommon.ValueTypeStr {
			if *part.value, ok = treeOf(v, &left, 0); !ok {
				return nil, payload.TooLarge
			}
			continue
		}
		if left -= len(v.Str()); left < 0 {
			return nil, payload.TooLarge
		}
		// The tree must not share memory with the batch.
		tree, lossy, err := jsontree.Decode(strings.Clone(v.Str()))
		if err != nil {
			return nil, payload.ReasonOf(err)
		}
		*part.value, p.Lossy = tree, p.Lossy || lossy
	}
	p.Size = r.maxBytes - left
	return payload.OfParts(p)
}

// firstOf returns the first of the attributes that a span has. An empty text
// is none.
func firstOf(attributes pcommon.Map, names []string) (pcommon.Value, bool) {
	for _, name := range names {
		if v, ok := attributes.Get(name); ok && v.Type() != pcommon.ValueTypeEmpty && (v.Type() != pcommon.ValueTypeStr || v.Str() != "") {
			return v, true
		}
	}
	return pcommon.Value{}, false
}

// qualifiedName returns what the semantic conventions say of the code that a
// span is about: "pkg.mod.Class.method", or "".
func qualifiedName(attributes pcommon.Map) string {
	if name := firstText(attributes, attrCodeFunctionName); name != "" {
		return strings.Clone(name)
	}
	namespace, function := firstText(attributes, attrCodeNamespace), firstText(attributes, attrCodeFunction)
	if namespace == "" || function == "" {
		return ""
	}
	return namespace + "." + function
}

// treeOf copies a value whole, or reports that it takes more than *left bytes.
func treeOf(v pcommon.Value, left *int, depth int) (any, bool) {
	const overhead = 8
	if *left -= overhead; *left < 0 || depth > jsontree.MaxDepth {
		return nil, false
	}
	switch v.Type() {
	case pcommon.ValueTypeStr:
		*left -= len(v.Str())
		return strings.Clone(v.Str()), *left >= 0
	case pcommon.ValueTypeBool:
		return v.Bool(), true
	case pcommon.ValueTypeInt:
		return jsontree.Int(v.Int()), true
	case pcommon.ValueTypeDouble:
		return jsontree.Float(v.Double()), true
	case pcommon.ValueTypeBytes:
		*left -= 2 * v.Bytes().Len()
		if *left < 0 {
			return nil, false
		}
		return jsontree.Of("__type__", "bytes", "__schema__", jsontree.Int(1),
			"data", base64.StdEncoding.EncodeToString(v.Bytes().AsRaw())), true
	case pcommon.ValueTypeSlice:
		out := jsontree.Array{}
		for _, e := range v.Slice().All() {
			element, ok := treeOf(e, left, depth+1)
			if !ok {
				return nil, false
			}
			out = append(out, element)
		}
		return out, true
	case pcommon.ValueTypeMap:
		out := jsontree.Object{}
		for k, e := range v.Map().All() {
			*left -= len(k)
			element, ok := treeOf(e, left, depth+1)
			if !ok {
				return nil, false
			}
			out = append(out, jsontree.Member{Key: strings.Clone(k), Value: element})
		}
		return out, true
	}
	return nil, true
}
