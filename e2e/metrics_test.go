package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

func floats(counts map[string]int64) map[string]float64 {
	values := map[string]float64{}
	for key, count := range counts {
		values[key] = float64(count)
	}
	return values
}

// testMetrics compares what Prometheus has scraped with what mlgen knows to be
// true about what it sent.
func testMetrics(t *testing.T, j *job) {
	truth := func(system string) sentlog.Truth { return j.sent.Summary.Scenarios[system].Truth }

	t.Run("every target is scraped", func(t *testing.T) {
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			unhealthy, err := j.prometheus.UnhealthyTargets(t.Context())
			assert.NoError(c, err)
			assert.Empty(c, unhealthy)
		}, harness.ArrivalTimeout, harness.ArrivalPoll)
	})

	t.Run("torchtel", func(t *testing.T) {
		j.prometheus.AwaitValues(t, `sum by (ml_rank_global) (ml_steps_total{job="torchtel"})`,
			"ml_rank_global", floats(truth("torchtel").Steps))
		for _, metric := range []string{"train_step_count_total", "model_parameters", `gpu_memory_bytes{kind="allocated"}`} {
			ranks := harness.Distinct(j.prometheus.AwaitSeries(t, metric), "ml_rank_global")
			assert.Equal(t, []string{"0", "1"}, ranks, "%s: two ranks are two series", metric)
		}
		runs := harness.Distinct(j.prometheus.AwaitSeries(t, "train_step_count_total"), "ml_run_id")
		assert.Equal(t, torchTelRuns(j), runs, "metrics and spans name one run")
	})

	t.Run("tuft", func(t *testing.T) {
		j.prometheus.AwaitValues(t, `sum by (ml_run_id) (ml_steps_total{job="tuft"})`,
			"ml_run_id", floats(truth("tuft").Steps))
		j.prometheus.AwaitValues(t, `sum({__name__=~"tuft_sampling_output_tokens.*_sum"})`,
			"", map[string]float64{"": float64(truth("tuft").Tokens["sampling"]["output"])})
		j.prometheus.AwaitSeries(t, `{__name__=~"tuft_training_tokens_per_second.*_sum"}`)
		j.prometheus.AwaitSeries(t, `{__name__=~"tuft_resource_gpu_.*"}`)
	})

	t.Run("snakepit", func(t *testing.T) {
		calls := map[string]float64{}
		for call, count := range truth("snakepit").Requests {
			_, function, _ := strings.Cut(call, ".")
			calls[function] += float64(count)
		}
		j.prometheus.AwaitValues(t, `sum by (function) (snakepit_call_total)`, "function", calls)
		exceptions := harness.Distinct(j.prometheus.AwaitSeries(t, "snakepit_call_exceptions_total"), "error_type")
		assert.Contains(t, exceptions, "statistics.StatisticsError")
		j.prometheus.AwaitSeries(t, `{__name__=~"snakepit_ml_inference_tokens_per_second.*_sum", model!=""}`)
		j.prometheus.AwaitSeries(t, `{__name__=~"snakepit_memory_gpu_allocated.*"}`)
	})

	t.Run("fx", func(t *testing.T) {
		succeeded := map[string]float64{}
		for process, count := range truth("fx").Batches {
			succeeded[process] = float64(count)
		}
		for _, span := range ofScenario(j.sent.Spans, "fx") {
			if canonicalFacts(span)["ml.phase"] == "batch" && span.Status.Code == "error" {
				succeeded[fmt.Sprint(span.Resource["service.name"])]--
			}
		}
		j.prometheus.AwaitValues(t, `sum by (job) (ml_batches_total{job=~"fx-forecasting|unknown_service:python"})`, "job", succeeded)
		scopes := harness.Distinct(j.prometheus.AwaitSeries(t, `ml_loss{job="fx-forecasting"}`), "ml_loss_scope")
		assert.Subset(t, scopes, []string{"batch", "epoch"})
		tasks := harness.Distinct(j.prometheus.AwaitSeries(t, `ml_loss{job="fx-forecasting"}`), "ml_task")
		assert.Subset(t, tasks, []string{"direction", "volatility"})
		j.prometheus.AwaitSeries(t, `ml_epoch{job="fx-forecasting"}`)
	})

	t.Run("taskweaver", func(t *testing.T) {
		directions := map[string]float64{}
		for role, tokens := range truth("taskweaver").Tokens {
			inputs := map[string]float64{"input": float64(tokens["input"]), "output": float64(tokens["output"])}
			j.prometheus.AwaitValues(t,
				fmt.Sprintf(`sum by (gen_ai_token_type) (ml_tokens_total{job="taskweaver.otlp.tracer", ml_role=%q})`, role),
				"gen_ai_token_type", inputs)
			for direction, count := range tokens {
				directions[direction] += float64(count)
			}
		}
		j.prometheus.AwaitValues(t, `sum by (direction) (prompt_size_total{job="taskweaver.otlp.tracer"})`, "direction", directions)
	})

	t.Run("request rates and errors of every system", func(t *testing.T) {
		services := harness.Distinct(j.prometheus.AwaitSeries(t, `{__name__=~"traces_span_metrics_calls.*"}`), "job")
		for _, service := range []string{"torchtel", "tuft", "fx-forecasting", "taskweaver.otlp.tracer"} {
			assert.Contains(t, services, service)
		}
		errors := harness.Distinct(j.prometheus.AwaitSeries(t, `ml_errors_total`), "job")
		assert.Contains(t, errors, "fx-forecasting")
	})
}

