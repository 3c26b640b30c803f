package vocabulary_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// TestModelOfParameters shows that a failed call without an answer has the model
// that its parameters name, and that text of any form is safe.
func TestModelOfParameters(t *testing.T) {
	for text, want := range map[string]string{
		`{"model": "tiny-broken", "max_tokens": 1}`:              "tiny-broken",
		`{"tools": [{"model": "no"}], "model":"yes"}`:            "yes",
		`{"a": "model", "b": "\"model\": \"no", "model": "yes"}`: "yes",
		`{"model": 7}`:       "",
		`{"model": "cut off`: "",
		`{"model": "a\nb"}`:  "",
		`{"a\`:               "",
		`model`:              "",
		``:                   "",
		`{"a": "` + strings.Repeat("x", 2000) + `", "model": "too late"}`: "",
	} {
		_, facts := readSpan(t, nil, map[string]any{"openinference.span.kind": "LLM", "llm.invocation_parameters": text})
		assert.Equal(t, want, facts.Text(mlattr.GenAIRequestModel), text)
	}
}

// TestFirstTokenOfAWholeAnswer shows that the time which a client reports for an
// answer that was not streamed is not read, and that each client has its unit.
func TestFirstTokenOfAWholeAnswer(t *testing.T) {
	const first = "gen_ai.server.time_to_first_token"
	for name, tt := range map[string]struct {
		scope string
		attrs map[string]any
		want  float64
	}{
		"seconds":      {"openlit.instrumentation.openai", map[string]any{first: 0.5, "gen_ai.request.stream": true}, 0.5},
		"no stream":    {"openlit.instrumentation.openai", map[string]any{first: 0.5, "gen_ai.request.stream": false}, 0},
		"milliseconds": {"strands.telemetry.tracer", map[string]any{first: 500}, 0.5},
		"nanoseconds":  {"", map[string]any{"gen_ai.user.time_to_first_token": 500_000_000}, 0.5},
	} {
		span := ptrace.NewSpan()
		require.NoError(t, span.Attributes().FromRaw(tt.attrs))
		_, facts := vocabulary.Classify(pcommon.NewMap(), tt.scope, span)
		got, _ := facts.DoubleAt(vocabulary.SlotGenAITimeToFirstChunk)
		assert.InDelta(t, tt.want, got, 1e-9, name)
	}
}

func TestPrintOfAClass(t *testing.T) {
	assert.Equal(t, "openai.APIError", mlattr.ErrorClass("<class 'openai.APIError'>"))
}
