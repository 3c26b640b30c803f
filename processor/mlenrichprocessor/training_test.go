package mlenrichprocessor

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/rate"
)

// TestTraining shows what a resource gets of what is configured about its job.
func TestTraining(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.Training = []rate.TrainingConfig{
		{Service: "torchtel", Job: "pretrain-7b", Per: "job", TokensPerStep: 1 << 20, SamplesPerStep: 100, FLOPsPerToken: 4.2e10},
		{Service: "torchtel", Job: "4711", TokensPerStep: 10},
		{Service: "torchtel", Job: "tune-*", TokensPerStep: 20},
		{Service: "torchtel", TokensPerStep: 30},
		{Service: "fx*", SamplesPerStep: 64},
	}
	require.NoError(t, cfg.Validate())
	type attrs = map[string]any
	for name, tt := range map[string]struct{ resource, want attrs }{
		"a job by its name, divided among its ranks": {
			attrs{"service.name": "torchtel", "job_name": "pretrain-7b", "world_size": 8},
			attrs{"ml.tokens_per_step": 131072.0, "ml.samples_per_step": 12.5, "ml.flops_per_token": 4.2e10},
		},
		"a job of nobody knows how many ranks": {
			attrs{"service.name": "torchtel", "job_name": "pretrain-7b"}, attrs{"ml.flops_per_token": 4.2e10},
		},
		"a job of no ranks": {
			attrs{"service.name": "torchtel", "job_name": "pretrain-7b", "world_size": 0}, attrs{"ml.flops_per_token": 4.2e10},
		},
		"a job by its id":        {attrs{"service.name": "torchtel", "job_id": 4711, "world_size": 8}, attrs{"ml.tokens_per_step": 10.0}},
		"a job by its beginning": {attrs{"service.name": "torchtel", "job_name": "tune-a"}, attrs{"ml.tokens_per_step": 20.0}},
		"any other job":          {attrs{"service.name": "torchtel", "job_name": "local"}, attrs{"ml.tokens_per_step": 30.0}},
		"a service by its beginning": {
			attrs{"service.name": "fx-nested"}, attrs{"ml.samples_per_step": 64.0},
		},
		"another service": {attrs{"service.name": "torch"}, attrs{}},
		"nobody":          {attrs{}, attrs{}},
		"a resource that says it itself": {
			attrs{"service.name": "torchtel", "ml.tokens_per_step": 7, "ml.samples_per_step": "many"},
			attrs{"ml.tokens_per_step": int64(7), "ml.samples_per_step": "many"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := start(t, cfg)
			td, md, ld := ptrace.NewTraces(), pmetric.NewMetrics(), plog.NewLogs()
			rs, rm, rl := td.ResourceSpans().AppendEmpty(), md.ResourceMetrics().AppendEmpty(), ld.ResourceLogs().AppendEmpty()
			for _, resource := range []pcommon.Resource{rs.Resource(), rm.Resource(), rl.Resource()} {
				require.NoError(t, resource.Attributes().FromRaw(tt.resource))
			}
			rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
			rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty().SetEmptyGauge().DataPoints().AppendEmpty()
			rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
			for range 2 { // what is there by now is not divided again
				td, md, ld = p.sendTraces(t, td), p.sendMetrics(t, md), p.sendLogs(t, ld)
				for signal, got := range map[string]pcommon.Map{
					"traces":  td.ResourceSpans().At(0).Resource().Attributes(),
					"metrics": md.ResourceMetrics().At(0).Resource().Attributes(),
					"logs":    ld.ResourceLogs().At(0).Resource().Attributes(),
				} {
					said := attrs{}
					for _, key := range []string{"ml.tokens_per_step", "ml.samples_per_step", "ml.flops_per_token"} {
						if value, ok := got.Get(key); ok {
							said[key] = value.AsRaw()
						}
					}
					assert.Equal(t, tt.want, said, signal)
				}
			}
		})
	}
}

// TestSamplesOfAStep shows that a batch of the FX toolkit, which does not say
// its size, has a rate where the size is configured.
func TestSamplesOfAStep(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.Training = []rate.TrainingConfig{{Service: "fx", SamplesPerStep: 64}}
	batch := func(service, name string, attrs map[string]any) map[string]any {
		td := batchOf(service, testSpan{1, 1, 0, name, attrs})
		span := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
		span.SetStartTimestamp(1e9)
		span.SetEndTimestamp(3e9)
		return start(t, cfg).sendTraces(t, td).ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes().AsRaw()
	}
	got := batch("fx", "batch_7", map[string]any{"step": 7, "loss": 0.5})
	assert.InDelta(t, 32, got["ml.samples_per_second"], 0)
	assert.Equal(t, "span", got["ml.throughput.basis"])
	assert.NotContains(t, got, "ml.batch.size", "nobody has sent it")
	got = batch("fx", "batch_processing", map[string]any{"batch_size": 8, "loss": 0.5})
	assert.InDelta(t, 4, got["ml.samples_per_second"], 0, "the batch's own size")
	assert.NotContains(t, batch("fx", "epoch_7", map[string]any{"train_loss": 0.5}), "ml.samples_per_second", "no step")
	assert.NotContains(t, batch("other", "batch_7", map[string]any{"step": 7, "loss": 0.5}), "ml.samples_per_second")
}
