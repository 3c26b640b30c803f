// Package failure is a failed span as repro_gen keeps it: a bounded copy that
// outlives the batch it came in.
package failure

import (
	"time"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/fingerprint"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/payload"
)

// Kind says what an artefact can do.
type Kind string

// The kinds.
const (
	// PythonCall calls the recorded function with the recorded arguments.
	PythonCall Kind = "python_call"
	// Context replays nothing: it holds what is known, for a person.
	Context Kind = "context"
)

// Failure is everything that an artefact is made of. It is not changed after
// it was queued.
type Failure struct {
	// Kind is what can be replayed.
	Kind Kind
	// Reason says why Kind is Context, or is "".
	Reason payload.Reason
	// Service is the resource's service.name.
	Service string
	// Error is what went wrong.
	Error Error
	// Call is the decoded payload, or nil.
	Call *payload.Call
	// Fingerprint is the group's name.
	Fingerprint string
	// Weight estimates the bytes that the failure takes in memory.
	Weight int
	// SeenAt is the collector's time.
	SeenAt time.Time

	// Resource is the resource's attributes.
	Resource jsontree.Object
	// Span is the failed span.
	Span Span
	// Ancestors are the spans above it that were in the same batch, the
	// parent first.
	Ancestors []Span
	// Complete is true if the last ancestor, or the span, has no parent.
	Complete bool
}

// Error is an exception as telemetry names it.
type Error struct {
	// Type is the exception's class as the client named it, or "".
	Type string
	// Message is the exception's text, or "".
	Message string
	// Stack is the stack trace, or "".
	Stack string
	// Cause is what Stack says.
	Cause fingerprint.Cause
}

// Span is the copy of a span.
type Span struct {
	Name          string
	Kind          string
	TraceID       string
	SpanID        string
	ParentID      string
	Scope         string
	Start, End    time.Time
	Status        string
	StatusMessage string
	Attributes    jsontree.Object
	Events        []Event
	Links         []Link
	// Omitted counts the attributes, events and links that were left out,
	// and the values that were cut.
	Omitted int
}

// Event is the copy of a span event.
type Event struct {
	Name       string
	Time       time.Time
	Attributes jsontree.Object
}

// Link is the copy of a span link.
type Link struct {
	TraceID string
	SpanID  string
}
