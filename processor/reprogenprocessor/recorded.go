package reprogenprocessor

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/payload"
)

func isPayloadKey(key string) bool {
	return key == attrPayload || strings.HasPrefix(key, attrPayload+".")
}

func hasPayload(span ptrace.Span) bool {
	return hasText(span.Attributes(), attrPayload) || generatedCode(span) != "" || hasConversation(span.Attributes())
}

// decodePayload reads the span's payload, or says why there is none to use.
func decodePayload(attributes pcommon.Map) (*payload.Call, payload.Reason) {
	v, ok := attributes.Get(attrPayload)
	if !ok {
		return nil, payload.NoPayload
	}
	if v.Type() != pcommon.ValueTypeStr {
		return nil, payload.Invalid
	}
	declared := payload.Declared{Size: -1, SHA256: firstText(attributes, attrPayloadSHA256)}
	if size, ok := attributes.Get(attrPayloadSize); ok && size.Type() == pcommon.ValueTypeInt {
		declared.Size = size.Int()
	}
	// The tree must not share memory with the batch.
	return payload.Decode(strings.Clone(v.Str()), declared)
}
