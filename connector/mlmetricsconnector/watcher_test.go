package mlmetricsconnector

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/metadata"
)

// chat is a request to a model, of a service.
func chat(service string, id uint16) ptrace.Traces {
	td := ptrace.NewTraces()
	span := addSpan(td, "", 1, id)
	td.ResourceSpans().At(0).Resource().Attributes().PutStr("service.name", service)
	span.SetStartTimestamp(span.EndTimestamp() - 1e9)
	span.Attributes().PutStr("gen_ai.operation.name", "chat")
	span.Attributes().PutInt("gen_ai.usage.input_tokens", 7)
	return td
}

// reported is a metric that a service sends itself.
func reported(service, scope, name string) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", service)
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName(scope)
	m := sm.Metrics().AppendEmpty()
	m.SetName(name)
	m.SetEmptyHistogram().DataPoints().AppendEmpty()
	return md
}

// services are those that a metric has a value of, and those whose end it says.
func services(md pmetric.Metrics, name string) (live, ended []string) {
	for _, rm := range md.ResourceMetrics().All() {
		service, _ := rm.Resource().Attributes().Get("service.name")
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Name() != name {
					continue
				}
				for _, p := range m.Histogram().DataPoints().All() {
					if p.Flags().NoRecordedValue() {
						ended = append(ended, service.Str())
					} else {
						live = append(live, service.Str())
					}
				}
			}
		}
	}
	return live, ended
}

// TestLeavesAloneWhatClientsSend has one client of two that sends a metric of
// the conventions itself, after its first spans.
func TestLeavesAloneWhatClientsSend(t *testing.T) {
	const usage, duration = "gen_ai.client.token.usage", "gen_ai.client.operation.duration"
	synctest.Test(t, func(t *testing.T) {
		cfg := createDefaultConfig().(*Config)
		cfg.GenAIMetrics = true
		f, set := NewFactory(), connectortest.NewNopSettings(metadata.Type)
		next := new(consumertest.MetricsSink)
		spans, err := f.CreateTracesToMetrics(t.Context(), set, cfg, next)
		require.NoError(t, err)
		metrics, err := f.CreateMetricsToMetrics(t.Context(), set, cfg, next)
		require.NoError(t, err)
		other, err := f.CreateMetricsToMetrics(t.Context(), connectortest.NewNopSettings(metadata.Type), cfg, next)
		require.NoError(t, err)
		require.NoError(t, spans.Start(t.Context(), componenttest.NewNopHost()))
		for _, c := range []connector.Metrics{metrics, other} {
			require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
			assert.False(t, c.Capabilities().MutatesData)
		}
		flush := func() pmetric.Metrics {
			next.Reset()
			time.Sleep(cfg.FlushInterval)
			synctest.Wait()
			return lastOf(t, next)
		}
		both := func(id uint16) {
			require.NoError(t, spans.ConsumeTraces(t.Context(), chat("a", id)))
			require.NoError(t, spans.ConsumeTraces(t.Context(), chat("b", id+100)))
		}

		both(1)
		live, ended := services(flush(), usage)
		assert.ElementsMatch(t, []string{"a", "b"}, live, "nobody has said anything yet")
		assert.Empty(t, ended)

		require.NoError(t, metrics.ConsumeMetrics(t.Context(), reported("a", "client", usage)))
		require.NoError(t, metrics.ConsumeMetrics(t.Context(), reported("b", metadata.ScopeName, usage)))
		require.NoError(t, metrics.ConsumeMetrics(t.Context(), reported("b", "client", "http.client.request.duration")))
		both(2)
		md := flush()
		live, ended = services(md, usage)
		assert.Equal(t, []string{"b"}, live, "what ml_metrics has written is no client's")
		assert.Equal(t, []string{"a"}, ended)
		live, _ = services(md, duration)
		assert.ElementsMatch(t, []string{"a", "b"}, live, "of the others nothing was said")

		both(3)
		live, ended = services(flush(), usage)
		assert.Equal(t, []string{"b"}, live)
		assert.Empty(t, ended, "it has ended once and for all")

		// The conventions' next names say the same.
		require.NoError(t, metrics.ConsumeMetrics(t.Context(), reported("b", "client", "gen_ai.client.inference.usage.output_tokens")))
		both(3)
		live, ended = services(flush(), usage)
		assert.Empty(t, live)
		assert.Equal(t, []string{"b"}, ended)

		// Long after it has stopped, somebody has to write it again.
		time.Sleep(cfg.MetricsExpiration)
		both(4)
		flush()
		both(5)
		live, _ = services(flush(), usage)
		assert.ElementsMatch(t, []string{"a", "b"}, live)

		require.NoError(t, spans.Shutdown(t.Context()))
		require.NoError(t, metrics.Shutdown(t.Context()))
		require.NoError(t, other.Shutdown(t.Context()))
	})
}

func TestWatcherWithoutStart(t *testing.T) {
	w, err := NewFactory().CreateMetricsToMetrics(t.Context(), connectortest.NewNopSettings(metadata.Type), createDefaultConfig(), consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, w.Shutdown(t.Context()))
}
