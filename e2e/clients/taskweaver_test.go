package clients

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
	"github.com/otelcol-ml/otelcol-ml/e2e/view"
)

// TestTaskWeaver has conversations with an agent loop that sends what
// TaskWeaver does.
func TestTaskWeaver(t *testing.T) {
	truth := harness.RunExample(t, harness.Example{Name: "taskweaver", Endpoint: overGRPC(t)})
	const service = "taskweaver.otlp.tracer"
	require.Equal(t, []string{service}, truth.Services)
	spans := jaeger.AwaitSpanCounts(t, truth.Services, truth.Spans)

	t.Run("a round is a request of a session", func(t *testing.T) {
		rounds, sessions := map[string]int{}, map[string]int{}
		for _, round := range truth.Keys["round"] {
			rounds[round] = 1
		}
		for _, session := range truth.Keys["session"] {
			sessions[session] = len(truth.Keys["round"]) / len(truth.Keys["session"])
		}
		messages := named(spans, "Session.send_message")
		assert.Equal(t, rounds, values(messages, "ml.request.id"))
		assert.Equal(t, sessions, values(messages, "ml.session.id"))
		assert.Equal(t, sessions, values(messages, "gen_ai.conversation.id"))
	})

	t.Run("tokens are on the span of the role that used them", func(t *testing.T) {
		spanOf := map[string]string{"Planner": "Planner.reply", "CodeGenerator": "CodeGenerator.reply", "RoundCompressor": "RoundCompressor._summarize"}
		require.Len(t, truth.Tokens, len(spanOf))
		for role, tokens := range truth.Tokens {
			var input, output int64
			for _, span := range named(spans, spanOf[role]) {
				assert.Equal(t, true, span.Attributes["ml.tokens.estimated"])
				assert.Equal(t, role, span.Attributes["ml.role"])
				in, _ := span.Attributes["gen_ai.usage.input_tokens"].(int64)
				out, _ := span.Attributes["gen_ai.usage.output_tokens"].(int64)
				input, output = input+in, output+out
			}
			assert.EqualValues(t, tokens.Input, input, role)
			assert.EqualValues(t, tokens.Output, output, role)
		}
	})

	t.Run("series", func(t *testing.T) {
		all := map[string]float64{}
		for role, tokens := range truth.Tokens {
			prometheus.AwaitValues(t, `sum by (gen_ai_token_type) (ml_tokens_total{job="`+service+`", ml_role="`+role+`"})`,
				"gen_ai_token_type", map[string]float64{"input": float64(tokens.Input), "output": float64(tokens.Output)})
			all["input"] += float64(tokens.Input)
			all["output"] += float64(tokens.Output)
		}
		prometheus.AwaitValues(t, `sum by (direction) (prompt_size_total{job="`+service+`"})`, "direction", all)
		prometheus.AwaitValues(t, `sum by (gen_ai_token_type) (prompt_size_total{job="`+service+`"})`, "gen_ai_token_type", all)
	})

	t.Run("calls", func(t *testing.T) {
		function := func(span harness.StoredSpan) string {
			return strings.TrimPrefix(span.Span.Name(), "CodeExecutor.")
		}
		checkCalls(t, "ml_call_duration_seconds", service, withPrefix(spans, "CodeExecutor.execute_code", "load_plugin"), function, true)
		checkCalls(t, "ml_call_python_time_seconds", service, named(spans, "run_code"), constant("execute_code"), true)
		checkCalls(t, "ml_call_queue_time_seconds", service, named(spans, "start"), constant("execute_code"), true)
	})

	t.Run("code that fails", func(t *testing.T) {
		require.Len(t, truth.Errors, 4, "the executor and the interpreter, in each conversation")
		for _, failure := range truth.Errors {
			span := spanOf(t, spans, failure)
			assert.Zero(t, span.Span.Events().Len(), "there is a status and no exception")
		}
		// The executor says how it ended, and the interpreter above it what ran:
		// that is the one to run again.
		deepest := innermost(spans, truth.Errors)
		earlier := filepath.Join(t.TempDir(), "earlier.py")
		require.NoError(t, os.WriteFile(earlier, []byte("import statistics\nnumbers = [1, 2, 3]\n"), 0o600))
		for _, failure := range truth.Errors {
			if slices.Contains(deepest, failure) {
				failed := spanOf(t, spans, failure)
				assert.Equal(t, "CodeExecutor.execute_code", failed.Span.Name())
				assert.Contains(t, failed.Attributes["result"], "statistics.StatisticsError")
				continue
			}
			failed, artifact := awaitFailure(t, spans, failure)
			assert.Equal(t, "CodeInterpreter.reply", failed.Span.Name())
			verdict, output := harness.Reproduce(t, artifact.Script(), "")
			assert.Equal(t, harness.Refused, verdict, output)
			verdict, output = harness.Reproduce(t, artifact.Script(), "", "--allow-side-effects")
			assert.Equal(t, harness.CannotRun, verdict, "a step before this one imported the module: %s", output)
			verdict, output = harness.Reproduce(t, artifact.Script(), "", "--allow-side-effects", "--setup", earlier)
			assert.Equal(t, harness.Reproduced, verdict, output)
			assert.Contains(t, output, "StatisticsError")
		}
	})

	t.Run("the live page", func(t *testing.T) { view.AwaitParity(t, collector) })
}
