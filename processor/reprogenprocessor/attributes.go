package reprogenprocessor

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Attributes that are read.
const (
	attrPayload       = "repro.payload"
	attrPayloadSize   = "repro.payload.size"
	attrPayloadSHA256 = "repro.payload.sha256"
	attrFingerprint   = "repro.fingerprint"

	attrExceptionEvent      = "exception"
	attrExceptionType       = "exception.type"
	attrExceptionMessage    = "exception.message"
	attrExceptionStacktrace = "exception.stacktrace"
	attrCodeFunctionName    = "code.function.name"
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
