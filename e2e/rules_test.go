package e2e

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// testRules looks at what Prometheus makes of the rules with what was sent.
func testRules(t *testing.T, j *job) {
	t.Run("every rule can be evaluated", func(t *testing.T) {
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			rules, err := j.prometheus.Rules(t.Context())
			if !assert.NoError(c, err) || !assert.NotEmpty(c, rules) {
				return
			}
			for _, rule := range rules {
				assert.Equal(c, "ok", rule.Health, "%s: %s", rule.Name, rule.LastError)
			}
		}, harness.ArrivalTimeout, harness.ArrivalPoll)
	})

	for _, name := range []string{
		"run:ml_steps:rate5m", "run:ml_run_time:ratio_rate15m", "run:goodput:ratio_rate15m",
		"run_gpu:share:ratio", "run:gpus:sum", "run:gpu_seconds:sum1h", "run:power_watts:rate1m", "run:energy_joules:sum1h",
		"run:gpu_busy:ratio", "run:evidence:checkpoint", "run:evidence:data_load", "run:bound",
		"run:ml_attempts:max", "run:peak_flops:sum", "run:ml_training_tokens:rate5m", "run:mfu:ratio_rate5m",
	} {
		t.Run(name, func(t *testing.T) {
			series := j.prometheus.AwaitSeries(t, fmt.Sprintf("{__name__=%q}", name))
			assert.Contains(t, harness.Distinct(series, "ml_run_id"), torchTelRuns(j)[0])
		})
	}
	t.Run("run:ml_tokens:rate5m", func(t *testing.T) {
		series := j.prometheus.AwaitSeries(t, `{__name__="run:ml_tokens:rate5m",job="taskweaver.otlp.tracer"}`)
		assert.Equal(t, []string{"input", "output"}, harness.Distinct(series, "gen_ai_token_type"))
	})
	t.Run("run:ml_samples:rate5m", func(t *testing.T) {
		j.prometheus.AwaitSeries(t, `{__name__="run:ml_samples:rate5m",job="tuft"}`)
	})

	t.Run("goodput is the productive part", func(t *testing.T) {
		productive, all := 0.0, 0.0
		for _, tl := range timelines(j.sent.Spans, "torchtel") {
			for state, seconds := range tl.seconds() {
				all += seconds
				if state == "productive" {
					productive += seconds
				}
			}
		}
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			goodput, err := j.prometheus.Scalar(t.Context(), `run:goodput:ratio_rate15m{job="torchtel"}`)
			assert.NoError(c, err)
			// The rates begin with the first scrape, not with the first span.
			assert.InDelta(c, productive/all, goodput, 0.05)
		}, harness.ArrivalTimeout, harness.ArrivalPoll)
	})

	t.Run("the rank with the slow loader is the straggler", func(t *testing.T) {
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			samples, err := j.prometheus.Query(t.Context(), `topk(1, rank:ml_straggler_seconds:per_step15m{job="torchtel"} > 0)`)
			assert.NoError(c, err)
			if assert.Len(c, samples, 1) {
				assert.Equal(c, "1", samples[0].Labels["ml_rank_global"])
			}
		}, harness.ArrivalTimeout, harness.ArrivalPoll)
	})

	t.Run("a run is bound by one thing", func(t *testing.T) {
		j.prometheus.AwaitValues(t, fmt.Sprintf(`count by (ml_run_id) (run:bound{ml_run_id=%q})`, torchTelRuns(j)[0]),
			"ml_run_id", map[string]float64{torchTelRuns(j)[0]: 1})
	})
}
