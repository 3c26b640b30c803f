package reprogenprocessor

import (
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// attrRequestType is what OpenLLMetry calls a model call's operation.
const attrRequestType = "llm.request.type"

// modelOperations are the operations that are one request to a model: of the
// semantic conventions, OpenLLMetry and OpenInference. Those of agents, tools and
// workflows are not among them.
var modelOperations = map[string]bool{
	"chat": true, "text_completion": true, "generate_content": true, "embeddings": true,
	"completion": true, "embedding": true, "rerank": true, "llm": true, "reranker": true,
}

// isModelCall reports whether a span is that of one request to a model.
func isModelCall(attributes pcommon.Map) bool {
	operation := firstText(attributes, mlattr.GenAIOperationName, attrRequestType, attrInferenceKind)
	return modelOperations[strings.ToLower(operation)]
}

// statusKeys name the status of a response, in the semantic conventions and
// before 1.20.
var statusKeys = [...]string{attrHTTPStatus, "http.status_code"}

// statusOf returns the HTTP status that a request or a model call failed with,
// or 0. Clients of models say it in the message.
func statusOf(attributes pcommon.Map, message string) int64 {
	for _, k := range statusKeys {
		if v, ok := attributes.Get(k); ok && v.Type() == pcommon.ValueTypeInt && v.Int() >= 400 {
			return v.Int()
		}
	}
	if !isRequest(attributes) && !isModelCall(attributes) {
		return 0
	}
	if status := errorStatus(firstText(attributes, mlattr.ErrorType)); status != 0 {
		return status
	}
	// "Error code: 429 - …", "429 Client Error: …", "Client error '429 Too Many
	// Requests' …", "HTTP/1.1 503 …", "status_code: 500, …": the first number that
	// is a status.
	for _, word := range strings.FieldsFunc(cut(message, 256), func(r rune) bool { return strings.ContainsRune(" '\"(),:;=[]{}\t\n", r) }) {
		if status := errorStatus(word); status != 0 {
			return status
		}
	}
	return 0
}

// errorStatus returns the status of an error that a word is, or 0.
func errorStatus(word string) int64 {
	status, err := strconv.ParseInt(word, 10, 64)
	if err != nil || len(word) != 3 || status < 400 || status > 599 {
		return 0
	}
	return status
}
