package sample_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// maxTraces is more than Jaeger has of a service.
const maxTraces = 5000

// production.yaml with ml_sample, as its comments show it, keeps one in 100 steps and
// calls: Jaeger has them whole, with all that failed, and ml_metrics counts all. Each
// exemplar leads to a stored span.
func TestJaegerHasWholeSteps(t *testing.T) {
	const ranks = 4
	jaeger := harness.StartJaeger(t)
	metrics := harness.StartSink(t)
	collector := harness.StartCollector(t, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "production.yaml"),
		Env:    []string{"JAEGER_ENDPOINT=" + jaeger.OTLPEndpoint(), "OTELCOL_ML_REPRO_DIR=" + t.TempDir(), "LOGS_ENDPOINT=" + metrics.Endpoint},
		Overrides: map[string]any{
			"processors::ml_sample": map[string]any{
				"steps": map[string]any{"slow_quantile": 0, "before": 0},
				"calls": map[string]any{"slow_quantile": 0},
				"wait":  "2s",
			},
			"service::pipelines::traces/out::processors":      []string{"ml_sample", "ml_guard/content"},
			"service::pipelines::metrics/derived::processors": []string{"ml_sample", "ml_guard/content"},
			"service::pipelines::metrics/derived::exporters":  []string{"prometheus", "otlp_grpc/logs"},
			"connectors::ml_metrics::flush_interval":          "1s",
		},
	})
	collector.AwaitHealthy(t)
	log := harness.Generate(t, collector, harness.Workload{
		Seed: 3, Fleet: fmt.Sprintf("runs=2,ranks=%d,gpus=0", ranks), Ranks: 1, Rate: 200, Duration: 20 * time.Second, MetricsInterval: time.Minute,
	})
	steps := int64(0)
	for _, n := range log.Summary.Scenarios["fleet"].Truth.Steps {
		steps += n * ranks
	}
	awaitSteps(t, collector, steps)
	require.Zero(t, collector.Stop(t)) // decides what waits

	stored := storedSpans(t, jaeger)
	sent := make(map[string]*sentlog.Span)
	sentOf := make(map[string]int) // spans of a step of all ranks
	for _, s := range log.Spans {
		sent[s.TraceID+s.SpanID] = s
		if of := stepOf(s.Resource, s.Attributes); of != "" {
			sentOf[of]++
		}
	}
	require.NotEmpty(t, sentOf)
	storedOf := make(map[string]int)
	for id, s := range stored {
		require.Contains(t, sent, id)
		if parent := sent[id].ParentSpanID; parent != "" {
			assert.Contains(t, stored, sent[id].TraceID+parent, "the parent of %s", s.Span.Name())
		}
		if of := stepOf(s.Resource, s.Attributes); of != "" {
			storedOf[of]++
		}
	}
	for of, n := range storedOf {
		assert.Equal(t, sentOf[of], n, "spans of step %s", of)
	}
	for id, s := range sent {
		if s.Status.Code == "error" {
			assert.Contains(t, stored, id, "%s failed", s.Name)
		}
	}
	exemplars := exemplarsOf(metrics)
	assert.NotEmpty(t, exemplars)
	for _, id := range exemplars {
		assert.Contains(t, stored, id, "the span of an exemplar")
	}
	assert.NotEmpty(t, storedOf)
	assert.Less(t, len(stored), len(sent)/20)
	t.Logf("%d of %d spans, %d of %d steps, %d exemplars", len(stored), len(sent), len(storedOf), len(sentOf), len(exemplars))
}

// exemplarsOf returns the trace and span ids of the exemplars of counters and histograms.
func exemplarsOf(sink *harness.Sink) (ids []string) {
	add := func(exemplars pmetric.ExemplarSlice) {
		for _, e := range exemplars.All() {
			ids = append(ids, e.TraceID().String()+e.SpanID().String())
		}
	}
	for _, md := range sink.MetricRequests() {
		for _, rm := range md.ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					switch m.Type() {
					case pmetric.MetricTypeSum:
						for _, point := range m.Sum().DataPoints().All() {
							add(point.Exemplars())
						}
					case pmetric.MetricTypeHistogram:
						for _, point := range m.Histogram().DataPoints().All() {
							add(point.Exemplars())
						}
					default:
					}
				}
			}
		}
	}
	return ids
}

// awaitSteps waits until ml_metrics has counted all steps.
func awaitSteps(t *testing.T, collector *harness.Collector, want int64) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		samples, err := harness.Scrape(t.Context(), collector.Address(t, "exporters::prometheus"))
		if !assert.NoError(c, err) {
			return
		}
		total := 0.0
		for _, sample := range harness.Select(samples, "ml_steps_total", nil) {
			total += sample.Value
		}
		assert.InDelta(c, float64(want), total, 0)
	}, harness.ArrivalTimeout, harness.ArrivalPoll)
}

// storedSpans returns all spans that Jaeger has, by trace and span id.
func storedSpans(t *testing.T, jaeger *harness.Jaeger) map[string]harness.StoredSpan {
	t.Helper()
	services, err := jaeger.Services(t.Context())
	require.NoError(t, err)
	all := make(map[string]harness.StoredSpan)
	for _, service := range services {
		ids, err := jaeger.Search(t.Context(), service, nil, maxTraces)
		require.NoError(t, err)
		require.Less(t, len(ids), maxTraces)
		for _, id := range ids {
			trace, err := jaeger.Trace(t.Context(), id)
			require.NoError(t, err)
			spans, err := harness.SpansByID(trace)
			require.NoError(t, err)
			for span, s := range spans {
				all[id+span] = s
			}
		}
	}
	return all
}

// stepOf returns the run and the number of a span's step, or "".
func stepOf(resource, attributes map[string]any) string {
	number, ok := attributes["ml.step"]
	if !ok {
		return ""
	}
	return fmt.Sprint(resource["ml.run.id"], " ", number)
}
