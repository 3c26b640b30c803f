package scenario

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
)

func TestTuFTVocabulary(t *testing.T) {
	out := send(t, "tuft", 120)
	own := out.matching(func(s *sentlog.Span) bool { return s.Scope.Name != "opentelemetry.instrumentation.fastapi" })
	assert.Equal(t, []string{
		"future_store.execute_operation",
		"hf_model.create_adapter", "hf_model.forward", "hf_model.forward_backward", "hf_model.load_state",
		"hf_model.optim_step", "hf_model.save_state",
		"oai.proxy_inference",
		"redis.DEL", "redis.GET", "redis.SCAN", "redis.SET",
		"sampling_backend.add_adapter", "sampling_backend.remove_adapter", "sampling_backend.sample",
		"sampling_controller.create_sampling_session", "sampling_controller.run_sample",
		"training_backend.create_adapter", "training_backend.forward", "training_backend.forward_backward",
		"training_backend.load_state", "training_backend.optim_step", "training_backend.remove_adapter", "training_backend.save_state",
		"training_controller.create_model", "training_controller.run_forward", "training_controller.run_forward_backward",
		"training_controller.run_optim_step", "training_controller.save_checkpoint",
	}, names(own))
	assert.Equal(t, []string{
		"db.operation", "db.system", "oai.base_model", "oai.endpoint", "oai.lora_id", "oai.model", "oai.user_id",
		"tuft.backward", "tuft.base_model", "tuft.checkpoint_type", "tuft.data_count", "tuft.has_lora", "tuft.learning_rate",
		"tuft.lora_alpha", "tuft.lora_id", "tuft.lora_rank", "tuft.loss_fn", "tuft.model_id", "tuft.num_micro_batches",
		"tuft.num_samples", "tuft.operation_type", "tuft.optimizer", "tuft.request_id", "tuft.sampling_session_id",
		"tuft.session_id", "tuft.training_run_id",
	}, keys(own))
	assert.Equal(t, []string{
		"http.server.active_requests sum {request}", "http.server.duration histogram ms",
		"http.server.request.size histogram By", "http.server.response.size histogram By",
		"tuft.futures.completed sum", "tuft.futures.created sum", "tuft.futures.execution_time histogram s",
		"tuft.futures.queue_length sum", "tuft.futures.wait_time histogram s", "tuft.redis.operation.duration histogram s",
		"tuft.resource.cpu.utilization_percent gauge %", "tuft.resource.gpu.memory_total_bytes gauge bytes",
		"tuft.resource.gpu.memory_used_bytes gauge bytes", "tuft.resource.gpu.utilization_percent gauge %",
		"tuft.resource.memory.total_bytes gauge bytes", "tuft.resource.memory.used_bytes gauge bytes",
		"tuft.resource.memory.utilization_percent gauge %", "tuft.resource.process.memory_used_bytes gauge bytes",
		"tuft.sampling.duration histogram s", "tuft.sampling.output_tokens histogram tokens", "tuft.sampling.requests sum",
		"tuft.sampling.sessions.active sum", "tuft.sampling.tokens_per_second histogram tokens/s",
		"tuft.training.checkpoint.size_bytes histogram bytes", "tuft.training.checkpoints.saved sum",
		"tuft.training.models.active sum", "tuft.training.tokens_per_second histogram tokens/s",
	}, metricNames(out.metrics))
	for _, key := range keys(own) {
		assert.NotContains(t, key, "token", "spans carry no token counts")
	}
}

