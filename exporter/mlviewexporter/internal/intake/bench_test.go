package intake_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/intake"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/testing/pagetest"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// steps returns the spans of training steps of some ranks, 100 a rank.
func steps(ranks int) ptrace.Traces {
	td := ptrace.NewTraces()
	for rank := range ranks {
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", "trainer")
		rs.Resource().Attributes().PutStr("service.version", "1")
		rs.Resource().Attributes().PutStr("host.name", fmt.Sprint("h", rank/8))
		rs.Resource().Attributes().PutStr("ml.run.id", "r")
		rs.Resource().Attributes().PutInt("ml.rank.global", int64(rank))
		spans := rs.ScopeSpans().AppendEmpty().Spans()
		for i := range 100 {
			span := spans.AppendEmpty()
			span.SetName([]string{"data_load", "forward", "backward", "optimizer"}[i%4])
			span.SetTraceID([16]byte{byte(rank), 1})
			span.SetSpanID([8]byte{byte(i), 1})
			span.SetParentSpanID([8]byte{0xff})
			span.SetStartTimestamp(1)
			span.SetEndTimestamp(2)
			span.Attributes().PutStr("ml.phase", span.Name())
			span.Attributes().PutInt("ml.step", int64(i/4))
		}
	}
	return td
}

// gauges returns one point of each series of some ranks.
func gauges(ranks int) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "trainer")
	sm := rm.ScopeMetrics().AppendEmpty()
	for _, name := range []string{"ml.steps", "ml.samples", "ml.tokens", "ml.loss", "ml.learning_rate", "ml.epoch", "ml.run.last_step.timestamp", "ml.run.attempts"} {
		m := sm.Metrics().AppendEmpty()
		m.SetName(name)
		points := m.SetEmptySum().DataPoints()
		for rank := range ranks {
			point := points.AppendEmpty()
			point.SetIntValue(1)
			point.SetTimestamp(1)
			point.Attributes().PutStr("ml.run.id", "r")
			point.Attributes().PutStr("host.name", "h")
			point.Attributes().PutInt("ml.rank.global", int64(rank))
		}
	}
	return md
}

// TestIngestAllocates holds that telemetry of what is known allocates next to
// nothing: a source of each resource of spans.
func TestIngestAllocates(t *testing.T) {
	if raceEnabled {
		t.Log("the race detector allocates")
	}
	now := time.Unix(1_700_000_000, 0)
	store := pagetest.NewStore(input.Settings{Now: func() time.Time { return now }})
	in := intake.New(store)
	const ranks = 8
	td, md := steps(ranks), gauges(ranks)
	ctx, end := vocabulary.WithEnriched(context.Background())
	defer end()
	traces := func() { in.ConsumeTraces(ctx, td) }
	metrics := func() { in.ConsumeMetrics(ctx, md) }
	for range 30 {
		traces()
		metrics()
	}
	limit := 2.0
	if raceEnabled {
		limit = 1000
	}
	require.LessOrEqual(t, testing.AllocsPerRun(20, traces), limit+2*ranks)
	require.LessOrEqual(t, testing.AllocsPerRun(20, metrics), limit)
}

func BenchmarkConsumeTraces(b *testing.B) {
	store := pagetest.NewStore(input.Settings{})
	in := intake.New(store)
	td := steps(8)
	ctx, end := vocabulary.WithEnriched(context.Background())
	defer end()
	b.ReportAllocs()
	for b.Loop() {
		in.ConsumeTraces(ctx, td)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*td.SpanCount()), "ns/span")
}

func BenchmarkConsumeMetrics(b *testing.B) {
	store := pagetest.NewStore(input.Settings{})
	in := intake.New(store)
	md := gauges(64)
	b.ReportAllocs()
	for b.Loop() {
		in.ConsumeMetrics(context.Background(), md)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*md.DataPointCount()), "ns/point")
}

// BenchmarkState takes the state of 500 runs with 8 ranks and 512 GPUs.
func BenchmarkState(b *testing.B) {
	store := pagetest.NewStore(input.Settings{Interval: time.Nanosecond})
	var points []series.Point
	for run := range 500 {
		for rank := range 8 {
			for _, s := range []series.Series{series.Steps, series.Samples, series.Tokens, series.Loss, series.LearningRate, series.LastStep, series.RunAttempts, series.StepDuration, series.RunState} {
				p := series.Point{Series: s, Update: series.Update{Value: 1}}
				p.Labels = series.Labels{Service: "s", Run: fmt.Sprint("r", run), Rank: strconv.Itoa(rank), Host: fmt.Sprint("h", run/8)}
				points = append(points, p)
			}
		}
	}
	for i := range 512 {
		for _, s := range []series.Series{series.GPUUtilization, series.GPUPower, series.GPUMemoryUsed, series.GPUMemoryLimit, series.GPUTemperature, series.GPUWorkload} {
			p := series.Point{Series: s, Update: series.Update{Value: 1}, GPU: &series.Device{Index: strconv.Itoa(i % 8)}}
			p.Labels = series.Labels{Host: fmt.Sprint("h", i/8), GPU: fmt.Sprint("g", i)}
			if s == series.GPUWorkload {
				p.Labels.Run = fmt.Sprint("r", i%500)
			}
			points = append(points, p)
		}
	}
	store.ApplyPoints(points)
	b.ReportAllocs()
	for b.Loop() {
		store.State()
	}
}
