// Package pythoncall is the kind of artifacts that call a recorded Python
// function with the recorded arguments.
package pythoncall

import (
	"slices"
	"strings"
	"sync/atomic"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/attr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind"
)

// maxKept is the length of a payload that a reader keeps.
const maxKept = 4 << 10

// New returns the kind.
func New() *kind.Kind {
	r := &reader{}
	return &kind.Kind{
		Name:           failure.PythonCall,
		Recognise:      func(span ptrace.Span) bool { return hasCall(span.Attributes()) },
		Read:           func(span ptrace.Span) (*failure.Call, failure.Reason) { return r.call(span.Attributes()) },
		Missing:        missing,
		IsPayload:      isPayload,
		CallAttributes: slices.Concat(callAttributes(), []string{attr.CodeFunctionName, attr.CodeNamespace, attr.CodeFunction}),
		Parts:          scriptParts,
		Files:          files,
		TakesSeed:      true,
		Flags:          flags,
		Needs:          needs,
		Head:           head,
	}
}

// reader reads calls. It keeps the one that it decoded last, because a failure
// that is frequent often has the same call. It is safe for concurrent use; what
// it returns must not be changed.
type reader struct {
	last atomic.Pointer[decoded]
}

// decoded is what a payload is, with what its client declared of it.
type decoded struct {
	text     string
	declared Declared
	named    string
	call     *failure.Call
	reason   failure.Reason
}

// hasCall reports whether there is a recorded call, whole or in parts.
func hasCall(attributes pcommon.Map) bool {
	if mlattr.FirstText(attributes, keys.Payload...) != "" || hasParts(attributes) {
		return true
	}
	_, uri := uriOf(attributes)
	return uri != ""
}

// missing returns why a span has no call, or "".
func missing(span ptrace.Span) failure.Reason {
	for _, name := range keys.Payload {
		if v, ok := span.Attributes().Get(name); ok && v.Type() != pcommon.ValueTypeStr {
			return failure.Invalid
		}
	}
	if namesFunction(span.Attributes()) {
		return failure.NoArguments
	}
	return ""
}

// call reads a span's recorded call.
func (r *reader) call(attributes pcommon.Map) (*failure.Call, failure.Reason) {
	for _, name := range keys.Payload {
		if v, ok := attributes.Get(name); ok && (v.Type() != pcommon.ValueTypeStr || v.Str() != "") {
			return r.payload(attributes, name, v)
		}
	}
	if name, uri := uriOf(attributes); uri != "" {
		declared := declaredFor(attributes, name)
		declared.SHA256 = strings.Clone(declared.SHA256)
		return ofURI(strings.Clone(uri), declared)
	}
	return callOfParts(attributes)
}

// payload reads the call that is one attribute.
func (r *reader) payload(attributes pcommon.Map, name string, v pcommon.Value) (*failure.Call, failure.Reason) {
	if v.Type() != pcommon.ValueTypeStr {
		return nil, failure.Invalid
	}
	text, declared, named := v.Str(), declaredFor(attributes, name), attr.QualifiedName(attributes)
	if last := r.last.Load(); last != nil && last.text == text && last.declared == declared && last.named == named {
		return last.call, last.reason
	}
	// What is kept must not share memory with the batch.
	d := &decoded{text: strings.Clone(text), declared: Declared{declared.Size, strings.Clone(declared.SHA256)}, named: strings.Clone(named)}
	d.call, d.reason = Decode(d.text, d.declared, d.named)
	if len(d.text)+len(d.declared.SHA256)+len(d.named) <= maxKept {
		r.last.Store(d)
	}
	return d.call, d.reason
}

// declaredFor reads what a client declared of the payload of that name.
func declaredFor(attributes pcommon.Map, name string) Declared {
	declared := Declared{Size: -1, SHA256: mlattr.FirstText(attributes, name+sha256Suffix)}
	if size, ok := attributes.Get(name + sizeSuffix); ok && size.Type() == pcommon.ValueTypeInt {
		declared.Size = size.Int()
	}
	return declared
}
