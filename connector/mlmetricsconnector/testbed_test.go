package mlmetricsconnector

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
)

func step(t *testing.T, c connector.Traces, run string, id uint16) {
	td := ptrace.NewTraces()
	addSpan(td, run, 1, id).Attributes().PutStr("ml.phase", "optimizer")
	require.NoError(t, c.ConsumeTraces(t.Context(), td))
}

func addSpan(td ptrace.Traces, run string, trace byte, id uint16) ptrace.Span {
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "trainer")
	if run != "" {
		rs.Resource().Attributes().PutStr("ml.run.id", run)
	}
	span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.SetTraceID(pcommon.TraceID{trace})
	span.SetSpanID(pcommon.SpanID{byte(id >> 8), byte(id), 1})
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	return span
}

func start(t *testing.T, cfg *Config, next consumer.Metrics) connector.Traces {
	c, err := NewFactory().CreateTracesToMetrics(t.Context(), connectortest.NewNopSettings(metadata.Type), cfg, next)
	require.NoError(t, err)
	require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
	return c
}

// configOf returns the config.yaml of a folder; without one, the default.
func configOf(t *testing.T, folder string) *Config {
	file := filepath.Join(folder, "config.yaml")
	if _, err := os.Stat(file); os.IsNotExist(err) {
		return load(t, confmap.New())
	}
	conf, err := confmaptest.LoadConf(file)
	require.NoError(t, err)
	return load(t, conf)
}

func load(t *testing.T, conf *confmap.Conf) *Config {
	cfg := NewFactory().CreateDefaultConfig().(*Config)
	require.NoError(t, conf.Unmarshal(cfg))
	require.NoError(t, cfg.Validate())
	return cfg
}

// requestsOf returns what the traces.json or the input.txt of a folder sends.
func requestsOf(t *testing.T, folder string) (requests []ptrace.Traces) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "traces.json"))
	if os.IsNotExist(err) {
		return []ptrace.Traces{golden.ReadTraces(t, filepath.Join(folder, "input.txt"))}
	}
	require.NoError(t, err)
	for line := range bytes.Lines(text) {
		td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(line)
		require.NoError(t, err)
		requests = append(requests, td)
	}
	return requests
}

// singly returns each span of td as a request of its own.
func singly(td ptrace.Traces) []ptrace.Traces {
	var requests []ptrace.Traces
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				one := ptrace.NewTraces()
				to := one.ResourceSpans().AppendEmpty()
				rs.Resource().CopyTo(to.Resource())
				scope := to.ScopeSpans().AppendEmpty()
				ss.Scope().CopyTo(scope.Scope())
				span.CopyTo(scope.Spans().AppendEmpty())
				requests = append(requests, one)
			}
		}
	}
	return requests
}

func lastOf(t *testing.T, sink *consumertest.MetricsSink) pmetric.Metrics {
	all := sink.AllMetrics()
	require.NotEmpty(t, all)
	return all[len(all)-1]
}

// counters adds up the points of each counter.
func counters(md pmetric.Metrics) map[string]int64 {
	sums := map[string]int64{}
	for m := range metricsOf(md) {
		if m.Type() == pmetric.MetricTypeSum && m.Sum().IsMonotonic() {
			for _, p := range m.Sum().DataPoints().All() {
				if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
					sums[m.Name()] += p.IntValue()
				}
			}
		}
	}
	return sums
}

func dropExemplars(md pmetric.Metrics) {
	none := func(pmetric.Exemplar) bool { return true }
	for m := range metricsOf(md) {
		switch m.Type() {
		case pmetric.MetricTypeSum:
			for _, p := range m.Sum().DataPoints().All() {
				p.Exemplars().RemoveIf(none)
			}
		case pmetric.MetricTypeHistogram:
			for _, p := range m.Histogram().DataPoints().All() {
				p.Exemplars().RemoveIf(none)
			}
		}
	}
}

func metricsOf(md pmetric.Metrics) func(yield func(pmetric.Metric) bool) {
	return func(yield func(pmetric.Metric) bool) {
		for _, rm := range md.ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					if !yield(m) {
						return
					}
				}
			}
		}
	}
}

func find(t *testing.T, md pmetric.Metrics, name string) pmetric.Metric {
	for m := range metricsOf(md) {
		if m.Name() == name {
			return m
		}
	}
	require.Failf(t, "no such metric", "%s", name)
	return pmetric.Metric{}
}
