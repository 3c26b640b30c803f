package mlmetricsconnector

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/metadata"
)

// TestCallsCountOnce sends calls that up to three spans tell of, with the
// client's own event on one of them or on none, cut into requests of any size,
// in any order and partly twice.
func TestCallsCountOnce(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		const calls = 100
		var spans []ptrace.Traces
		for n := range calls {
			depth := 1 + rnd.IntN(3)
			// As SDKs end and send them: the inner ones first.
			for level := depth; level > 0; level-- {
				td := ptrace.NewTraces()
				rs := td.ResourceSpans().AppendEmpty()
				span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
				span.SetTraceID(pcommon.TraceID{1, byte(n)})
				span.SetSpanID(pcommon.SpanID{byte(level)})
				span.SetParentSpanID(pcommon.SpanID{byte(level - 1)})
				span.SetName("snakepit.grpc.call")
				span.SetStartTimestamp(1_763_000_000_000_000_000)
				span.SetEndTimestamp(1_763_000_000_100_000_000)
				if level == depth && rnd.IntN(2) == 0 {
					event := span.Events().AppendEmpty()
					event.SetName("snakepit.call.stop")
					event.Attributes().PutInt("duration", 99_000_000)
				}
				spans = append(spans, td)
				if rnd.IntN(10) == 0 {
					spans = append(spans, td)
				}
			}
		}
		next := new(consumertest.MetricsSink)
		c := start(t, NewFactory().CreateDefaultConfig().(*Config), next)
		for len(spans) > 0 {
			n := 1 + rnd.IntN(min(9, len(spans)))
			request := ptrace.NewTraces()
			for _, i := range rnd.Perm(n) {
				spans[i].ResourceSpans().At(0).CopyTo(request.ResourceSpans().AppendEmpty())
			}
			require.NoError(t, c.ConsumeTraces(t.Context(), request))
			spans = spans[n:]
		}
		require.NoError(t, c.Shutdown(t.Context()))
		assert.Equal(t, uint64(calls), observations(find(t, lastOf(t, next), "ml.call.duration")), "seed %d", seed)
	}
}

func observations(m pmetric.Metric) (n uint64) {
	for _, p := range m.Histogram().DataPoints().All() {
		n += p.Count()
	}
	return n
}

// TestReportsTimesThatCannotBeTrue looks at what the connector says about
// values that it changes or leaves out.
func TestReportsTimesThatCannotBeTrue(t *testing.T) {
	tel := componenttest.NewTelemetry()
	defer func() { require.NoError(t, tel.Shutdown(context.Background())) }()
	set := connectortest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = tel.NewTelemetrySettings()
	c, err := NewFactory().CreateTracesToMetrics(t.Context(), set, NewFactory().CreateDefaultConfig(), consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
	td := ptrace.NewTraces()
	event := addSpan(td, "", 1, 1).Events().AppendEmpty()
	event.SetName("snakepit.call.stop")
	event.Attributes().PutInt("queue_time", -1)
	event.Attributes().PutInt("duration", -1)
	event.Attributes().PutDouble("python_time", math.NaN())
	require.NoError(t, c.ConsumeTraces(t.Context(), td))
	assert.Equal(t, map[string]int64{"negative_queue_time": 1, "out_of_range": 2}, skipped(t, tel))
	require.NoError(t, c.Shutdown(t.Context()))
}

func skipped(t *testing.T, tel *componenttest.Telemetry) map[string]int64 {
	m, err := tel.GetMetric("otelcol_connector_ml_metrics_skipped")
	require.NoError(t, err)
	byReason := map[string]int64{}
	for _, p := range m.Data.(metricdata.Sum[int64]).DataPoints {
		reason, _ := p.Attributes.Value("reason")
		byReason[reason.AsString()] += p.Value
	}
	return byReason
}

// FuzzCallEvents puts any attribute on any of the events and spans that tell
// of calls and workers.
func FuzzCallEvents(f *testing.F) {
	names := []string{
		"snakepit.call.start", "snakepit.call.stop", "snakepit.call.exception", "snakepit.pool.checkout",
		"snakepit.pool.size", "snakepit.serialize.stop", "snakepit.memory.allocate", "snakepit.memory.release",
		"snakepit.memory.gpu", "snakepit.worker.crash", "snakepit.circuit_breaker.open", "snakepit.health.alert",
		"snakepit.grpc.duration", "snakepit.grpc.execute.x", "BridgeService/ExecuteTool",
	}
	keys := []string{
		"duration", "queue_time", "serialize_time", "python_time_ms", "bytes", "size", "busy", "idle",
		"allocated_mb", "reserved_bytes", "library", "function", "device", "result", "type", "reason", "pool", "operation",
	}
	f.Add(uint8(1), uint8(0), uint8(12), int64(-1), math.NaN(), "{:cuda, 0}", int64(5))
	f.Add(uint8(4), uint8(5), uint8(16), int64(math.MinInt64), math.Inf(1), ":default\x00", int64(-5))
	f.Add(uint8(7), uint8(4), uint8(14), int64(math.MaxInt64), 1e300, "12ms", int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, name, number, word uint8, n int64, d float64, text string, length int64) {
		cfg := NewFactory().CreateDefaultConfig().(*Config)
		cfg.MaxSeries = 20
		next := new(consumertest.MetricsSink)
		c := start(t, cfg, next)
		fill := func(attrs pcommon.Map) {
			attrs.PutInt(keys[int(number)%len(keys)], n)
			attrs.PutDouble(keys[int(number+1)%len(keys)], d)
			attrs.PutStr(keys[int(word)%len(keys)], text)
			attrs.PutStr(keys[int(word+1)%len(keys)], text)
		}
		td := ptrace.NewTraces()
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", "snakepit")
		rs.Resource().Attributes().PutStr("service.instance.id", text)
		spans := rs.ScopeSpans().AppendEmpty().Spans()
		for id, spanName := range []string{names[int(name)%len(names)], "work"} {
			span := spans.AppendEmpty()
			span.SetSpanID(pcommon.SpanID{byte(id + 1)})
			span.SetName(spanName)
			span.SetStartTimestamp(1_763_000_000_000_000_000)
			span.SetEndTimestamp(pcommon.Timestamp(1_763_000_000_000_000_000 + length)) // #nosec G115 -- anything
			fill(span.Attributes())
			for i := range 3 {
				event := span.Events().AppendEmpty()
				event.SetName(names[(int(name)+i)%len(names)])
				event.SetTimestamp(pcommon.Timestamp(n)) // #nosec G115 -- anything
				fill(event.Attributes())
			}
		}
		require.NoError(t, c.ConsumeTraces(t.Context(), td))
		require.NoError(t, c.Shutdown(t.Context()))
		for _, md := range next.AllMetrics() {
			checkInvariants(t, md, cfg)
		}
	})
}
