package pythoncall

import (
	"encoding/base64"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/attr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

// hasParts reports whether a span has a call's arguments and something that
// says what they belong to.
func hasParts(attributes pcommon.Map) bool {
	_, ok := attr.First(attributes, argumentKeys)
	return ok && (namesFunction(attributes) || attr.QualifiedName(attributes) != "")
}

// uriOf returns where a payload lies that is not on the span, and the name that
// it would have there.
func uriOf(attributes pcommon.Map) (name, uri string) {
	for _, name := range keys.Payload {
		if uri := mlattr.FirstText(attributes, name+uriSuffix); uri != "" {
			return name, uri
		}
	}
	return "", ""
}

// namesFunction reports whether a span names module and function of a call.
func namesFunction(attributes pcommon.Map) bool {
	return mlattr.FirstText(attributes, keys.Function...) != "" &&
		(mlattr.FirstText(attributes, keys.Module...) != "" || mlattr.FirstText(attributes, keys.Library...) != "")
}

// callOfParts makes a call of the attributes of a span that hasParts.
func callOfParts(attributes pcommon.Map) (*failure.Call, failure.Reason) {
	tree := jsontree.Object{}
	size, lossy := 0, false
	for _, part := range [...]struct {
		name   string
		keys   []string
		isJSON bool
	}{
		{"library", keys.Library, false},
		{"python_module", keys.Module, false},
		{"function", keys.Function, false},
		{"args", keys.Args, true},
		{"kwargs", keys.Kwargs, true},
		{"call_type", keys.Type, false},
	} {
		if text := mlattr.FirstText(attributes, part.keys...); text != "" && !part.isJSON {
			tree = append(tree, jsontree.Member{Key: part.name, Value: strings.Clone(text)})
		}
		v, ok := attr.First(attributes, part.keys)
		if !ok || !part.isJSON {
			continue
		}
		text, whole := jsonOf(v)
		if size += len(text); !whole || size > failure.MaxCallBytes {
			return nil, failure.TooLarge
		}
		arguments, replaced, err := jsontree.Decode(text)
		if err != nil {
			return nil, failure.ReasonOf(err)
		}
		if lossy = lossy || replaced; arguments != nil {
			tree = append(tree, jsontree.Member{Key: part.name, Value: arguments})
		}
	}
	return callOf(tree, lossy, size, strings.Clone(attr.QualifiedName(attributes)))
}

// maxValue bounds an argument that is no JSON yet, in the bytes of mlattr.Size. That
// counts more for an element than JSON has.
const maxValue = 4 * failure.MaxCallBytes

// jsonOf returns an argument as JSON that shares no memory with the batch, and whether it
// is whole.
func jsonOf(v pcommon.Value) (text string, whole bool) {
	switch _, fits := mlattr.Size(v, maxValue); {
	case !fits:
		return "", false
	case v.Type() == pcommon.ValueTypeStr:
		return strings.Clone(v.Str()), true
	}
	return string(jsontree.Encode(treeOf(v))), true
}

func treeOf(v pcommon.Value) any {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return v.Str()
	case pcommon.ValueTypeBool:
		return v.Bool()
	case pcommon.ValueTypeInt:
		return jsontree.Int(v.Int())
	case pcommon.ValueTypeDouble:
		return jsontree.Float(v.Double())
	case pcommon.ValueTypeBytes:
		return jsontree.Of("__type__", "bytes", "__schema__", jsontree.Int(1),
			"data", base64.StdEncoding.EncodeToString(v.Bytes().AsRaw()))
	case pcommon.ValueTypeSlice:
		out := jsontree.Array{}
		for _, e := range v.Slice().All() {
			out = append(out, treeOf(e))
		}
		return out
	case pcommon.ValueTypeMap:
		out := jsontree.Object{}
		for k, e := range v.Map().All() {
			out = append(out, jsontree.Member{Key: k, Value: treeOf(e)})
		}
		return out
	}
	return nil
}

// attrPayload has a whole call as JSON.
const attrPayload = "repro.payload"

// What belongs to a payload is named after it.
const (
	sizeSuffix   = ".size"
	sha256Suffix = ".sha256"
	uriSuffix    = ".uri"
)

// keys are the span attributes in which clients send the call that failed: the
// whole call in one, or each part in an attribute of its own. The first attribute
// of a list that a span has counts.
var keys = func() table.CallKeys {
	all := vocabulary.Calls()
	all.Payload = append([]string{attrPayload}, all.Payload...)
	return all
}()

// argumentKeys are those of arguments with and without names.
var argumentKeys = slices.Concat(keys.Args, keys.Kwargs)

// callAttributes lists all attributes that a call is read from.
func callAttributes() (names []string) {
	for _, name := range keys.Payload {
		names = append(names, name, name+sizeSuffix, name+sha256Suffix, name+uriSuffix)
	}
	return slices.Concat(names, keys.Module, keys.Function, keys.Args, keys.Kwargs, keys.Library, keys.Type)
}

// isPayload reports whether an attribute is the recorded call, its size, hash or
// address, or its arguments as JSON.
func isPayload(key string, v pcommon.Value) bool {
	for _, name := range keys.Payload {
		switch rest, ok := strings.CutPrefix(key, name); {
		case !ok:
		case rest == "", rest == sizeSuffix, rest == sha256Suffix, rest == uriSuffix:
			return true
		}
	}
	return strings.HasPrefix(key, attrPayload+".") ||
		v.Type() == pcommon.ValueTypeStr && slices.Contains(argumentKeys, key)
}
