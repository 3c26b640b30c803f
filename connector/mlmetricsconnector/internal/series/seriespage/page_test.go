package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
)

func TestPageIsGeneratedFromTheTable(t *testing.T) {
	committed, err := os.ReadFile("../../../series.md")
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "series.md")
	require.NoError(t, run([]string{file}))
	page, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(page), string(committed), "run go generate")
	for _, s := range series.All {
		assert.True(t, bytes.Contains(page, []byte("\n## "+s.Name+"\n")), s.Name)
	}
}

func TestWithoutAFileNothingIsWritten(t *testing.T) {
	require.ErrorContains(t, run(nil), "want one argument")
}

// TestPrometheusNames pins the names that dashboards and alerts rely on.
func TestPrometheusNames(t *testing.T) {
	want := map[series.ID]string{
		series.Tokens:                  "ml_tokens_total",
		series.RequestTokenThroughput:  "ml_request_token_throughput_per_second",
		series.Cost:                    "ml_cost_USD_total",
		series.UserCost:                "ml_user_cost_USD_total",
		series.RequestsUnpriced:        "ml_requests_unpriced_total",
		series.RunGPUPrice:             "ml_run_gpu_price_USD_per_hour",
		series.GPUPrice:                "ml_gpu_price_USD_per_hour",
		series.Requests:                "ml_requests_total",
		series.Errors:                  "ml_errors_total",
		series.Steps:                   "ml_steps_total",
		series.Samples:                 "ml_samples_total",
		series.Batches:                 "ml_batches_total",
		series.Epoch:                   "ml_epoch",
		series.Loss:                    "ml_loss",
		series.ValidationMetric:        "ml_validation_metric",
		series.LearningRate:            "ml_learning_rate",
		series.Nonfinite:               "ml_nonfinite_total",
		series.LastStepTimestamp:       "ml_run_last_step_timestamp_seconds",
		series.StepDuration:            "ml_step_duration_seconds",
		series.RunTime:                 "ml_run_time_seconds_total",
		series.RunState:                "ml_run_state",
		series.RunAttempts:             "ml_run_attempts_total",
		series.FLOPsPerToken:           "ml_flops_per_token",
		series.CallDuration:            "ml_call_duration_seconds",
		series.CallQueueTime:           "ml_call_queue_time_seconds",
		series.CallSerializeTime:       "ml_call_serialize_time_seconds",
		series.CallPythonTime:          "ml_call_python_time_seconds",
		series.CallTime:                "ml_call_time_seconds_total",
		series.CriticalPathTime:        "ml_critical_path_time_seconds_total",
		series.CallsSlow:               "ml_calls_slow_total",
		series.PoolSize:                "ml_pool_size",
		series.PoolBusy:                "ml_pool_busy",
		series.PoolIdle:                "ml_pool_idle",
		series.WorkerCrashes:           "ml_worker_crashes_total",
		series.BreakerOpenings:         "ml_breaker_openings_total",
		series.HealthAlerts:            "ml_health_alerts_total",
		series.MemoryAllocated:         "ml_memory_allocated_bytes",
		series.GPUMemoryUsage:          "ml_gpu_memory_usage_bytes",
		series.GPUIdleTime:             "ml_gpu_idle_time_seconds",
		series.RequestErrorRatio:       "ml_request_error_ratio",
		series.ProblemOnset:            "ml_problem_onset_timestamp_seconds",
		series.RunStepTime:             "ml_run_step_time_seconds",
		series.RunTokenThroughput:      "ml_run_token_throughput_per_second",
		series.RunTimeRatio:            "ml_run_time_ratio",
		series.RunGoodput:              "ml_run_goodput_ratio",
		series.RunBound:                "ml_run_bound",
		series.RunStateTimestamp:       "ml_run_state_timestamp_seconds",
		series.RunLastData:             "ml_run_last_data_timestamp_seconds",
		series.HostLastData:            "ml_host_last_data_timestamp_seconds",
		series.RunGPUs:                 "ml_run_gpus",
		series.RunGPUUtilization:       "ml_run_gpu_utilization_ratio",
		series.GenAITokenUsage:         "gen_ai_client_token_usage",
		series.GenAIOperationDuration:  "gen_ai_client_operation_duration_seconds",
		series.GenAIServerDuration:     "gen_ai_server_request_duration_seconds",
		series.GenAITimeToFirstToken:   "gen_ai_server_time_to_first_token_seconds",
		series.GenAITimePerOutputToken: "gen_ai_server_time_per_output_token_seconds",
		series.GenAIInputUsage:         "gen_ai_client_inference_usage_input_tokens_total",
		series.GenAIOutputUsage:        "gen_ai_client_inference_usage_output_tokens_total",
		series.GenAICacheReadUsage:     "gen_ai_client_inference_usage_cache_read_input_tokens_total",
		series.GenAICacheWriteUsage:    "gen_ai_client_inference_usage_cache_write_input_tokens_total",
		series.GenAIReasoningUsage:     "gen_ai_client_inference_usage_reasoning_output_tokens_total",
		series.GenAIOperationInput:     "gen_ai_client_inference_operation_input_tokens",
		series.GenAIOperationOutput:    "gen_ai_client_inference_operation_output_tokens",
		series.GenAIInferenceDuration:  "gen_ai_client_inference_duration_seconds",
		series.GenAIEmbeddingsInput:    "gen_ai_client_embeddings_operation_input_tokens",
		series.GenAIEmbeddingsDuration: "gen_ai_client_embeddings_duration_seconds",
	}
	require.Len(t, want, len(series.All))
	for id, name := range want {
		got, err := prometheusName(series.All[id])
		require.NoError(t, err)
		assert.Equal(t, name, got)
	}
}
