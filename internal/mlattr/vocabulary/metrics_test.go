package vocabulary_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

func TestMetricMeaning(t *testing.T) {
	r := vocabulary.Default()
	for name, tt := range map[string]struct {
		known        vocabulary.System
		metric, unit string
		measure      string // empty is none
		factor       float64
		tokens       string
	}{
		"as Prometheus has it":         {metric: "vllm:prompt_tokens_total", measure: table.MeasureTokens, factor: 1, tokens: "input"},
		"as OpenTelemetry has it":      {metric: "vllm:prompt_tokens", measure: table.MeasureTokens, factor: 1, tokens: "input"},
		"through Ray":                  {metric: "ray_vllm_generation_tokens_total", measure: table.MeasureTokens, factor: 1, tokens: "output"},
		"with dots":                    {metric: "tgi.request.input.length", measure: table.MeasureTokens, factor: 1, tokens: "input"},
		"a total in the name itself":   {metric: "vllm:iteration_tokens_total", measure: table.MeasureTokens, factor: 1},
		"seconds by their unit":        {metric: "vllm:e2e_request_latency_seconds", unit: "seconds", measure: "gen_ai.server.request.duration", factor: 1},
		"milliseconds by the table":    {metric: "ttft_milliseconds", measure: "gen_ai.server.time_to_first_token", factor: 1e-3},
		"the metric's unit wins":       {metric: "ttft_milliseconds", unit: "s", measure: "gen_ai.server.time_to_first_token", factor: 1},
		"a unit that it cannot have":   {metric: "ttft_milliseconds", unit: "By"},
		"an annotation":                {metric: "prompt_size", unit: "{part}", known: systemTaskWeaver, measure: table.MeasureTokens, factor: 1},
		"brackets and per cent":        {metric: "mfu(%)", known: systemTorchTitan, measure: "ml.mfu", factor: 0.01},
		"changed by Prometheus":        {metric: "time_metrics_end_to_end_s_", measure: table.MeasureStepDuration, factor: 1},
		"an everyday name":             {metric: "throughput"},
		"the same where it is known":   {metric: "throughput", known: systemMegatron, measure: "ml.flop.throughput", factor: 1},
		"the same of another client":   {metric: "throughput", known: systemTorchTitan},
		"one name of several":          {metric: "grad-norm", known: systemTransformers | systemTorchTitan, measure: table.MeasureGradientNorm, factor: 1},
		"a stranger's":                 {metric: "http.server.duration"},
		"a name that is too long":      {metric: strings.Repeat("x", 129)},
		"no name":                      {metric: ""},
		"no letter":                    {metric: "::"},
		"nothing but an ending":        {metric: "_total"},
		"the conventions'":             {metric: "gen_ai.client.token.usage", unit: "token", measure: table.MeasureTokens, factor: 1},
		"a rate as its client says it": {metric: "tuft.sampling.tokens_per_second", unit: "tokens/s", measure: table.MeasureTokenThroughput, factor: 1, tokens: "output"},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := r.MetricMeaning(tt.known, tt.metric, tt.unit)
			require.Equal(t, tt.measure != "", ok)
			assert.Equal(t, tt.measure, got.Measure)
			assert.InDelta(t, tt.factor, got.Factor, 0)
			assert.Equal(t, tt.tokens, got.TokenType)
		})
	}
}

func TestUserMetrics(t *testing.T) {
	r := vocabulary.NewReader(vocabulary.Options{Systems: vocabulary.AllSystems, Metrics: map[string]vocabulary.MetricAlias{
		"acme.latency":       {Measure: "gen_ai.server.request.duration", Unit: "ms"},
		"acme.tokens":        {Measure: table.MeasureTokens, TokenType: "output"},
		"vllm:prompt_tokens": {Measure: "ml.requests"},
		"throughput":         {Measure: table.MeasureTokenThroughput},
	}})
	got, ok := r.MetricMeaning(0, "acme_latency", "s")
	assert.True(t, ok)
	assert.InDelta(t, 1e-3, got.Factor, 0, "what the user says about the unit holds, whatever the metric says")
	got, _ = r.MetricMeaning(0, "acme.tokens_total", "")
	assert.Equal(t, table.MeasureTokens, got.Measure)
	assert.Equal(t, "output", got.TokenType)
	got, _ = r.MetricMeaning(0, "vllm:prompt_tokens", "")
	assert.Equal(t, "ml.requests", got.Measure, "before the tables")
	got, _ = r.MetricMeaning(0, "throughput", "")
	assert.Equal(t, table.MeasureTokenThroughput, got.Measure)
}

func TestMetricMeaningAllocatesNothing(t *testing.T) {
	r := vocabulary.Default()
	assert.Zero(t, testing.AllocsPerRun(100, func() { r.MetricMeaning(0, "ray_vllm_generation_tokens_total", "") }))
}

