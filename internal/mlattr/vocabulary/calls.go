package vocabulary

import (
	"slices"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// Call returns which part of a call the span is, by the rule for its name, and
// the function where the name says it.
func (f *Facts) Call() (part table.CallPart, function string) {
	if f.name == nil {
		return table.NoCall, ""
	}
	return f.name.Call, f.name.CallOf
}

// Queued reports whether the span lasts from when its work was accepted, so
// that it contains a wait. The work itself is a span below.
func (f *Facts) Queued() bool { return f.name != nil && f.name.Queued }

// WholeStep reports whether the span contains all of a training step.
func (f *Facts) WholeStep() bool { return f.name != nil && f.name.WholeStep }

var callKeys = func() (all table.CallKeys) {
	for _, t := range Tables() {
		for i, list := range t.Calls.Lists() {
			to := all.Lists()[i]
			*to = append(*to, *list...)
		}
	}
	return all
}()

// Calls returns the keys of all clients, in the order of the tables. The caller
// may change the lists.
func Calls() table.CallKeys {
	all := callKeys
	for _, list := range all.Lists() {
		*list = slices.Clone(*list)
	}
	return all
}

// IsCorrelation reports whether an attribute's key is one of CallKeys.Correlation.
func IsCorrelation(key string) bool { return correlation.Find(key) != nil }

var correlation = mlattr.NewKeySet(callKeys.Correlation...)

// RunsCode reports whether a span of this name runs code that a model wrote;
// see CallKeys.CodeSpans.
func RunsCode(name string) bool {
	return slices.ContainsFunc(callKeys.CodeSpans, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

var (
	operationKeys = collectKeys(func(t *table.Table) []string { return t.ModelCall.OperationKeys })
	modelRequests = collectKeys(func(t *table.Table) []string { return t.ModelCall.Requests })
	addressKeys   = collectKeys(func(t *table.Table) []string { return t.ModelCall.AddressKeys })
	gateways      = collectKeys(func(t *table.Table) []string { return t.Gateways })
)

// OperationKeys returns the keys that name a span's operation, the canonical one
// first. The caller must not change it, nor what the functions below return.
func OperationKeys() []string { return operationKeys }

// IsModelRequest reports whether an operation, in any client's words and in any
// case, is one request to a model. AsksModel is the same for the values of
// GenAIOperationName.
func IsModelRequest(operation string) bool {
	return slices.Contains(modelRequests, strings.ToLower(operation))
}

// AsksModel reports whether a value of GenAIOperationName is one request to a
// model, and not the work of a program that may make several.
func AsksModel(operation string) bool {
	switch operation {
	case mlattr.OperationChat, mlattr.OperationTextCompletion, mlattr.OperationGenerateContent, mlattr.OperationEmbeddings:
		return true
	default:
		return false
	}
}

// AddressKeys returns the keys of the base URL of a model's API.
func AddressKeys() []string { return addressKeys }

// IsGateway reports whether a value of GenAIProviderName, in small letters, names a
// client that passes requests on, and not a provider of models.
func IsGateway(provider string) bool { return slices.Contains(gateways, provider) }

// SumsUsage reports whether a span of this name repeats the token usage of the
// model calls below it. A name may go on after a space, as "invoke_agent
// planner" does.
func SumsUsage(name string) bool {
	return slices.ContainsFunc(wrapperNames, func(known string) bool {
		rest, ok := strings.CutPrefix(name, known)
		return ok && (rest == "" || rest[0] == ' ')
	})
}

var wrapperNames = collectKeys(func(t *table.Table) []string { return t.Wrappers })
