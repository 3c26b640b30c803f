package mlguardprocessor

import (
	"context"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// The instances of one component id know the same identities, and those of
// another id do not.
func TestInstancesShareIdentities(t *testing.T) {
	factory := NewFactory()
	cfg := factory.CreateDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(map[string]any{
		"identities": map[string]any{"limits": map[string]any{"service": 4}},
	}).Unmarshal(cfg))
	telemetry := componenttest.NewTelemetry()
	t.Cleanup(func() { assert.NoError(t, telemetry.Shutdown(context.Background())) })
	settings := func(name string) processor.Settings {
		set := processortest.NewNopSettings(factory.Type())
		set.ID = component.NewIDWithName(factory.Type(), name)
		set.TelemetrySettings = telemetry.NewTelemetrySettings()
		return set
	}
	run := func(c component.Component) {
		require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
		t.Cleanup(func() { assert.NoError(t, c.Shutdown(context.Background())) })
	}

	spans, points, others := new(consumertest.TracesSink), new(consumertest.MetricsSink), new(consumertest.MetricsSink)
	traces, err := factory.CreateTraces(t.Context(), settings("a"), cfg, spans)
	require.NoError(t, err)
	assert.False(t, traces.Capabilities().MutatesData, "spans that leave as they came are not copied")
	metrics, err := factory.CreateMetrics(t.Context(), settings("a"), cfg, points)
	require.NoError(t, err)
	assert.True(t, metrics.Capabilities().MutatesData)
	other, err := factory.CreateMetrics(t.Context(), settings("b"), cfg, others)
	require.NoError(t, err)
	for _, c := range []component.Component{traces, metrics, other} {
		run(c)
	}

	for i := range 3 {
		td := ptrace.NewTraces()
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", strconv.Itoa(i))
		rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		require.NoError(t, traces.ConsumeTraces(t.Context(), td))
	}
	for _, service := range []string{"0", "2"} {
		for _, to := range []processor.Metrics{metrics, other} {
			md := pmetric.NewMetrics()
			rm := md.ResourceMetrics().AppendEmpty()
			rm.Resource().Attributes().PutStr("service.name", service)
			rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty().SetEmptyGauge().DataPoints().AppendEmpty()
			require.NoError(t, to.ConsumeMetrics(t.Context(), md))
		}
	}
	assert.Equal(t, 3, spans.SpanCount())
	assert.Equal(t, 1, points.DataPointCount(), "of the service that was there first")
	assert.Equal(t, 1, others.DataPointCount())

	counted, err := telemetry.GetMetric("otelcol_processor_ml_guard_spans_overflowed")
	require.NoError(t, err)
	assert.Equal(t, "{span}", counted.Unit)
	in, err := telemetry.GetMetric("otelcol_processor_ml_guard_limit_use")
	require.NoError(t, err)
	used := map[attribute.Set]float64{}
	for _, point := range in.Data.(metricdata.Gauge[float64]).DataPoints {
		used[point.Attributes] = point.Value
	}
	of := func(processor string) attribute.Set {
		return attribute.NewSet(attribute.String("processor", processor), attribute.String("kind", "service"))
	}
	assert.InDelta(t, 1./4, used[of("ml_guard/a")], 0)
	assert.InDelta(t, 1./4, used[of("ml_guard/b")], 0)
}
