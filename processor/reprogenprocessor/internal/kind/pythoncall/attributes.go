package pythoncall

import (
	"encoding/base64"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/attr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/payload"
)

// hasParts reports whether a span has a call's arguments and something that
// says what they belong to.
func hasParts(attributes pcommon.Map) bool {
	if _, ok := attr.First(attributes, keys.Args); !ok {
		if _, ok = attr.First(attributes, keys.Kwargs); !ok {
			return false
		}
	}
	return namesFunction(attributes) || attr.QualifiedName(attributes) != ""
}

// uriOf returns where a payload lies that is not on the span, and the name that
// it would have there.
func uriOf(attributes pcommon.Map) (name, uri string) {
	for _, name := range keys.Payload {
		if uri := attr.Text(attributes, name+uriSuffix); uri != "" {
			return name, uri
		}
	}
	return "", ""
}

// namesFunction reports whether a span names module and function of a call.
func namesFunction(attributes pcommon.Map) bool {
	return attr.Text(attributes, keys.Function...) != "" &&
		(attr.Text(attributes, keys.Module...) != "" || attr.Text(attributes, keys.Library...) != "")
}

// callOfParts makes a call of the attributes of a span that hasParts.
func callOfParts(attributes pcommon.Map) (*payload.Call, payload.Reason) {
	p := parts{
		Library:  strings.Clone(attr.Text(attributes, keys.Library...)),
		Module:   strings.Clone(attr.Text(attributes, keys.Module...)),
		Function: strings.Clone(attr.Text(attributes, keys.Function...)),
		CallType: strings.Clone(attr.Text(attributes, keys.Type...)),
		Named:    strings.Clone(attr.QualifiedName(attributes)),
	}
	left := payload.MaxBytes
	for _, part := range [...]struct {
		names []string
		value *any
	}{{keys.Args, &p.Args}, {keys.Kwargs, &p.Kwargs}} {
		v, ok := attr.First(attributes, part.names)
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
	p.Size = payload.MaxBytes - left
	return ofParts(p)
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
