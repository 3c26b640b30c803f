package pythoncall

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/payload"
)

// Declared is the size and hash that a client sent with its payload.
type Declared struct {
	// Size is the payload's length in bytes, or negative if it was not sent.
	Size int64
	// SHA256 is the payload's hash in hex, or "" if it was not sent.
	SHA256 string
}

// known lists the members of a call.
var known = []string{
	"protocol_version", "min_supported_version", "library", "python_module",
	"function", "args", "kwargs", "idempotent", "session_id", "call_type",
}

// Decode reads a payload. named is the qualified name of the function that the
// span is about, or "": it completes a target that the payload does not name.
// Exactly one of the results is set.
func Decode(text string, declared Declared, named string) (*payload.Call, payload.Reason) {
	if len(text) > payload.MaxBytes {
		return nil, payload.TooLarge
	}
	if declared.Size >= 0 && declared.Size != int64(len(text)) {
		return nil, payload.Truncated
	}
	if declared.SHA256 != "" {
		sum := sha256.Sum256([]byte(text))
		if !strings.EqualFold(declared.SHA256, hex.EncodeToString(sum[:])) {
			return nil, payload.Truncated
		}
	}
	v, lossy, err := jsontree.Decode(text)
	if err != nil {
		return nil, payload.ReasonOf(err)
	}
	tree, ok := v.(jsontree.Object)
	if !ok {
		return nil, payload.Invalid
	}
	if !exactKeys(tree) {
		return nil, payload.Ambiguous
	}
	return callOf(tree, lossy, len(text), named)
}

// exactKeys reports whether each member that looks like a known one is
// spelled exactly so. Keys of arguments are the application's own: there, N
// and n are two.
func exactKeys(tree jsontree.Object) bool {
	seen := make(map[string]bool, len(tree))
	for _, m := range tree {
		key := strings.ToLower(strings.ToUpper(m.Key)) // as strings.EqualFold compares
		if seen[key] || m.Key != key && slices.Contains(known, key) {
			return false
		}
		seen[key] = true
	}
	return true
}
