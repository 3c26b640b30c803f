package pythoncall

import (
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

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
		v.Type() == pcommon.ValueTypeStr && (slices.Contains(keys.Args, key) || slices.Contains(keys.Kwargs, key))
}
