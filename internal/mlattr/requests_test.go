package mlattr_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

func TestFinishReasons(t *testing.T) {
	for name, tt := range map[string]struct {
		attributes map[string]any
		want       string
		cut        bool
	}{
		"the conventions":              {map[string]any{"gen_ai.response.finish_reasons": []any{"stop"}}, "stop", false},
		"one of several answers":       {map[string]any{"gen_ai.response.finish_reasons": []any{"stop", 1.5, "length", "stop"}}, "length", true},
		"a single text":                {map[string]any{"gen_ai.response.finish_reasons": "MAX_TOKENS"}, "MAX_TOKENS", true},
		"another client":               {map[string]any{"llm.finish_reason": "max_tokens", "openinference.span.kind": "LLM"}, "max_tokens", true},
		"a client's spelling":          {map[string]any{"ai.response.finishReason": "tool-calls"}, "tool-calls", false},
		"a list in JSON":               {map[string]any{"gen_ai.response.finish_reasons": `["stop", "length"]`}, "length", true},
		"an empty list in JSON":        {map[string]any{"gen_ai.response.finish_reasons": "[]"}, "", false},
		"Python's print":               {map[string]any{"gen_ai.response.finish_reasons": "FinishReason.LENGTH"}, "FinishReason.LENGTH", true},
		"nothing that could be a word": {map[string]any{"gen_ai.response.finish_reasons": []any{}}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			span := ptrace.NewSpan()
			require.NoError(t, span.Attributes().FromRaw(tt.attributes))
			var f vocabulary.Facts
			vocabulary.Default().Span(0, span, &f)
			assert.Equal(t, tt.want, f.Text(mlattr.GenAIFinishReasons))
			assert.Equal(t, tt.cut, mlattr.CutByLength(f.Text(mlattr.GenAIFinishReasons)))
		})
	}
}

// A client's single reason is written as the list of the conventions.
func TestFinishReasonIsWrittenAsAList(t *testing.T) {
	span := ptrace.NewSpan()
	span.Attributes().PutStr("llm.finish_reason", "length")
	span.Attributes().PutStr("openinference.span.kind", "LLM")
	var f vocabulary.Facts
	vocabulary.Default().Span(0, span, &f)
	f.Find(mlattr.GenAIFinishReasons).Put(span.Attributes())
	assert.Equal(t, []any{"length"}, span.Attributes().AsRaw()["gen_ai.response.finish_reasons"])
}