func torchTelRuns(j *job) []string {
	return runIDs(j.sent.Spans, j.stored, func(span *sentlog.Span) bool { return span.Scenario == "torchtel" })
}

// testGPUs looks at the two GPUs of the recording and at whose work they do.
func testGPUs(t *testing.T, j *job) {
	for _, metric := range []string{
		"hw_gpu_utilization_ratio", "hw_gpu_memory_limit_bytes", "hw_gpu_memory_usage_bytes",
		"hw_gpu_memory_utilization_ratio", "hw_power_watts", "hw_energy_joules_total", "hw_temperature_celsius",
	} {
		t.Run(metric, func(t *testing.T) {
			series := j.prometheus.AwaitSeries(t, metric)
			assert.Len(t, harness.Distinct(series, "hw_id"), 2, "two GPUs are two series")
			for _, label := range []string{"hw_id", "host_name", "nvidia_gpu_index"} {
				assert.NotContains(t, harness.Distinct(series, label), "", "a series has no %s", label)
			}
			assert.Equal(t, []string{"replay"}, harness.Distinct(series, "nvidia_gpu_source"), "recorded data says so")
		})
	}

	t.Run("the training job's memory is joined to its run", func(t *testing.T) {
		// The GPUs' first points came before the job was known.
		var series []harness.Labels
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			var err error
			series, err = j.prometheus.Series(t.Context(), `nvidia_gpu_workload_memory_usage_bytes{ml_gpu_join="rank"}`)
			assert.NoError(c, err)
			assert.Equal(c, []string{"0", "1"}, harness.Distinct(series, "ml_rank_global"))
		}, harness.ArrivalTimeout, harness.ArrivalPoll)
		assert.Equal(t, torchTelRuns(j), harness.Distinct(series, "ml_run_id"))
		assert.Len(t, harness.Distinct(series, "hw_id"), 2, "each rank has its GPU")
	})

	t.Run("dashboards of dcgm-exporter find their names", func(t *testing.T) { testDCGMNames(t, j) })

	t.Run("every process has its memory", func(t *testing.T) {
		series := j.prometheus.AwaitSeries(t, "nvidia_gpu_workload_memory_usage_bytes")
		services := harness.Distinct(series, "service_name")
		assert.Contains(t, services, "snakepit", "the inference worker that shares a GPU")
	})
}
