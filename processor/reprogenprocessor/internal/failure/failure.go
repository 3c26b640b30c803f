// Package failure is a failed span as repro_gen keeps it: a bounded copy that
// outlives the batch it came in.
package failure

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

// SpanKey identifies a span.
type SpanKey struct {
	Trace pcommon.TraceID
	Span  pcommon.SpanID
}

// Kind is what an artifact replays.
type Kind string

// The kinds.
const (
	// PythonCall calls the recorded function with the recorded arguments.
	PythonCall Kind = "python_call"
	// PythonCode runs code that a model wrote and an agent ran.
	PythonCode Kind = "python_code"
	// GenAIChat sends a conversation to a server that its user names.
	GenAIChat Kind = "genai_chat"
	// TrainStep starts a training's program again, with its arguments.
	TrainStep Kind = "train_step"
	// Context replays nothing: it holds what is known, for a person.
	Context Kind = "context"
)

// Replay is what of a failure can be replayed.
type Replay struct {
	// Kind is what can be replayed.
	Kind Kind
	// Reason says why Kind is Context, or is "".
	Reason Reason
	// Call is the decoded payload, or nil.
	Call *Call
	// PayloadFrom is the span that carries the call, where that is one of
	// another trace, or nil.
	PayloadFrom *Origin
}

// Trace is what is known of a failure's trace beside its own span.
type Trace struct {
	// Ancestors are the spans above it that are known, the parent first.
	Ancestors []Span
	// Complete is true if the last ancestor, or the span, has no parent.
	Complete bool
	// Siblings are the other failed spans of the trace.
	Siblings []Span
	// Others are further spans of the trace.
	Others []Span
	// OmittedSpans counts the spans of the trace that were left out.
	OmittedSpans int
}

// Failure is everything that an artifact is made of. It is not changed after
// it was queued.
type Failure struct {
	Replay
	Trace
	// Service and Version are the resource's service.name and service.version, and Rank
	// is the rank of the process in its run. Each may be "".
	Service, Version, Rank string
	// SentBy is the service of the sender.
	SentBy share.Origin
	// Error is what went wrong.
	Error Error
	// Trigger is why there is a failure where no exception is: nan, inf,
	// timeout, oom or crash, or "".
	Trigger string
	// Fingerprint is the group's name.
	Fingerprint string
	// Variant is the failure's variant in its group: shapes, dtypes, the class of
	// the device and the framework's version.
	Variant Variant
	// Weight estimates the bytes that the failure takes in memory.
	Weight int
	// SeenAt is the collector's time.
	SeenAt time.Time
	// Resource is the resource's attributes.
	Resource jsontree.Object
	// Span is the failed span.
	Span Span
	// Recorded is what log records have of the call, in the order in which they came.
	Recorded []Recorded
	// GPUs has a line for each GPU of the process, as it was then.
	GPUs []string
	// Content is "withheld" if content was: what a program worked on, and what people
	// wrote. Otherwise it is "".
	Content string
}

// Variant is a form of a failure.
type Variant struct {
	// ID is a short hash of Text.
	ID string
	// Text names what the variant is made of, or is "".
	Text string
}

// Recorded is a part of a call, as a log record of its span has it.
type Recorded struct {
	// Key says which part, and Text is its JSON.
	Key, Text string
}

// Origin names a span.
type Origin struct {
	// Service is the service.name of its resource.
	Service string `json:"service"`
	// Name is the span's name.
	Name string `json:"span"`
	// TraceID and SpanID are in hexadecimal.
	TraceID string `json:"trace_id"`
	SpanID  string `json:"span_id"`
}

// Error is an exception as telemetry names it.
type Error struct {
	// Type is the exception's class as the client named it, or "".
	Type string
	// Message is the exception's text, or what of it is the program's own if the text
	// itself is withheld, or "".
	Message string
	// Stack is the stack trace, or "".
	Stack string
	// Cause is the root cause that Stack shows.
	Cause Cause
}

// Frame is one call of a Python stack trace.
type Frame struct {
	// Module is the file's folder and name without extension.
	Module string `json:"module"`
	// Function is the name of the code object.
	Function string `json:"function"`
}

// Cause is the exception that began a chain, with the application's frames.
type Cause struct {
	// Type is the exception's class as the trace names it, or "".
	Type string
	// Frames are the application's frames, the innermost first, each once.
	Frames []Frame
}

// Span is the copy of a span.
type Span struct {
	// Name is the span's name.
	Name string `json:"name"`
	// Kind is the span's kind, or "Log" for a log record.
	Kind string `json:"kind"`
	// TraceID, SpanID and ParentID are in hexadecimal; a root's ParentID is "".
	TraceID  string `json:"trace_id"`
	SpanID   string `json:"span_id"`
	ParentID string `json:"parent_span_id"`
	// Scope is the name of the instrumentation scope.
	Scope string `json:"scope"`
	// Start and End are by the sender's clock.
	Start  time.Time `json:"start"`
	End    time.Time `json:"end"`
	Status Status    `json:"status"`
	// Attributes are the span's, without the payload.
	Attributes jsontree.Object `json:"attributes"`
	// Events and Links are in the order in which they came.
	Events []Event `json:"events"`
	Links  []Link  `json:"links"`
	// Omitted counts the attributes, events and links that were left out,
	// and the values that were cut.
	Omitted int `json:"omitted"`
}

// Status is the name of a span's status code, and its text.
type Status struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Event is the copy of a span event.
type Event struct {
	Name       string          `json:"name"`
	Time       time.Time       `json:"time"`
	Attributes jsontree.Object `json:"attributes"`
}

// Link is the copy of a span link.
type Link struct {
	TraceID string `json:"trace_id"`
	SpanID  string `json:"span_id"`
}
