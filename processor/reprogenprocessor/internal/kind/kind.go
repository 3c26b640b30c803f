// Package kind defines a kind of artifacts: what of telemetry it replays, how that
// is read, and what its scripts consist of. Each kind is a package below
// this one; the processor registers them.
package kind

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/attr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/content"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/payload"
)

// Kind is one kind of artifacts. A call is read from the failed span (Recognise
// and Read), or, where no kind recognises that, from the failure as it was kept
// (FromFailure). A function that does not concern a kind is nil.
type Kind struct {
	// Name is the kind's name in artifacts.
	Name failure.Kind

	// Recognise reports whether a span carries a call of this kind. It is called
	// for every failed span.
	Recognise func(ptrace.Span) bool
	// Read reads the call of a span that Recognise knows. Exactly one of its
	// results is set; neither shares memory with the span.
	Read func(ptrace.Span) (*payload.Call, payload.Reason)
	// Missing returns why a span that Recognise does not know has no call, or "".
	Missing func(ptrace.Span) payload.Reason
	// FromFailure reads the call from a failure, and reports whether it is of
	// this kind. It must not change the failure.
	FromFailure func(*failure.Failure) (*payload.Call, payload.Reason, bool)

	// IsPayload reports whether an attribute holds a call that Read decodes. Such
	// an attribute is not copied: its raw text must not reach a file.
	IsPayload func(key string, v pcommon.Value) bool
	// CallAttributes are the attributes that Read needs, of a kind whose calls may
	// be on a span of another trace than the failure.
	CallAttributes []string
	// ForeignFrames reports whether the frames of the stack trace are those of an
	// interpreter and not of the application.
	ForeignFrames bool

	// WithoutContent returns a call's tree without what the program worked on, and
	// lists what was withheld. nil keeps no more than content.Tree does.
	WithoutContent func(jsontree.Object) (jsontree.Object, []content.Withheld)

	// IsTransport reports whether a span is a request that a call of another kind
	// may be made by.
	IsTransport func(pcommon.Map) bool
	// Explains reports whether a span is a call whose error explains that of the
	// request below it.
	Explains func(pcommon.Map) bool
}

// attrKind can only lower what is done with a failure: "context" asks that
// nothing of it be replayed. Other values are ignored, because what can be
// replayed follows from what was sent.
const attrKind = "repro.kind"

// Registry has the kinds in the order in which they are tried.
type Registry []Kind

// Read reads the call of a span. Without one, the kind is Context and the reason is
// set.
func (r Registry) Read(span ptrace.Span) (failure.Kind, *payload.Call, payload.Reason) {
	if attr.Text(span.Attributes(), attrKind) == string(failure.Context) {
		return failure.Context, nil, payload.Unwanted
	}
	if k := r.recognise(span); k != nil {
		call, reason := k.Read(span)
		return kindOf(k.Name, call), call, reason
	}
	for i := range r {
		if r[i].Missing != nil {
			if reason := r[i].Missing(span); reason != "" {
				return failure.Context, nil, reason
			}
		}
	}
	return failure.Context, nil, payload.NoPayload
}

// FromFailure returns a failure without a call as one of a kind that needs none
// on its span, or the failure itself.
func (r Registry) FromFailure(f *failure.Failure) *failure.Failure {
	sent := f.Reason != payload.NoPayload && f.Reason != payload.NoArguments && f.Reason != payload.NoTarget
	if f.Kind != failure.Context || sent {
		return f
	}
	for i := range r {
		if r[i].FromFailure == nil {
			continue
		}
		if call, reason, ok := r[i].FromFailure(f); ok {
			c := *f
			c.Kind, c.Call, c.Reason = kindOf(r[i].Name, call), call, reason
			return &c
		}
	}
	return f
}

func kindOf(name failure.Kind, call *payload.Call) failure.Kind {
	if call == nil {
		return failure.Context
	}
	return name
}

func (r Registry) recognise(span ptrace.Span) *Kind {
	for i := range r {
		if r[i].Recognise != nil && r[i].Recognise(span) {
			return &r[i]
		}
	}
	return nil
}

// Get returns the kind of that name, or one without functions.
func (r Registry) Get(name failure.Kind) Kind {
	for i := range r {
		if r[i].Name == name {
			return r[i]
		}
	}
	return Kind{Name: name}
}

// HasCall reports whether a span has a call of any kind.
func (r Registry) HasCall(span ptrace.Span) bool { return r.recognise(span) != nil }

// HasRemoteCall reports whether a span has a call that a failure of another trace
// may refer to.
func (r Registry) HasRemoteCall(span ptrace.Span) bool {
	for i := range r {
		if len(r[i].CallAttributes) > 0 && r[i].Recognise(span) {
			return true
		}
	}
	return false
}

// CallAttributes returns the attributes of calls that a failure of another trace
// may refer to.
func (r Registry) CallAttributes() (names []string) {
	for i := range r {
		names = append(names, r[i].CallAttributes...)
	}
	return names
}

// IsPayload reports whether an attribute holds a call that is decoded elsewhere.
func (r Registry) IsPayload(key string, v pcommon.Value) bool {
	for i := range r {
		if r[i].IsPayload != nil && r[i].IsPayload(key, v) {
			return true
		}
	}
	return false
}

// IsTransport reports whether a span is a request that another call may be made
// by.
func (r Registry) IsTransport(attributes pcommon.Map) bool {
	for i := range r {
		if r[i].IsTransport != nil && r[i].IsTransport(attributes) {
			return true
		}
	}
	return false
}

// IsCall reports whether a span is a call that explains its request, whether or
// not it has what was asked.
func (r Registry) IsCall(attributes pcommon.Map) bool {
	for i := range r {
		if r[i].Explains != nil && r[i].Explains(attributes) {
			return true
		}
	}
	return false
}

// HasExplanation reports whether a span has what was asked by a call that explains
// its request.
func (r Registry) HasExplanation(span ptrace.Span) bool {
	for i := range r {
		if r[i].Explains != nil && r[i].Recognise(span) {
			return true
		}
	}
	return false
}

// Explains reports whether the error of a span explains that of the request below
// it.
func (r Registry) Explains(span ptrace.Span) bool {
	return r.IsCall(span.Attributes()) || r.HasExplanation(span)
}
