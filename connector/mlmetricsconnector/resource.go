package mlmetricsconnector

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// unknownService is the service.name of a resource without one, as in the SDKs.
const unknownService = "unknown_service"

// readResource returns the program that a resource names, and how many of its
// two names had invalid UTF-8. Invalid bytes are replaced, because back ends
// refuse them; the program keeps its own series.
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

// readName returns a name, and 1 if it had to be repaired.
func readName(v pcommon.Value) (name string, repaired int64) {
	if name, ok := mlattr.ReadText(v); ok || v.Type() != pcommon.ValueTypeStr || v.Str() == "" {
		return name, 0
	}
	raw := v.Str()
	// Replacements lengthen the text, but the end is cut off anyway.
	name, _ = mlattr.ReadText(pcommon.NewValueStr(strings.ToValidUTF8(raw[:min(len(raw), mlattr.MaxText)], "\uFFFD")))
	return name, 1
}
