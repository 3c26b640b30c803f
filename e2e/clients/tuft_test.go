package clients

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
	"github.com/otelcol-ml/otelcol-ml/e2e/view"
)

// TestTuFT trains two models through TuFT's own server and client. One of the
// models is in a Ray actor, whose spans TuFT does not export.
func TestTuFT(t *testing.T) {
	truth := harness.RunExample(t, harness.Example{Name: "tuft", Endpoint: overGRPC(t)})
	require.Len(t, truth.Steps, 2, "two training runs")
	spans := jaeger.AwaitSpanCounts(t, truth.Services, truth.Spans)

	t.Run("spans name their training run and session", func(t *testing.T) {
		forwardBackward := map[string]int{}
		for run, steps := range truth.Steps {
			// One more fails.
			forwardBackward[run] = steps + 1
		}
		for _, part := range []string{"training_controller.run_optim_step", "training_backend.optim_step"} {
			assert.Equal(t, truth.Steps, values(named(spans, part), "ml.training_run.id"), part)
			assert.Equal(t, truth.Steps, values(named(spans, part), "ml.run.id"), part)
		}
		for _, part := range []string{"training_controller.run_forward_backward", "training_backend.forward_backward"} {
			assert.Equal(t, forwardBackward, values(named(spans, part), "ml.training_run.id"), part)
		}
		require.Len(t, truth.Keys["session"], 1)
		sessions := values(named(spans, "training_controller.run_optim_step"), "ml.session.id")
		assert.Equal(t, map[string]int{truth.Keys["session"][0]: len(named(spans, "training_controller.run_optim_step"))}, sessions)
	})

	t.Run("each operation names its request", func(t *testing.T) {
		requests := map[string]int{}
		for _, request := range truth.Keys["request"] {
			requests[request] = 1
		}
		assert.Equal(t, requests, values(named(spans, "future_store.execute_operation"), "ml.request.id"))
	})

	t.Run("an adapter's id is what it is used for", func(t *testing.T) {
		assert.Equal(t, values(named(spans, "sampling_controller.run_sample"), "ml.sampling_session.id"),
			values(named(spans, "sampling_backend.add_adapter"), "ml.sampling_session.id"))
		assert.Len(t, truth.Keys["sampling_session"], 2)
	})

	t.Run("a model's spans join the request across threads", func(t *testing.T) {
		model := named(spans, "hf_model.optim_step")
		require.Len(t, values(model, "ml.training_run.id"), 1, "the other model is in a Ray actor")
		for _, span := range model {
			parent, found := parentOf(spans, span)
			require.True(t, found)
			assert.Equal(t, "training_backend.optim_step", parent.Span.Name())
			assert.Equal(t, parent.Attributes["ml.training_run.id"], span.Attributes["ml.training_run.id"])
		}
	})

	t.Run("series", func(t *testing.T) {
		prometheus.AwaitValues(t, `sum by (ml_run_id) (ml_steps_total{job="tuft"})`, "ml_run_id", floats(truth.Steps))
		prometheus.AwaitValues(t, `sum({__name__=~"tuft_sampling_output_tokens.*_sum", job="tuft"})`,
			"", map[string]float64{"": float64(truth.Tokens["sampling"].Output)})
		prometheus.AwaitSeries(t, `{__name__=~"tuft_training_tokens_per_second.*_sum", job="tuft"}`)
		prometheus.AwaitSeries(t, `{__name__=~"tuft_resource_process_memory_used.*", job="tuft"}`)
	})

	t.Run("calls", func(t *testing.T) {
		operation := func(span harness.StoredSpan) string {
			if text, ok := span.Attributes["tuft.operation_type"].(string); ok {
				return text
			}
			_, name, _ := strings.Cut(span.Span.Name(), ".")
			return name
		}
		checkCalls(t, "ml_call_duration_seconds", "tuft", withPrefix(spans, "future_store.execute_operation",
			"training_controller.create_model", "sampling_controller.create_sampling_session"), operation, true)
		// The future of a failed operation has no status to tell by.
		failed, err := prometheus.Scalar(t.Context(), `sum(ml_call_duration_seconds_count{job="tuft", result="error"})`)
		require.NoError(t, err)
		exceptions := 0
		for _, span := range named(spans, "future_store.execute_operation") {
			if span.Span.Events().Len() > 0 {
				exceptions++
			}
		}
		assert.InDelta(t, exceptions, failed, 0)
	})

	t.Run("failures", func(t *testing.T) {
		types := map[string]int{}
		for _, failure := range truth.Errors {
			types[failure.Type]++
			span := spanOf(t, spans, failure)
			assert.Equal(t, "Error", span.Span.Status().Code().String())
		}
		assert.Equal(t, map[string]int{"IndexError": 3, "ray.exceptions.RayTaskError(IndexError)": 2}, types,
			"a model's own error, and Ray's wrapping of the same")

		// The innermost span of each is reported; there is no payload, so the
		// report is all that is written.
		for _, failure := range innermost(spans, truth.Errors) {
			_, artifact := awaitFailure(t, spans, failure)
			verdict, output := harness.Reproduce(t, artifact.Script(), "")
			assert.Equal(t, harness.CannotRun, verdict, output)
		}
	})

	t.Run("Ray's wrapping is no class of its own", func(t *testing.T) {
		prometheus.AwaitValues(t, `sum by (error_type) (ml_errors_total{job="tuft"})`,
			"error_type", map[string]float64{"IndexError": 2})
	})

	t.Run("a future that failed says so in an event only", func(t *testing.T) {
		futures := map[string]harness.StoredSpan{}
		for _, span := range named(spans, "future_store.execute_operation") {
			request, _ := span.Attributes["ml.request.id"].(string)
			futures[request] = span
		}
		operations := map[string]int{}
		for _, request := range truth.Keys["failed_request"] {
			require.Contains(t, futures, request)
			future := futures[request]
			assert.Equal(t, "Unset", future.Span.Status().Code().String(), "TuFT leaves the status as it is")
			assert.Equal(t, 1, future.Span.Events().Len())
			operation, _ := future.Attributes["ml.operation"].(string)
			operations[operation]++
		}
		// Nothing but the event tells of a checkpoint that cannot be loaded.
		assert.Equal(t, map[string]int{"forward_backward": 2, "load_weights": 2}, operations)
	})

	t.Run("logs", func(t *testing.T) {
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			failed := 0
			for _, record := range logs.LogRecords() {
				if strings.HasPrefix(record.Body().Str(), "Future failed ") {
					failed++
				}
			}
			// TuFT bridges its log, and so does the instrumentation that it turns on.
			assert.Equal(c, 2*len(truth.Keys["failed_request"]), failed)
		}, harness.ArrivalTimeout, harness.ArrivalPoll)
	})

	t.Run("the live page", func(t *testing.T) { view.AwaitParity(t, collector) })
}
