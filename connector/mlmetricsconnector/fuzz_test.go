package mlmetricsconnector

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
	"github.com/otelcol-ml/otelcol-ml/internal/testing/otlpnest"
)

// FuzzConsumeTraces sends anything that decodes as traces, twice, the second
// time as if it came from ml_enrich.
func FuzzConsumeTraces(f *testing.F) {
	inputs, err := filepath.Glob(filepath.Join("testdata", "*", "input.txt"))
	require.NoError(f, err)
	for _, input := range inputs {
		raw, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(golden.ReadTraces(f, input))
		require.NoError(f, err)
		f.Add(raw, uint16(0))
		f.Add(raw, uint16(5000))
	}
	f.Fuzz(func(t *testing.T, raw []byte, levels uint16) {
		td, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(raw)
		if err != nil {
			t.Skip("not traces")
		}
		for _, rs := range td.ResourceSpans().All() {
			otlpnest.Attributes(rs.Resource().Attributes(), int(levels))
			for _, ss := range rs.ScopeSpans().All() {
				for _, span := range ss.Spans().All() {
					otlpnest.Attributes(span.Attributes(), int(levels))
				}
			}
		}
		cfg := NewFactory().CreateDefaultConfig().(*Config)
		cfg.MaxSeries = 10
		cfg.GenAIMetrics = true
		next, logs := new(consumertest.MetricsSink), new(consumertest.LogsSink)
		c := start(t, cfg, next)
		c.(*metricsConnector).Shared.outlets.Add(logs)
		require.NoError(t, c.ConsumeTraces(t.Context(), td))
		ctx, end := vocabulary.WithEnriched(t.Context())
		require.NoError(t, c.ConsumeTraces(ctx, td))
		end()
		require.NoError(t, c.Shutdown(t.Context()))
		for _, md := range next.AllMetrics() {
			checkInvariants(t, md, cfg)
		}
		checkRecords(t, logs)
	})
}

// checkRecords asserts what holds for records, whatever was received.
func checkRecords(t *testing.T, logs *consumertest.LogsSink) {
	for _, ld := range logs.AllLogs() {
		for _, rl := range ld.ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, record := range sl.LogRecords().All() {
					require.Contains(t, []string{mlattr.EventChange, mlattr.Problem}, record.EventName())
					body := record.Body().Str()
					require.NotEmpty(t, body)
					require.LessOrEqual(t, len(body), 1024)
					require.True(t, utf8.ValidString(body))
					for key, v := range record.Attributes().All() {
						if v.Type() == pcommon.ValueTypeStr {
							require.True(t, utf8.ValidString(v.Str()), key)
							require.LessOrEqual(t, len(v.Str()), 1024, key)
						}
					}
				}
			}
		}
	}
}

// FuzzConsumeMetrics shows the connector anything that decodes as metrics.
func FuzzConsumeMetrics(f *testing.F) {
	outputs, err := filepath.Glob(filepath.Join("testdata", "*", "expected.txt"))
	require.NoError(f, err)
	for _, output := range outputs {
		raw, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(golden.ReadMetrics(f, output))
		require.NoError(f, err)
		f.Add(raw, uint16(0))
		f.Add(raw, uint16(5000))
	}
	for _, md := range []pmetric.Metrics{
		gpuHolders("run-a", 1<<30), ofRank("run-a", 3), ncclAnswer("run-a", time.Unix(1_763_000_000, 0), affected{3, "dead"}),
		gpuReading(gpuMetrics{host: "n1", id: "GPU-a", run: "run-a", memory: 1, sm: 0.5, failed: true}, time.Unix(1_763_000_000, 0)),
	} {
		raw, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
		require.NoError(f, err)
		f.Add(raw, uint16(0))
	}
	f.Fuzz(func(t *testing.T, raw []byte, levels uint16) {
		md, err := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(raw)
		if err != nil {
			t.Skip("not metrics")
		}
		for _, rm := range md.ResourceMetrics().All() {
			otlpnest.Attributes(rm.Resource().Attributes(), int(levels))
		}
		cfg, next, concluded := createDefaultConfig().(*Config), new(consumertest.MetricsSink), new(consumertest.MetricsSink)
		cfg.MaxSeries = 10
		f, set := NewFactory(), connectortest.NewNopSettings(metadata.Type)
		c, err := f.CreateMetricsToMetrics(t.Context(), set, cfg, next)
		require.NoError(t, err)
		spans, err := f.CreateTracesToMetrics(t.Context(), set, cfg, concluded)
		require.NoError(t, err)
		require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
		require.NoError(t, spans.Start(t.Context(), componenttest.NewNopHost()))
		logs := new(consumertest.LogsSink)
		spans.(*metricsConnector).Shared.outlets.Add(logs)
		require.NoError(t, c.ConsumeMetrics(t.Context(), md))
		require.NoError(t, spans.Shutdown(t.Context()))
		require.NoError(t, c.Shutdown(t.Context()))
		require.Empty(t, next.AllMetrics(), "nothing is passed on")
		for _, md := range concluded.AllMetrics() {
			checkInvariants(t, md, cfg)
		}
		checkRecords(t, logs)
	})
}

