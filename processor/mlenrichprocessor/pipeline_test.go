package mlenrichprocessor

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-ml/otelcol-ml/internal/testing/statetest"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/metadata"
)

// pipelines are the three instances of one ml_enrich, started, as a collector
// has them.
type pipelines struct {
	traces  processor.Traces
	metrics processor.Metrics
	logs    processor.Logs

	tracesOut  *consumertest.TracesSink
	metricsOut *consumertest.MetricsSink
	logsOut    *consumertest.LogsSink
	telemetry  *componenttest.Telemetry
	host       statetest.Host
}

// start makes and starts them; they stop with the test.
func start(tb testing.TB, cfg *Config) *pipelines {
	tb.Helper()
	p := &pipelines{
		tracesOut:  new(consumertest.TracesSink),
		metricsOut: new(consumertest.MetricsSink),
		logsOut:    new(consumertest.LogsSink),
		telemetry:  componenttest.NewTelemetry(),
	}
	set := processortest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = p.telemetry.NewTelemetrySettings()
	f := NewFactory()
	ctx := context.Background()
	var err error
	p.traces, err = f.CreateTraces(ctx, set, cfg, p.tracesOut)
	require.NoError(tb, err)
	p.metrics, err = f.CreateMetrics(ctx, set, cfg, p.metricsOut)
	require.NoError(tb, err)
	p.logs, err = f.CreateLogs(ctx, set, cfg, p.logsOut)
	require.NoError(tb, err)
	require.NoError(tb, p.traces.Start(ctx, &p.host))
	require.NoError(tb, p.metrics.Start(ctx, &p.host))
	require.NoError(tb, p.logs.Start(ctx, &p.host))
	tb.Cleanup(func() {
		require.NoError(tb, p.logs.Shutdown(ctx))
		require.NoError(tb, p.metrics.Shutdown(ctx))
		require.NoError(tb, p.traces.Shutdown(ctx))
		require.NoError(tb, p.telemetry.Shutdown(ctx))
	})
	return p
}

func startDefault(tb testing.TB) *pipelines {
	return start(tb, createDefaultConfig().(*Config))
}

// sendTraces returns what comes out for what goes in, which stays unchanged.
func (p *pipelines) sendTraces(tb testing.TB, in ptrace.Traces) ptrace.Traces {
	tb.Helper()
	td := ptrace.NewTraces()
	in.CopyTo(td)
	p.tracesOut.Reset()
	require.NoError(tb, p.traces.ConsumeTraces(context.Background(), td))
	require.Len(tb, p.tracesOut.AllTraces(), 1)
	return p.tracesOut.AllTraces()[0]
}

func (p *pipelines) sendMetrics(tb testing.TB, in pmetric.Metrics) pmetric.Metrics {
	tb.Helper()
	md := pmetric.NewMetrics()
	in.CopyTo(md)
	p.metricsOut.Reset()
	require.NoError(tb, p.metrics.ConsumeMetrics(context.Background(), md))
	require.Len(tb, p.metricsOut.AllMetrics(), 1)
	return p.metricsOut.AllMetrics()[0]
}

func (p *pipelines) sendLogs(tb testing.TB, in plog.Logs) plog.Logs {
	tb.Helper()
	ld := plog.NewLogs()
	in.CopyTo(ld)
	p.logsOut.Reset()
	require.NoError(tb, p.logs.ConsumeLogs(context.Background(), ld))
	require.Len(tb, p.logsOut.AllLogs(), 1)
	return p.logsOut.AllLogs()[0]
}

// counted are the values of one of the processor's own metrics, by reason where
// it has some.
func (p *pipelines) counted(tb testing.TB, name string) map[string]int64 {
	tb.Helper()
	values := make(map[string]int64)
	m, err := p.telemetry.GetMetric(name)
	if err != nil {
		return values
	}
	for _, point := range m.Data.(metricdata.Sum[int64]).DataPoints {
		reason, _ := point.Attributes.Value(attribute.Key("reason"))
		values[reason.AsString()] += point.Value
	}
	return values
}