// TestMetricTables shows that every metric of a table is found under its name,
// and that what repeats another names one of the same client, or else of any.
func TestMetricTables(t *testing.T) {
	r := vocabulary.Default()
	anyones := make(map[string]table.Metric)
	for _, client := range vocabulary.Tables() {
		for _, metric := range client.Metrics {
			anyones[metric.Source] = metric
		}
	}
	for _, client := range vocabulary.Tables() {
		names := make(map[string]table.Metric)
		for _, metric := range client.Metrics {
			names[metric.Source] = metric
		}
		for _, metric := range client.Metrics {
			got, ok := r.MetricMeaning(client.System, metric.Source, "")
			require.True(t, ok, metric.Source)
			assert.Equal(t, metric.Measure, got.Measure, metric.Source)
			assert.Positive(t, got.Factor, metric.Source)
			assert.NotEmpty(t, metric.Instrument.String(), metric.Source)
			for _, other := range metric.Repeats {
				repeated, own := names[other]
				if !own {
					repeated = anyones[other]
				}
				assert.Equal(t, metric.Measure, repeated.Measure, metric.Source)
				assert.NotContains(t, repeated.Repeats, metric.Source, "one of two counts")
			}
			if metric.Part != "" {
				assert.Equal(t, table.MeasureGPUMemory, metric.Measure, metric.Source)
			}
		}
	}
}

func FuzzMetricMeaning(f *testing.F) {
	f.Add("vllm:prompt_tokens_total", "")
	f.Add("ray_ray_total_total", "{}")
	f.Add("\xff__", "s")
	f.Fuzz(func(t *testing.T, name, unit string) {
		got, ok := vocabulary.Default().MetricMeaning(vocabulary.AllSystems, name, unit)
		assert.Equal(t, ok, got.Factor > 0)
	})
}

// TestUnitsOfUserAliases shows that the end of a user's own key says its unit,
// and that the size of a value never does.
func TestUnitsOfUserAliases(t *testing.T) {
	for key, want := range map[string]float64{
		"acme.ttft": 500, "acme.ttft_s": 500, "acme.ttft.seconds": 500, "acme.ttft_ms": 0.5, "acme.ttftMs": 0.5,
		"acme.ttft.milliseconds": 0.5, "acme.ttft-us": 500e-6, "acme.ttft_ns": 500e-9,
		"acme.ttft_min": 500, "acme.teams": 500, "acme.MS": 500, "ms": 500, "Ms": 500,
	} {
		r := vocabulary.NewReader(vocabulary.Options{Aliases: map[string]string{key: mlattr.GenAITimeToFirstChunk}})
		span := ptrace.NewSpan()
		span.Attributes().PutDouble(key, 500)
		var f vocabulary.Facts
		r.Span(0, span, &f)
		got, ok := f.DoubleAt(vocabulary.SlotGenAITimeToFirstChunk)
		assert.True(t, ok, key)
		assert.InDelta(t, want, got, 1e-12, key)
		span.Attributes().PutStr(key, "1.5s")
		r.Span(0, span, &f)
		got, _ = f.DoubleAt(vocabulary.SlotGenAITimeToFirstChunk)
		assert.InDelta(t, 1.5, got, 1e-12, "a text that says its unit: %s", key)
	}
}

// TestUnitsOfUserMetrics shows which unit counts: the user's, the metric's, the
// name's, and then the measure's.
func TestUnitsOfUserMetrics(t *testing.T) {
	for name, tt := range map[string]struct {
		metric, unit string
		alias        vocabulary.MetricAlias
		want         float64
	}{
		"the user's":       {"acme.wait_ms", "us", vocabulary.MetricAlias{Measure: "ml.queue.time", Unit: "s"}, 1},
		"the metric's":     {"acme.wait_ms", "us", vocabulary.MetricAlias{Measure: "ml.queue.time"}, 1e-6},
		"the name's":       {"acme.wait_ms", "", vocabulary.MetricAlias{Measure: "ml.queue.time"}, 1e-3},
		"the name's total": {"acme_wait_microseconds_total", "", vocabulary.MetricAlias{Measure: "ml.queue.time"}, 1e-6},
		"the measure's":    {"acme.wait", "", vocabulary.MetricAlias{Measure: "ml.queue.time"}, 1},
		"a share":          {"acme.mfu_percent", "", vocabulary.MetricAlias{Measure: "ml.mfu"}, 0.01},
		"another's unit":   {"acme.tokens_ms", "", vocabulary.MetricAlias{Measure: table.MeasureTokens}, 1},
	} {
		r := vocabulary.NewReader(vocabulary.Options{Metrics: map[string]vocabulary.MetricAlias{tt.metric: tt.alias}})
		got, ok := r.MetricMeaning(0, tt.metric, tt.unit)
		assert.True(t, ok, name)
		assert.InDelta(t, tt.want, got.Factor, 1e-15, name)
	}
}

// TestNamesOfMetricsSayTheirUnit shows that no table contradicts the end of a
// name: TGI's and vLLM's times, and Transformers' in milliseconds.
func TestNamesOfMetricsSayTheirUnit(t *testing.T) {
	seen := 0
	for _, client := range vocabulary.Tables() {
		for _, metric := range client.Metrics {
			for ending, factor := range map[string]float64{"_seconds": 1, "_milliseconds": 1e-3} {
				if strings.HasSuffix(metric.Source, ending) {
					seen++
					got, _ := vocabulary.Default().MetricMeaning(client.System, metric.Source, "")
					assert.InDelta(t, factor, got.Factor, 0, metric.Source)
				}
			}
		}
	}
	assert.Greater(t, seen, 8)
}
