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

// TestUnitsOfUserAliases shows that the end of a user's own key says its unit,
// and that the size of a value never does.
func TestUnitsOfUserAliases(t *testing.T) {
	for key, want := range map[string]float64{
		"acme.ttft": 500, "acme.ttft_s": 500, "acme.ttft.seconds": 500, "acme.ttft_ms": 0.5, "acme.ttftMs": 0.5,
		"acme.ttft.milliseconds": 0.5, "acme.ttft-us": 500e-6, "acme.ttft_ns": 500e-9,
		"acme.ttft_min": 500, "acme.teams": 500, "acme.MS": 500, "ms": 500, "Ms": 500,
	} {
		r, err := vocabulary.NewReader(vocabulary.Options{Aliases: map[string]string{key: mlattr.GenAITimeToFirstChunk}})
		require.NoError(t, err)
		span := ptrace.NewSpan()
		span.Attributes().PutDouble(key, 500)
		var f vocabulary.Facts
		r.Span(0, span, &f)
		got, ok := f.Double(mlattr.GenAITimeToFirstChunk)
		assert.True(t, ok, key)
		assert.InDelta(t, want, got, 1e-12, key)
		span.Attributes().PutStr(key, "1.5s")
		r.Span(0, span, &f)
		got, _ = f.Double(mlattr.GenAITimeToFirstChunk)
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
		"the user's":       {"acme.wait_ms", "us", vocabulary.MetricAlias{Measure: table.MeasureQueueTime, Unit: "s"}, 1},
		"the metric's":     {"acme.wait_ms", "us", vocabulary.MetricAlias{Measure: table.MeasureQueueTime}, 1e-6},
		"the name's":       {"acme.wait_ms", "", vocabulary.MetricAlias{Measure: table.MeasureQueueTime}, 1e-3},
		"the name's total": {"acme_wait_microseconds_total", "", vocabulary.MetricAlias{Measure: table.MeasureQueueTime}, 1e-6},
		"the measure's":    {"acme.wait", "", vocabulary.MetricAlias{Measure: table.MeasureQueueTime}, 1},
		"a share":          {"acme.mfu_percent", "", vocabulary.MetricAlias{Measure: table.MeasureMFU}, 0.01},
		"another's unit":   {"acme.tokens_ms", "", vocabulary.MetricAlias{Measure: table.MeasureTokens}, 1},
	} {
		r, err := vocabulary.NewReader(vocabulary.Options{Metrics: map[string]vocabulary.MetricAlias{tt.metric: tt.alias}})
		require.NoError(t, err, name)
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
