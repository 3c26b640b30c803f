package mlmetricsconnector

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/metadata"
)

// A service whose name is broken has series of its own, and that is counted.
func TestBrokenNamesAreCounted(t *testing.T) {
	tel := componenttest.NewTelemetry()
	defer func() { require.NoError(t, tel.Shutdown(context.Background())) }()
	set := connectortest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = tel.NewTelemetrySettings()
	next := new(consumertest.MetricsSink)
	c, err := NewFactory().CreateTracesToMetrics(t.Context(), set, createDefaultConfig(), next)
	require.NoError(t, err)
	require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
	td := ptrace.NewTraces()
	addSpan(td, "", 1, 1).Attributes().PutInt("gen_ai.usage.input_tokens", 7)
	td.ResourceSpans().At(0).Resource().Attributes().PutStr("service.name", "caf\xe9")
	require.NoError(t, c.ConsumeTraces(t.Context(), td))
	m, err := tel.GetMetric("otelcol_connector_ml_metrics_repaired_names")
	require.NoError(t, err)
	assert.EqualValues(t, 1, m.Data.(metricdata.Sum[int64]).DataPoints[0].Value)
	require.NoError(t, c.Shutdown(t.Context()))
	service, _ := lastOf(t, next).ResourceMetrics().At(0).Resource().Attributes().Get("service.name")
	assert.Equal(t, "caf\uFFFD", service.Str())
}
