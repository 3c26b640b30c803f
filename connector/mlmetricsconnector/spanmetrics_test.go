package mlmetricsconnector

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// TestSpanMetrics: every span counts, whatever it is, with its labels. One that is
// delivered between two counted ones again changes no other.
func TestSpanMetrics(t *testing.T) {
	next := new(consumertest.MetricsSink)
	cfg := createDefaultConfig().(*Config)
	cfg.SpanMetrics = true
	c := start(t, cfg, next)
	td := ptrace.NewTraces()
	begin := time.Now().Add(-time.Minute)
	add := func(id uint16, took time.Duration, attrs map[string]any) ptrace.Span {
		span := addSpan(td, "", 1, id)
		span.SetStartTimestamp(pcommon.NewTimestampFromTime(begin))
		span.SetEndTimestamp(pcommon.NewTimestampFromTime(begin.Add(took)))
		require.NoError(t, span.Attributes().FromRaw(attrs))
		return span
	}
	route := map[string]any{"http.route": "/train", "rpc.method": "Go"}
	add(1, 3*time.Millisecond, route).SetKind(ptrace.SpanKindServer)
	add(2, 7*time.Millisecond, route).SetKind(ptrace.SpanKindServer)
	add(3, time.Hour, nil).Status().SetCode(ptrace.StatusCodeError)
	add(4, -time.Second, map[string]any{"ml.phase": "optimizer", "ml.operation": "step", "otel.metric.overflow": true}).SetKind(99)
	add(4, -time.Second, map[string]any{"ml.phase": "optimizer", "ml.operation": "step", "otel.metric.overflow": true}).SetKind(99)
	add(5, 0, nil)
	require.NoError(t, c.ConsumeTraces(t.Context(), td))
	require.NoError(t, c.Shutdown(t.Context()))

	type point struct {
		count   uint64
		sum     float64
		buckets int
	}
	want := map[string]point{
		"SPAN_KIND_SERVER STATUS_CODE_UNSET   /train Go ": {2, 10, 17},
		"SPAN_KIND_UNSPECIFIED STATUS_CODE_ERROR     ":    {1, 3.6e6, 17},
		"_OTHER STATUS_CODE_UNSET step optimizer   true":  {2, 0, 17},
		"SPAN_KIND_UNSPECIFIED STATUS_CODE_UNSET     ":    {1, 0, 17},
	}
	keys := []string{"span.kind", "status.code", "ml.operation", "ml.phase", "http.route", "rpc.method", "otel.metric.overflow"}
	labels := func(attrs pcommon.Map) string {
		values := make([]string, len(keys))
		for i, key := range keys {
			if v, ok := attrs.Get(key); ok {
				values[i] = v.Str()
			}
		}
		return strings.Join(values, " ")
	}
	md := lastOf(t, next)
	got, calls := map[string]point{}, map[string]int64{}
	for _, p := range find(t, md, "traces.span.metrics.duration").Histogram().DataPoints().All() {
		got[labels(p.Attributes())] = point{p.Count(), p.Sum(), p.BucketCounts().Len()}
	}
	for _, p := range find(t, md, "traces.span.metrics.calls").Sum().DataPoints().All() {
		calls[labels(p.Attributes())] = p.IntValue()
	}
	assert.Equal(t, want, got)
	for key, p := range want {
		assert.Equal(t, int64(p.count), calls[key], key) // #nosec G115 -- small
	}
	assert.Len(t, calls, len(want))
}

// TestSpanMetricsAreOptional: who has the connector span_metrics counts no span twice.
func TestSpanMetricsAreOptional(t *testing.T) {
	next := new(consumertest.MetricsSink)
	c := start(t, createDefaultConfig().(*Config), next)
	step(t, c, "a", 1)
	require.NoError(t, c.Shutdown(t.Context()))
	for _, rm := range lastOf(t, next).ResourceMetrics().All() {
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			assert.NotContains(t, m.Name(), "traces.span.metrics")
		}
	}
}
