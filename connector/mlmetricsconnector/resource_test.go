package mlmetricsconnector

import (
	"context"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
)

func TestReadResource(t *testing.T) {
	for name, tt := range map[string]struct {
		attrs    map[string]any
		want     streams.Resource
		repaired int64
	}{
		"nothing":      {nil, streams.Resource{Service: "unknown_service"}, 0},
		"empty":        {map[string]any{"service.name": ""}, streams.Resource{Service: "unknown_service"}, 0},
		"no text":      {map[string]any{"service.name": []any{"a"}}, streams.Resource{Service: "unknown_service"}, 0},
		"both":         {map[string]any{"service.name": "a", "service.namespace": "b"}, streams.Resource{Service: "a", Namespace: "b"}, 0},
		"broken name":  {map[string]any{"service.name": "caf\xe9"}, streams.Resource{Service: "caf\uFFFD"}, 1},
		"only broken":  {map[string]any{"service.name": "\xff\xfe"}, streams.Resource{Service: "\uFFFD"}, 1},
		"broken space": {map[string]any{"service.name": "a", "service.namespace": "\xe9t\xe9"}, streams.Resource{Service: "a", Namespace: "\uFFFDt\uFFFD"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			attrs := pcommon.NewMap()
			require.NoError(t, attrs.FromRaw(tt.attrs))
			got, repaired := readResource(attrs)
			assert.Equal(t, tt.want, got)
			assert.Equal(t, tt.repaired, repaired)
		})
	}
}

func TestBrokenNamesAreCut(t *testing.T) {
	attrs := pcommon.NewMap()
	attrs.PutStr("service.name", strings.Repeat("\xe9a", 1000))
	got, repaired := readResource(attrs)
	assert.EqualValues(t, 1, repaired)
	assert.LessOrEqual(t, len(got.Service), 128)
	assert.True(t, utf8.ValidString(got.Service))
}

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
