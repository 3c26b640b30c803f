package artifact

import (
	"slices"

	"github.com/otelcol-ml/otelcol-ml/internal/content"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/redact"
)

// WithoutContent returns a copy of the failure without its call, in which names of code,
// ids and numbers are left, and nothing of what the program worked on.
func WithoutContent(f *failure.Failure) *failure.Failure {
	out := *f
	if f.Call != nil {
		out = *WithoutCall(f, failure.Withheld)
	}
	out.Content = "withheld"
	out.Service, out.Rank = redact.Word(f.Service), redact.Word(f.Rank)
	out.Error.Type = content.ErrorType(f.Error.Type)
	out.Error.Message, out.Error.Stack = content.Template(f.Error.Message), ""
	out.Error.Cause.Type = content.ErrorType(f.Error.Cause.Type)
	out.Error.Cause.Frames = slices.Clone(f.Error.Cause.Frames)
	for i, frame := range out.Error.Cause.Frames {
		out.Error.Cause.Frames[i].Module, out.Error.Cause.Frames[i].Function = redact.FilePath(frame.Module), redact.FilePath(frame.Function)
	}
	out.Resource = redact.Attributes(f.Resource)
	out.Span = spanWithoutContent(f.Span)
	out.Ancestors = mlattr.Mapped(f.Ancestors, spanWithoutContent)
	out.Siblings = mlattr.Mapped(f.Siblings, spanWithoutContent)
	out.Others = mlattr.Mapped(f.Others, spanWithoutContent)
	if f.PayloadFrom != nil {
		from := *f.PayloadFrom
		from.Name, from.Service = redact.SpanName(from.Name), redact.Word(from.Service)
		out.PayloadFrom = &from
	}
	out.GPUs = nil
	return &out
}

func spanWithoutContent(s failure.Span) failure.Span {
	s.Name = redact.SpanName(s.Name)
	s.Scope = redact.Word(s.Scope)
	s.Status.Message = content.Template(s.Status.Message)
	s.Attributes = redact.Attributes(s.Attributes)
	s.Events = slices.Clone(s.Events)
	for i := range s.Events {
		s.Events[i].Name = redact.SpanName(s.Events[i].Name)
		s.Events[i].Attributes = redact.Attributes(s.Events[i].Attributes)
	}
	return s
}
