package group

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/attr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

const (
	attrDevice   = "repro.device"
	attrPackages = "repro.packages"

	// maxVariantText bounds the text of a variant, and maxTensors the tensors that
	// it names.
	maxVariantText = 256
	maxTensors     = 16
	maxShape       = 8
)

// VariantOf returns the variant of a failure: the tensors of its call, the class of its
// device and the versions of its frameworks. It has no text without capture.
func VariantOf(f *failure.Failure, span, resource pcommon.Map, capture bool) failure.Variant {
	var parts []string
	if f.Call != nil {
		parts = mlattr.Mapped(tensorsOf(f.Call.Tree, nil), tensorText)
	}
	if class := deviceClass(cmp.Or(mlattr.FirstText(span, attrDevice), mlattr.FirstText(resource, attrDevice))); class != "" {
		parts = append(parts, class)
	}
	for _, m := range [...]pcommon.Map{span, resource} {
		if v, ok := m.Get(attrPackages); ok {
			if versions := versionsIn(v); len(versions) > 0 {
				parts = append(parts, slices.Sorted(slices.Values(versions))...)
				break
			}
		}
	}
	sum := sha256.Sum256([]byte(joined(parts)))
	if !capture {
		parts = nil // what clients call a device or a version may be any text
	}
	return failure.Variant{ID: hex.EncodeToString(sum[:4]), Text: joined(parts)}
}

func joined(parts []string) string {
	return strings.ToValidUTF8(attr.Cut(strings.Join(parts, ", "), maxVariantText), "")
}

// versionsIn reads the frameworks of a map of packages, or of a text with
// lines such as "torch==2.4.0" or members such as "torch": "2.4.0".
func versionsIn(v pcommon.Value) (versions []string) {
	found := make(map[string]string)
	switch v.Type() {
	case pcommon.ValueTypeMap:
		for _, name := range mlattr.Frameworks() {
			found[name] = mlattr.FirstText(v.Map(), name)
		}
	case pcommon.ValueTypeStr:
		last := ""
		for word := range strings.FieldsFuncSeq(v.Str(), func(r rune) bool { return strings.ContainsRune(" \"',:;={}\n\r\t", r) }) {
			if found[last] == "" && word[0] >= '0' && word[0] <= '9' {
				found[last] = word
			}
			last = word
		}
	}
	for _, name := range mlattr.Frameworks() {
		if version := found[name]; version != "" && len(version) <= 64 {
			versions = append(versions, name+" "+strings.Clone(version))
		}
	}
	return versions
}

func tensorsOf(v any, found []jsontree.Object) []jsontree.Object {
	if len(found) == maxTensors {
		return found
	}
	switch v := v.(type) {
	case jsontree.Object:
		if kind := v.Text("__type__"); kind == "tensor" || kind == "ndarray" {
			return append(found, v)
		}
		for _, m := range v {
			found = tensorsOf(m.Value, found)
		}
	case jsontree.Array:
		for _, e := range v {
			found = tensorsOf(e, found)
		}
	}
	return found
}

// tensorText spells a tensor as float32[2, 3]@cuda.
func tensorText(t jsontree.Object) string {
	sizes := mlattr.Mapped(t.Array("shape"), func(size any) string {
		n, _ := size.(jsontree.Number)
		return attr.Cut(string(n), 20)
	})
	if len(sizes) > maxShape {
		sizes = append(sizes[:maxShape], "...")
	}
	text := attr.Cut(t.Text("dtype"), 32) + "[" + strings.Join(sizes, ", ") + "]"
	if class := deviceClass(t.Text("device")); class != "" {
		text += "@" + class
	}
	return text
}

// deviceClass takes the number from a device: cuda:1 becomes cuda.
func deviceClass(device string) string {
	class, _, _ := strings.Cut(device, ":")
	return attr.Cut(strings.TrimSpace(class), 32)
}