// TestTuFTChain follows a future from the HTTP request to the model.
func TestTuFTChain(t *testing.T) {
	out := send(t, "tuft", 120)
	byID := map[string]*sentlog.Span{}
	order := map[string]int{}
	for i, span := range out.spans {
		byID[span.SpanID] = span
		order[span.SpanID] = i
	}
	steps := out.named("hf_model.optim_step")
	require.NotEmpty(t, steps)
	for _, span := range steps {
		var chain []string
		for at := span; at != nil; at = byID[at.ParentSpanID] {
			chain = append(chain, at.Name)
		}
		assert.Equal(t, []string{
			"hf_model.optim_step", "training_backend.optim_step", "training_controller.run_optim_step",
			"future_store.execute_operation", "POST /api/v1/optim_step",
		}, chain)
	}
	for _, span := range out.named("future_store.execute_operation") {
		server := byID[span.ParentSpanID]
		require.NotNil(t, server)
		assert.Equal(t, "server", server.Kind)
		assert.Less(t, server.EndUnixNano, span.EndUnixNano, "the request is answered before the work is done")
		assert.Less(t, order[server.SpanID], order[span.SpanID], "so the root is sent first")
	}
}

// TestTuFTRaySpans shows the run whose model is in an actor, which sends nothing.
func TestTuFTRaySpans(t *testing.T) {
	out := send(t, "tuft", 60)
	traced := map[any]bool{}
	for _, span := range out.spans {
		if strings.HasPrefix(span.Name, "hf_model.") {
			traced[span.Attributes["tuft.lora_id"]] = true
		}
	}
	runs := map[any]bool{}
	for _, span := range out.named("training_backend.forward_backward") {
		runs[span.Attributes["tuft.lora_id"]] = true
	}
	assert.Len(t, runs, 2)
	assert.Len(t, traced, 1)
}

func TestTuFTFailure(t *testing.T) {
	out := send(t, "tuft", 120)
	require.NotZero(t, out.truth.FailureCount)
	stores, models, actors := 0, 0, 0
	for _, failure := range out.truth.Failures {
		for _, span := range out.spans {
			if span.TraceID != failure.TraceID {
				continue
			}
			switch {
			case span.Name == "future_store.execute_operation":
				stores++
				assert.Equal(t, "unset", span.Status.Code, "the store catches the exception and sets no status")
				require.Len(t, span.Events, 1)
				assert.Equal(t, failure.ExceptionType, span.Events[0].Attributes["exception.type"])
			case strings.HasPrefix(span.Name, "hf_model."):
				models++
				assert.Equal(t, "torch.OutOfMemoryError", failure.ExceptionType)
				assert.Equal(t, "error", span.Status.Code)
				assert.Len(t, span.Events, 1)
			case strings.HasPrefix(span.Name, "training_"):
				assert.Equal(t, "error", span.Status.Code)
				_, class, _ := strings.Cut(failure.ExceptionType, ".")
				class = strings.TrimPrefix(class, "exceptions.")
				assert.Equal(t, class+": "+failure.ExceptionMessage, span.Status.Message)
				assert.Contains(t, span.Status.Message, "OutOfMemoryError: CUDA out of memory")
			case strings.HasPrefix(span.Name, "POST"):
				assert.Equal(t, "unset", span.Status.Code, "the request was accepted")
			}
		}
		if failure.ExceptionType == "ray.exceptions.RayTaskError(OutOfMemoryError)" {
			actors++
		}
	}
	assert.Equal(t, int(out.truth.FailureCount), stores)
	assert.NotZero(t, models)
	assert.NotZero(t, actors)
	assert.Equal(t, int(out.truth.FailureCount), models+actors)
	answers := map[any]int{}
	for _, span := range out.named("POST /api/v1/retrieve_future") {
		answers[span.Attributes["http.status_code"]]++
		assert.Equal(t, "unset", span.Status.Code)
	}
	assert.Equal(t, stores, answers[int64(422)], "the failure is told to the client, as the client's fault")
}