// checkInvariants asserts what holds whatever was received.
func checkInvariants(t *testing.T, md pmetric.Metrics, cfg *Config) {
	table := map[string]series.Series{}
	for _, s := range series.All {
		table[s.Name] = s
	}
	require.LessOrEqual(t, md.DataPointCount(), cfg.MaxSeries+int(series.Count))
	seen := map[string]bool{}
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				s, ok := table[m.Name()]
				require.True(t, ok, m.Name())
				check := func(attrs pcommon.Map) {
					allowed := slices.Concat(s.Labels, series.RunLabels, []string{series.Overflow})
					for key, value := range attrs.All() {
						require.Contains(t, allowed, key)
						require.NotEmpty(t, value.AsString(), key)
						require.LessOrEqual(t, len(value.AsString()), 128, key)
					}
					raw := attrs.AsRaw()
					identity := fmt.Sprint(rm.Resource().Attributes().AsRaw(), m.Name(), raw)
					require.False(t, seen[identity], "two points of one identity: %s", identity)
					seen[identity] = true
				}
				switch m.Type() {
				case pmetric.MetricTypeSum:
					for _, p := range m.Sum().DataPoints().All() {
						require.GreaterOrEqual(t, p.IntValue(), int64(0))
						check(p.Attributes())
					}
				case pmetric.MetricTypeGauge:
					for _, p := range m.Gauge().DataPoints().All() {
						require.False(t, math.IsNaN(p.DoubleValue()) || math.IsInf(p.DoubleValue(), 0), "%s is not finite", m.Name())
						check(p.Attributes())
					}
				case pmetric.MetricTypeHistogram:
					for _, p := range m.Histogram().DataPoints().All() {
						total := uint64(0)
						for _, n := range p.BucketCounts().AsRaw() {
							total += n
						}
						require.Equal(t, p.Count(), total)
						require.GreaterOrEqual(t, p.Sum(), 0.0)
						check(p.Attributes())
					}
				default:
					require.Fail(t, "a kind that the table does not have", m.Type().String())
				}
			}
		}
	}
}

// FuzzConsumeLogs gives the connector whatever OTLP log records decode to, and a hang that it
// concludes beside them.
func FuzzConsumeLogs(f *testing.F) {
	for _, ld := range dumpsOf("run-a", 4, time.Unix(1_763_000_000, 0), 3) {
		raw, err := (&plog.ProtoMarshaler{}).MarshalLogs(ld)
		require.NoError(f, err)
		f.Add(raw, uint16(0))
		f.Add(raw, uint16(5000))
	}
	f.Fuzz(func(t *testing.T, raw []byte, levels uint16) {
		ld, err := (&plog.ProtoUnmarshaler{}).UnmarshalLogs(raw)
		if err != nil {
			t.Skip("not logs")
		}
		for _, rl := range ld.ResourceLogs().All() {
			otlpnest.Attributes(rl.Resource().Attributes(), int(levels))
		}
		before := plog.NewLogs()
		ld.CopyTo(before)
		r := newRun(t, createDefaultConfig().(*Config))
		r.reads(t, ld)
		_, said := r.connector.Shared.seen.Settle(nil, r.clock)
		for _, one := range said {
			require.NotEmpty(t, one.Wait.Sentences)
		}
		require.Equal(t, before, ld, "the logs of others stay as they are")
	})
}
