// Package kind defines a kind of artifacts: what of telemetry it replays, how that
// is read, and what its scripts consist of. Each kind is a package below
// this one; the processor registers them.
package kind

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/attr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/python"
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
	Read func(ptrace.Span) (*failure.Call, failure.Reason)
	// Missing returns why a span that Recognise does not know has no call, or "".
	Missing func(ptrace.Span) failure.Reason
	// FromFailure reads the call from a failure, and reports whether it is of
	// this kind. It must not change the failure.
	FromFailure func(*failure.Failure) (*failure.Call, failure.Reason, bool)

	// IsPayload reports whether an attribute holds a call that Read decodes. Such
	// an attribute is not copied: its raw text must not reach a file.
	IsPayload func(key string, v pcommon.Value) bool
	// CallAttributes are the attributes that Read needs, of a kind whose calls may
	// be on a span of another trace than the failure.
	CallAttributes []string
	// ForeignFrames reports whether the frames of the stack trace are those of an
	// interpreter and not of the application.
	ForeignFrames bool

	// Parts returns the names of the script's own parts for a SPEC, in their order:
	// the files script/NAME.py.tmpl of Files, and of those that all kinds share. nil
	// means that nothing is replayed.
	Parts func(spec jsontree.Object) []string
	Files fs.FS
	// TakesSeed reports whether the script seeds random numbers.
	TakesSeed bool
	// Flags returns the flags that the script cannot do without, each after a space and
	// before a word in capitals, which stands for what its user knows and telemetry
	// does not. None of them permits anything: telemetry chose what would be permitted.
	Flags func(spec jsontree.Object) string
	// Needs returns what a replay needs beside flags, such as a Python module: short
	// phrases of printable ASCII, none of them chosen freely by telemetry.
	Needs func(spec jsontree.Object) []string
	// Head writes the call as the script's first lines show it.
	Head func(h *Head, spec jsontree.Object)

	// Explains reports whether the error of a call explains that of the HTTP request
	// below it.
	Explains bool
}

// Parts are names of a script's parts, in their order.
type Parts []string

// Add adds parts that are needed.
func (p *Parts) Add(needed bool, names ...string) {
	if needed {
		*p = append(*p, names...)
	}
}

const (
	// MaxHeadText is the length of a line's text.
	MaxHeadText = 107
	// MaxHeadLines is how many lines may show the call.
	MaxHeadLines = 16
)

// Head is the beginning of a script, for a person.
type Head struct{ strings.Builder }

// Add writes a line; one that is too long is cut. Whatever the text is, the line has
// printable ASCII alone, and no two single quotes in a row.
func (h *Head) Add(label, text string) {
	text = strings.ReplaceAll(python.Spelled(text, false), "''", `'\x27`)
	if len(text) > MaxHeadText {
		text = text[:MaxHeadText-4] + " ..."
	}
	fmt.Fprintf(&h.Builder, "%-10s %s\n", label, text)
}

// List writes a line for each text, and how many there are beyond limit.
func (h *Head) List(label string, texts []string, limit int) {
	for i, text := range texts {
		if i == limit {
			h.Add("", fmt.Sprintf("... (%d more)", len(texts)-limit))
			return
		}
		h.Add(label, text)
		label = ""
	}
}

// SetFlag returns the flag that gives withheld values, if a value at one of the
// paths or below was withheld, or "".
func SetFlag(spec jsontree.Object, paths ...string) string {
	for _, v := range spec.Array("redacted") {
		entry, _ := v.(jsontree.Object)
		for _, path := range paths {
			if rest, below := strings.CutPrefix(entry.Text("path"), path); below && (rest == "" || rest[0] == '.' || rest[0] == '[') {
				return " --set PATH=VALUE"
			}
		}
	}
	return ""
}

// attrKind can only lower what is done with a failure: "context" asks that
// nothing of it be replayed. Other values are ignored, because what can be
// replayed follows from what was sent.
const attrKind = "repro.kind"

// Registry has the kinds in the order in which they are tried.
type Registry []*Kind

// Read reads the call of a span. Without one, the kind is Context and the reason is
// set.
func (r Registry) Read(span ptrace.Span) failure.Replay {
	if mlattr.FirstText(span.Attributes(), attrKind) == string(failure.Context) {
		return failure.Replay{Kind: failure.Context, Reason: failure.Unwanted}
	}
	if k := r.recognise(span); k != nil {
		return k.replay(k.Read(span))
	}
	for _, k := range r {
		if k.Missing != nil {
			if reason := k.Missing(span); reason != "" {
				return failure.Replay{Kind: failure.Context, Reason: reason}
			}
		}
	}
	return failure.Replay{Kind: failure.Context, Reason: failure.NoPayload}
}

// FromFailure returns a failure without a call as one of a kind that needs none
// on its span, or the failure itself.
func (r Registry) FromFailure(f *failure.Failure) *failure.Failure {
	sent := f.Reason != failure.NoPayload && f.Reason != failure.NoArguments && f.Reason != failure.NoTarget
	if f.Kind != failure.Context || sent {
		return f
	}
	for _, k := range r {
		if k.FromFailure == nil {
			continue
		}
		if call, reason, ok := k.FromFailure(f); ok {
			c := *f
			c.Replay = k.replay(call, reason)
			return &c
		}
	}
	return f
}

// replay returns what a kind read: a call, or the reason why there is none.
func (k *Kind) replay(call *failure.Call, reason failure.Reason) failure.Replay {
	if call == nil {
		return failure.Replay{Kind: failure.Context, Reason: reason}
	}
	return failure.Replay{Kind: k.Name, Call: call}
}

func (r Registry) recognise(span ptrace.Span) *Kind {
	i := slices.IndexFunc(r, func(k *Kind) bool { return k.Recognise != nil && k.Recognise(span) })
	if i < 0 {
		return nil
	}
	return r[i]
}

// Get returns the kind of that name, or one that replays nothing.
func (r Registry) Get(name failure.Kind) *Kind {
	if i := slices.IndexFunc(r, func(k *Kind) bool { return k.Name == name }); i >= 0 {
		return r[i]
	}
	return &Kind{Name: name}
}

// HasCall reports whether a span has a call of any kind.
func (r Registry) HasCall(span ptrace.Span) bool { return r.recognise(span) != nil }

// HasRemoteCall reports whether a span has a call that a failure of another trace
// may refer to.
func (r Registry) HasRemoteCall(span ptrace.Span) bool {
	return slices.ContainsFunc(r, func(k *Kind) bool { return len(k.CallAttributes) > 0 && k.Recognise(span) })
}

// CallAttributes returns the attributes of calls that a failure of another trace
// may refer to.
func (r Registry) CallAttributes() (names []string) {
	for _, k := range r {
		names = append(names, k.CallAttributes...)
	}
	return names
}

// IsPayload reports whether an attribute holds a call that is decoded elsewhere.
func (r Registry) IsPayload(key string, v pcommon.Value) bool {
	return slices.ContainsFunc(r, func(k *Kind) bool { return k.IsPayload != nil && k.IsPayload(key, v) })
}

// HasExplanation reports whether a span has what was asked by a call that explains
// its request.
func (r Registry) HasExplanation(span ptrace.Span) bool {
	return slices.ContainsFunc(r, func(k *Kind) bool { return k.Explains && k.Recognise(span) })
}

// Explains reports whether the error of a span explains that of the request below
// it.
func (r Registry) Explains(span ptrace.Span) bool {
	return attr.IsModelCall(span.Attributes()) || r.HasExplanation(span)
}