// TestTuFTRequests shows which operations are done within the request, and what
// no request knows about.
func TestTuFTRequests(t *testing.T) {
	out := send(t, "tuft", 120)
	parents := map[string]string{}
	byID := map[string]*sentlog.Span{}
	for _, span := range out.spans {
		byID[span.SpanID] = span
	}
	roots := map[string]int{}
	for _, span := range out.spans {
		if parent := byID[span.ParentSpanID]; parent != nil {
			parents[span.Name] = parent.Name
		} else {
			roots[span.Name]++
		}
	}
	assert.Equal(t, "POST /api/v1/create_model", parents["training_controller.create_model"])
	assert.Equal(t, "POST /api/v1/unload_model", parents["training_backend.remove_adapter"])
	for _, span := range out.named("future_store.execute_operation") {
		operation := span.Attributes["tuft.operation_type"]
		assert.NotContains(t, []string{"create_model", "unload_model"}, operation)
		server := byID[span.ParentSpanID]
		assert.Equal(t, int64(202), server.Attributes["http.status_code"])
		if operation == "forward" {
			assert.Equal(t, "POST /api/v1/forward_backward", server.Name)
		}
	}
	assert.NotZero(t, roots["redis.SET"], "what a pool's thread stores is a root")
	assert.Less(t, roots["redis.SET"], len(out.named("redis.SET")))
	for _, span := range out.named("sampling_backend.sample") {
		assert.NotContains(t, span.Attributes, "tuft.lora_id")
	}
	for _, point := range out.last("tuft.futures.created") {
		model := point.Attributes["model_id"]
		assert.Equal(t, point.Attributes["operation_type"] == "sample", model == "", "%v", point.Attributes)
	}
}

func TestTuFTTruth(t *testing.T) {
	out := send(t, "tuft", 120)
	steps := map[string]int64{}
	for _, span := range out.named("training_controller.run_optim_step") {
		steps[span.Attributes["tuft.training_run_id"].(string)]++
	}
	assert.Equal(t, steps, out.truth.Steps)
	tokens := 0.0
	for _, point := range out.last("tuft.sampling.output_tokens") {
		assert.Empty(t, point.Attributes)
		tokens += point.Sum
	}
	assert.InDelta(t, out.truth.Tokens["sampling"]["output"], tokens, 0)
	active := 0.0
	for _, point := range out.last("tuft.training.models.active") {
		assert.False(t, point.Monotonic)
		active += point.Value
	}
	assert.InDelta(t, 2, active, 0, "each client has one model at a time")
}

func TestTuFTGPUs(t *testing.T) {
	points := send(t, "tuft", 20).last("tuft.resource.gpu.memory_used_bytes")
	ids := map[any]bool{}
	for _, point := range points {
		ids[point.Attributes["gpu_id"]] = true
		assert.True(t, point.Int)
	}
	assert.Equal(t, map[any]bool{"0": true, "1": true}, ids)
}

func TestTuFTLogs(t *testing.T) {
	out := send(t, "tuft", 120)
	byID := map[string]*sentlog.Span{}
	for _, span := range out.spans {
		byID[span.SpanID] = span
	}
	errors, alone, placed := 0, 0, 0
	for _, log := range out.logs {
		if _, ok := log.Attributes["code.function.name"]; ok {
			placed++
		}
		if log.TraceID == "" {
			alone++
			assert.Equal(t, "0", log.Attributes["otelTraceID"])
			continue
		}
		assert.Equal(t, log.TraceID, log.Attributes["otelTraceID"])
		assert.Equal(t, log.SpanID, log.Attributes["otelSpanID"])
		span := byID[log.SpanID]
		require.NotNil(t, span, log.Body)
		if request, ok := span.Attributes["tuft.request_id"]; ok {
			assert.Contains(t, log.Body, request)
		}
		if log.Severity == "ERROR" {
			errors++
			assert.Contains(t, log.Attributes["exception.type"], "OutOfMemoryError")
		}
	}
	assert.Equal(t, 2, alone, "the server's start is logged outside any trace")
	assert.Equal(t, 2*int(out.truth.FailureCount), errors)
	assert.Equal(t, len(out.logs), 2*placed, "each record is sent twice, once with its place in the code")
}
