package group

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

func tensor(dtype, device string, shape ...string) jsontree.Object {
	sizes := jsontree.Array{}
	for _, s := range shape {
		sizes = append(sizes, jsontree.Number(s))
	}
	return jsontree.Of("__type__", "tensor", "dtype", dtype, "device", device, "shape", sizes)
}

func TestVariant(t *testing.T) {
	variant := func(call jsontree.Object, span map[string]any, message string) (id, text string) {
		f := &failure.Failure{Replay: failure.Replay{Call: &failure.Call{Tree: call}}, Error: failure.Error{Message: message}}
		attributes := pcommon.NewMap()
		require.NoError(t, attributes.FromRaw(span))
		v := VariantOf(f, attributes, pcommon.NewMap(), true)
		return v.ID, v.Text
	}
	args := func(values ...any) jsontree.Object { return jsontree.Of("args", jsontree.Array(values)) }
	for name, tc := range map[string]struct {
		call    jsontree.Object
		span    map[string]any
		message string
		want    string
	}{
		"nothing":             {nil, nil, "", ""},
		"values do not count": {args(jsontree.Number("5"), "x"), nil, "", ""},
		"tensors":             {args(tensor("float32", "cuda:1", "2", "3"), jsontree.Of("k", tensor("int64", "cpu"))), nil, "", "float32[2, 3]@cuda, int64[]@cpu"},
		"a device's class":    {nil, map[string]any{"repro.device": "cuda:7"}, "", "cuda"},
		"frameworks":          {nil, map[string]any{"repro.packages": "torch==2.4\nnumpy==2.0"}, "", "numpy 2.0, torch 2.4"},
		"tensors say it":      {args(tensor("f", "", "1")), nil, "32x15", "f[1]"},
		"a size that is none": {args(jsontree.Of("__type__", "tensor", "shape", "x")), nil, "", "[]"},
	} {
		id, text := variant(tc.call, tc.span, tc.message)
		assert.Equal(t, tc.want, text, name)
		assert.Regexp(t, "^[0-9a-f]{8}$", id, name)
	}
	one, _ := variant(nil, map[string]any{"repro.device": "cuda:0"}, "")
	other, _ := variant(nil, map[string]any{"repro.device": "cuda:1"}, "")
	assert.Equal(t, one, other, "the number of a device makes no variant")
	many := jsontree.Array{}
	for range 100 {
		many = append(many, tensor(strings.Repeat("d", 100), "cuda", "1", "2", "3", "4", "5", "6", "7", "8", "9", strings.Repeat("9", 100)))
	}
	_, text := variant(jsontree.Of("args", many), nil, "")
	assert.LessOrEqual(t, len(text), maxVariantText)
}
