package fingerprint

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

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
	args := func(values ...any) jsontree.Object { return jsontree.Of("args", jsontree.Array(values)) }
	for name, tc := range map[string]struct {
		form Form
		want string
	}{
		"nothing":             {Form{}, ""},
		"values do not count": {Form{Call: args(jsontree.Number("5"), "x")}, ""},
		"tensors":             {Form{Call: args(tensor("float32", "cuda:1", "2", "3"), jsontree.Of("k", tensor("int64", "cpu")))}, "float32[2, 3]@cuda, int64[]@cpu"},
		"a device's class":    {Form{Device: "cuda:7"}, "cuda"},
		"frameworks":          {Form{Framework: []string{"torch 2.4", "numpy 2.0"}}, "numpy 2.0, torch 2.4"},
		"shapes in a message": {Form{Message: "mat1 and mat2 (32x15 and 16x32), sizes [2, 3] at index 5"}, "32x15, 16x32, 2, 3"},
		"tensors say it":      {Form{Call: args(tensor("f", "", "1")), Message: "32x15"}, "f[1]"},
		"a size that is none": {Form{Call: args(jsontree.Of("__type__", "tensor", "shape", "x"))}, "[]"},
		"a message of words":  {Form{Message: "it failed (again), sorry [no]"}, ""},
	} {
		id, text := Variant(tc.form)
		assert.Equal(t, tc.want, text, name)
		assert.Regexp(t, "^[0-9a-f]{8}$", id, name)
	}
	one, _ := Variant(Form{Device: "cuda:0"})
	other, _ := Variant(Form{Device: "cuda:1"})
	assert.Equal(t, one, other, "the number of a device makes no variant")
	many := jsontree.Array{}
	for range 100 {
		many = append(many, tensor(strings.Repeat("d", 100), "cuda", "1", "2", "3", "4", "5", "6", "7", "8", "9", strings.Repeat("9", 100)))
	}
	_, text := Variant(Form{Call: jsontree.Of("args", many)})
	assert.LessOrEqual(t, len(text), maxVariantText)
}
