package fingerprint

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

// maxVariantText bounds the text of a variant, and maxTensors the tensors that
// it names.
const (
	maxVariantText = 256
	maxTensors     = 16
	maxShape       = 8
)

// Form is what differs between the variants of one defect.
type Form struct {
	// Call is the recorded call, or nil. Its tensors have shape, dtype and
	// device.
	Call jsontree.Object
	// Device is the client's device; cuda:1 counts as cuda.
	Device string
	// Framework names the frameworks' versions.
	Framework []string
	// Message is the error's text. The shapes in it count.
	Message string
}

// Variant returns the short hash of a form and the text that it is made of,
// which is "" for a failure without shapes, devices and versions.
func Variant(f Form) (id, text string) {
	var parts []string
	tensors := tensorsOf(f.Call, nil)
	for _, t := range tensors {
		parts = append(parts, tensorText(t))
	}
	if len(tensors) == 0 && hasDigit(f.Message) {
		parts = append(parts, shapesIn(f.Message)...)
	}
	if class := deviceClass(f.Device); class != "" {
		parts = append(parts, class)
	}
	slices.Sort(f.Framework)
	parts = append(parts, f.Framework...)
	text = strings.Join(parts, ", ")
	if len(text) > maxVariantText {
		text = strings.ToValidUTF8(text[:maxVariantText], "")
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4]), text
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
	var b strings.Builder
	b.WriteString(cutText(t.Text("dtype"), 32) + "[")
	for i, size := range t.Array("shape") {
		if i == maxShape {
			b.WriteString(", ...")
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		if n, ok := size.(jsontree.Number); ok {
			b.WriteString(cutText(string(n), 20))
		}
	}
	b.WriteByte(']')
	if class := deviceClass(t.Text("device")); class != "" {
		b.WriteString("@" + class)
	}
	return b.String()
}

// deviceClass takes the number from a device: cuda:1 becomes cuda.
func deviceClass(device string) string {
	class, _, _ := strings.Cut(device, ":")
	return cutText(strings.TrimSpace(class), 32)
}

func cutText(s string, limit int) string { return s[:min(len(s), limit)] }

// shape is what looks like one: [2, 3], (2, 3), 32x15.
var shape = regexp.MustCompile(`[\[(][ ,]*([0-9][0-9 ]*,[0-9, ]*[0-9])|(?:^|[^\w.:+-])([0-9]+x[0-9x]*[0-9])`)

// shapesIn returns what looks like a shape in a message.
func shapesIn(message string) []string {
	var shapes []string
	for _, found := range shape.FindAllStringSubmatch(cutText(message, maxTemplate), maxTensors) {
		shapes = append(shapes, found[1]+found[2])
	}
	return shapes
}
