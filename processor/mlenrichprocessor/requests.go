package mlenrichprocessor

import (
	"cmp"
	"strings"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/spanfact"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

var (
	slotOperation      = vocabulary.SlotOf(mlattr.GenAIOperationName)
	slotOutput         = vocabulary.SlotOf(mlattr.GenAIOutputTokens)
	slotFinish         = vocabulary.SlotOf(mlattr.GenAIFinishReasons)
	slotRequestCounted = vocabulary.SlotOf(mlattr.RequestCounted)
	slotErrorType      = vocabulary.SlotOf(mlattr.ErrorType)
)

// settleRequest adds to the facts of a span that states an operation of a model what
// its client leaves to be concluded: that it only prepares a request, and that the
// request failed though the status is no error.
func settleRequest(f *vocabulary.Facts, span ptrace.Span) {
	if !vocabulary.AsksModel(f.TextAt(slotOperation)) {
		return
	}
	reason := f.TextAt(slotFinish)
	if strings.EqualFold(reason, "error") {
		f.SetText(slotErrorType, mlattr.Other)
		return
	}
	answered := f.At(slotOutput) != nil || reason != ""
	if !answered && f.At(slotRequestCounted) == nil && prepares(span.Name()) {
		f.SetBool(slotRequestCounted, false)
	}
	// A request with an answer has handled its exceptions.
	if end := spanfact.EndOf(f); answered || end.Failed(span) {
		return
	}
	if class, raised := spanfact.ExceptionClass(span); raised {
		f.SetText(slotErrorType, cmp.Or(class, mlattr.Other))
	}
}

// prepares reports whether a span is named after a method that prepares a request,
// such as OpenAI._prepare_chat_with_tools.
func prepares(name string) bool {
	method := strings.TrimLeft(name[strings.LastIndexByte(name, '.')+1:], "_")
	return strings.HasPrefix(method, "prepare")
}
