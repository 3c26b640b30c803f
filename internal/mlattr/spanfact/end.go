// Package spanfact decides what a span says of itself, so that all components say the
// same: whether it failed and by which exception, whether it is a request, and what it
// states of models, tokens, ranks and steps.
package spanfact

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// End is what the attributes of a span state of how it ended.
type End struct {
	// Phase is the span's own phase: one that it inherited is empty.
	Phase string
	// ErrorType is the class of its failure, "" if it states none.
	ErrorType string
	// EpochEnd is true where ml_enrich found that a data loader ended its epoch.
	EpochEnd bool

	inherited bool
}

// EndOf returns the end of a span that a Reader of the vocabulary has read into f.
func EndOf(f *vocabulary.Facts) (e End) {
	e.readEnd(f)
	return e
}

func (e *End) readEnd(f *vocabulary.Facts) {
	e.Phase, e.ErrorType, e.inherited = f.TextAt(vocabulary.SlotPhase), f.TextAt(vocabulary.SlotErrorType), false
	e.EpochEnd, _ = f.BoolAt(vocabulary.SlotEpochEnd)
}

// EndIn returns the end of a span by its canonical attributes.
func EndIn(attrs pcommon.Map) (e End) {
	for key, v := range attrs.All() {
		e.ReadAttribute(key, v)
	}
	return e
}

// ReadAttribute reads a canonical attribute of the span. It reports whether the attribute is
// one of those that say how a span ended.
func (e *End) ReadAttribute(key string, v pcommon.Value) bool {
	switch key {
	case mlattr.Phase:
		if !e.inherited {
			e.Phase, _ = mlattr.ReadText(v)
		}
	case mlattr.CorrelationSource:
		if v.Type() == pcommon.ValueTypeStr && strings.Contains(v.Str(), mlattr.InheritedPhase) {
			e.Phase, e.inherited = "", true
		}
	case mlattr.ErrorType:
		ok := false
		if e.ErrorType, ok = mlattr.ReadText(v); !ok && v.Type() == pcommon.ValueTypeStr && v.Str() != "" {
			e.ErrorType = mlattr.Other // it failed, in whatever encoding
		}
	case mlattr.EpochEnd:
		e.EpochEnd = v.Type() == pcommon.ValueTypeBool && v.Bool()
	default:
		return false
	}
	return true
}

// Failed reports whether the span failed: its status is an error or it states a class
// of failure, and it is not the end of a data loader.
func (e *End) Failed(s ptrace.Span) bool { return e.states(s) && !e.OfLoader(s) }

// LoaderEnded reports whether the span would have failed if it were not the end of a
// data loader.
func (e *End) LoaderEnded(s ptrace.Span) bool { return e.states(s) && e.OfLoader(s) }

func (e *End) states(s ptrace.Span) bool { return isError(s) || e.ErrorType != "" }

// Raised reports whether the status of the span is an error, or an exception left it: it
// has one, and its status is unset or it states a class of failure. The end of a data
// loader is neither.
func (e *End) Raised(s ptrace.Span) bool {
	if isError(s) {
		return !e.OfLoader(s)
	}
	if s.Status().Code() != ptrace.StatusCodeUnset && e.ErrorType == "" {
		return false
	}
	_, raised := Exception(s)
	return raised && !e.OfLoader(s)
}

func isError(s ptrace.Span) bool { return s.Status().Code() == ptrace.StatusCodeError }

// Class returns the class of what ended the span: what it states, or else that of its
// exception, or else the status of HTTP in its status, or "". "_OTHER" is what a span states that does not know its class.
func (e *End) Class(s ptrace.Span) string {
	if e.ErrorType != "" && e.ErrorType != mlattr.Other {
		return e.ErrorType
	}
	if class, _ := ExceptionClass(s); class != "" {
		return class
	}
	if status := mlattr.StatusIn(s.Status().Message()); status != "" {
		return status
	}
	return e.ErrorType
}

// OfLoader reports whether a data loader ended its epoch by what would otherwise be the
// span's failure: a StopIteration or StopAsyncIteration of Python on a span that loads
// data. Without a phase, the name of such a span contains "dataloader". Where neither the
// failure nor an exception names a class, the attribute of an exception is read, or else
// the status.
func (e *End) OfLoader(s ptrace.Span) bool {
	if e.EpochEnd {
		return true
	}
	if e.Phase != mlattr.PhaseDataLoad && !strings.Contains(strings.ToLower(s.Name()), "dataloader") {
		return false
	}
	class := e.Class(s)
	if class == "" || class == mlattr.Other {
		if v, ok := s.Attributes().Get(mlattr.ExceptionType); ok {
			class, _ = mlattr.ReadText(v)
		} else if class = s.Status().Message(); strings.ContainsAny(class, ":( ") {
			class = class[:strings.IndexAny(class, ":( ")]
		}
	}
	switch mlattr.ClassName(mlattr.ErrorClass(class)) {
	case "StopIteration", "StopAsyncIteration":
		return true
	default:
		return false
	}
}

// Exception returns the event of the exception that left a span, the last one, and
// whether there is one.
func Exception(s ptrace.Span) (event ptrace.SpanEvent, raised bool) {
	events := s.Events()
	for i := events.Len() - 1; i >= 0; i-- {
		if event = events.At(i); event.Name() == mlattr.ExceptionEvent {
			return event, true
		}
	}
	return ptrace.SpanEvent{}, false
}

// ExceptionType returns the attribute with the class of the exception that left a span.
func ExceptionType(s ptrace.Span) (class pcommon.Value, ok bool) {
	if event, raised := Exception(s); raised {
		return event.Attributes().Get(mlattr.ExceptionType)
	}
	return class, false
}

// ExceptionClass returns the class of the exception that left a span, "" if it names
// none, and whether there is an exception.
func ExceptionClass(s ptrace.Span) (class string, raised bool) {
	event, raised := Exception(s)
	if raised {
		if v, ok := event.Attributes().Get(mlattr.ExceptionType); ok {
			class, _ = mlattr.ReadText(v)
		}
	}
	return class, raised
}

// RaisedInCall reports whether an exception left a span that is a whole call, and that
// a Reader has read into f. A future may catch the exception and leave the span's
// status unset.
func RaisedInCall(f *vocabulary.Facts, s ptrace.Span) bool {
	if part, _ := f.Call(); part != table.WholeCall {
		return false
	}
	_, raised := Exception(s)
	return raised
}

// ExceptionMessage returns the text of the exception that left a span, or "".
func ExceptionMessage(s ptrace.Span) string {
	if event, raised := Exception(s); raised {
		if v, ok := event.Attributes().Get(mlattr.ExceptionMessage); ok && v.Type() == pcommon.ValueTypeStr {
			return v.Str()
		}
	}
	return ""
}
