package reprogenprocessor

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Attributes that are read.
const (
	attrPayload     = "repro.payload"
	attrFingerprint = "repro.fingerprint"
	// attrKind can only lower what is done with a failure: "context" asks that
	// nothing of it be replayed. Other values say nothing, because what can be
	// replayed follows from what was sent.
	attrKind = "repro.kind"

	// What belongs to a payload is named after it.
	sizeSuffix   = ".size"
	sha256Suffix = ".sha256"
	uriSuffix    = ".uri"

	attrExceptionEvent      = "exception"
	attrExceptionType       = "exception.type"
	attrExceptionMessage    = "exception.message"
	attrExceptionStacktrace = "exception.stacktrace"
	attrCodeFunctionName    = "code.function.name"
	attrCodeNamespace       = "code.namespace" // until semantic conventions 1.30
	attrCodeFunction        = "code.function"
	attrSnakepitError       = "snakepit.grpc.error"
	attrSnakepitErrorKind   = "snakepit.grpc.error_kind"

	attrServiceVersion      = "service.version"
	attrTrigger             = "repro.trigger"
	attrRank                = "repro.rank"
	attrSnakepitCorrelation = "snakepit.correlation_id"
	attrCorrelation         = "correlation_id"
	attrLogTraceID          = "otelTraceID"
	attrLogSpanID           = "otelSpanID"
)

// Attributes that are written.
const (
	attrArtifactFingerprint = "repro.artifact.fingerprint"
	attrArtifactPath        = "repro.artifact.path"
	attrArtifactKind        = "repro.artifact.kind"
	attrArtifactOmitted     = "repro.artifact.omitted"
)

// otherError is the error.type of a failure that names none, as the semantic
// conventions have it. Clients may send it, and group.json says it.
const otherError = "_OTHER"

func firstText(attributes pcommon.Map, keys ...string) string {
	for _, k := range keys {
		if v, ok := attributes.Get(k); ok && v.Type() == pcommon.ValueTypeStr && v.Str() != "" {
			return v.Str()
		}
	}
	return ""
}
