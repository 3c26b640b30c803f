package mlmetricsconnector

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// unknownService is the service.name of a resource that has none, as the
// SDKs spell it.
const unknownService = "unknown_service"

// readResource returns the program that a resource names, and how many of its
// two names were no valid UTF-8. What is wrong in them is replaced: it is a
// program of its own all the same, and a back end refuses other text.
func readResource(attrs pcommon.Map) (r streams.Resource, repaired int64) {
	r.Service = unknownService
	for key, value := range attrs.All() {
		switch key {
		case mlattr.ServiceName:
			if name, broken := readName(value); name != "" {
				r.Service = name
				repaired += broken
			}
		case mlattr.ServiceNamespace:
			name, broken := readName(value)
			r.Namespace = name
			repaired += broken
		}
	}
	return r, repaired
}

// readName reads a name, and returns 1 where it had to be repaired.
func readName(v pcommon.Value) (name string, repaired int64) {
	if name, ok := mlattr.ReadText(v); ok || v.Type() != pcommon.ValueTypeStr || v.Str() == "" {
		return name, 0
	}
	raw := v.Str()
	// A replacement is longer than what it replaces, but what is cut off in the
	// end is not looked at.
	name, _ = mlattr.ReadText(pcommon.NewValueStr(strings.ToValidUTF8(raw[:min(len(raw), mlattr.MaxText)], "\uFFFD")))
	return name, 1
}
