package mlguardprocessor

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/testdata"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-ml/otelcol-ml/internal/testing/otlpnest"
	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/bounds"
	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/metadata"
)

// fuzzConfig has limits that a fuzzer's input can exceed.
func fuzzConfig() *Config {
	config := NewFactory().CreateDefaultConfig().(*Config)
	config.Bounds = bounds.Config{
		MaxDepth: 3, MaxValueBytes: 64, MaxNameBytes: 64, MaxItemBytes: 512, MaxAttributes: 4,
		MaxElements: 3, MaxEvents: 2, MaxLinks: 2, MaxItems: 20,
	}
	return config
}

// depth is the number of arrays and maps in v that enclose one another.
func depth(v pcommon.Value) int {
	deepest := 0
	switch v.Type() {
	case pcommon.ValueTypeSlice:
		for _, element := range v.Slice().All() {
			deepest = max(deepest, depth(element))
		}
	case pcommon.ValueTypeMap:
		for _, element := range v.Map().All() {
			deepest = max(deepest, depth(element))
		}
	default:
		return 0
	}
	return 1 + deepest
}

func checkValue(t *testing.T, v pcommon.Value) {
	t.Helper()
	assert.LessOrEqual(t, depth(v), 3)
	assert.LessOrEqual(t, len(v.Str()), 64)
}

func checkAttributes(t *testing.T, m pcommon.Map) {
	t.Helper()
	assert.LessOrEqual(t, m.Len(), 4)
	for key, v := range m.All() {
		assert.LessOrEqual(t, len(key), 64)
		checkValue(t, v)
	}
}

// FuzzConsumeTraces: whatever decodes passes, within the limits.
func FuzzConsumeTraces(f *testing.F) {
	seed, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(testdata.GenerateTraces(3))
	require.NoError(f, err)
	f.Add(seed, uint16(0))
	f.Add(seed, uint16(40_000))
	f.Add(otlpnest.Traces([][]byte{otlpnest.Attribute("service.name", otlpnest.Maps(20_000))}, [][]byte{otlpnest.Attribute("a", otlpnest.Arrays(20_000))}), uint16(3))
	f.Fuzz(func(t *testing.T, raw []byte, levels uint16) {
		td, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(raw)
		if err != nil {
			t.Skip("not traces")
		}
		for _, rs := range td.ResourceSpans().All() {
			otlpnest.Attributes(rs.Resource().Attributes(), int(levels))
		}
		sink := new(consumertest.TracesSink)
		p, err := NewFactory().CreateTraces(t.Context(), processortest.NewNopSettings(metadata.Type), fuzzConfig(), sink)
		require.NoError(t, err)
		require.NoError(t, p.ConsumeTraces(t.Context(), td))
		require.Len(t, sink.AllTraces(), 1)
		for _, rs := range sink.AllTraces()[0].ResourceSpans().All() {
			checkAttributes(t, rs.Resource().Attributes())
			for _, ss := range rs.ScopeSpans().All() {
				checkAttributes(t, ss.Scope().Attributes())
				for _, span := range ss.Spans().All() {
					assert.LessOrEqual(t, len(span.Name()), 64)
					assert.LessOrEqual(t, len(span.TraceState().AsRaw()), 64)
					checkAttributes(t, span.Attributes())
					assert.LessOrEqual(t, span.Events().Len(), 2)
					for _, event := range span.Events().All() {
						checkAttributes(t, event.Attributes())
					}
					for _, link := range span.Links().All() {
						checkAttributes(t, link.Attributes())
					}
				}
			}
		}
	})
}

// FuzzConsumeLogs: whatever decodes passes, within the limits.
func FuzzConsumeLogs(f *testing.F) {
	seed, err := (&plog.ProtoMarshaler{}).MarshalLogs(testdata.GenerateLogs(3))
	require.NoError(f, err)
	f.Add(seed, uint16(0))
	f.Add(seed, uint16(40_000))
	f.Add(otlpnest.Logs(nil, nil, otlpnest.Arrays(20_000)), uint16(3))
	f.Fuzz(func(t *testing.T, raw []byte, levels uint16) {
		ld, err := (&plog.ProtoUnmarshaler{}).UnmarshalLogs(raw)
		if err != nil {
			t.Skip("not logs")
		}
		for _, rl := range ld.ResourceLogs().All() {
			otlpnest.Attributes(rl.Resource().Attributes(), int(levels))
		}
		sink := new(consumertest.LogsSink)
		p, err := NewFactory().CreateLogs(t.Context(), processortest.NewNopSettings(metadata.Type), fuzzConfig(), sink)
		require.NoError(t, err)
		require.NoError(t, p.ConsumeLogs(t.Context(), ld))
		require.LessOrEqual(t, sink.LogRecordCount(), 20)
		for _, rl := range sink.AllLogs()[0].ResourceLogs().All() {
			checkAttributes(t, rl.Resource().Attributes())
			for _, sl := range rl.ScopeLogs().All() {
				for _, record := range sl.LogRecords().All() {
					checkValue(t, record.Body())
					checkAttributes(t, record.Attributes())
				}
			}
		}
	})
}

// FuzzConsumeMetrics: whatever decodes passes, within the limits.
func FuzzConsumeMetrics(f *testing.F) {
	seed, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(testdata.GenerateMetricsAllTypes())
	require.NoError(f, err)
	f.Add(seed, uint16(0))
	f.Add(seed, uint16(40_000))
	f.Fuzz(func(t *testing.T, raw []byte, levels uint16) {
		md, err := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(raw)
		if err != nil {
			t.Skip("not metrics")
		}
		for _, rm := range md.ResourceMetrics().All() {
			otlpnest.Attributes(rm.Resource().Attributes(), int(levels))
		}
		sink := new(consumertest.MetricsSink)
		p, err := NewFactory().CreateMetrics(t.Context(), processortest.NewNopSettings(metadata.Type), fuzzConfig(), sink)
		require.NoError(t, err)
		require.NoError(t, p.ConsumeMetrics(t.Context(), md))
		require.LessOrEqual(t, sink.DataPointCount(), 20)
		for _, rm := range sink.AllMetrics()[0].ResourceMetrics().All() {
			checkAttributes(t, rm.Resource().Attributes())
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					assert.LessOrEqual(t, len(m.Name()), 64)
					if m.Type() == pmetric.MetricTypeGauge {
						for _, point := range m.Gauge().DataPoints().All() {
							checkAttributes(t, point.Attributes())
						}
					}
				}
			}
		}
	})
}
