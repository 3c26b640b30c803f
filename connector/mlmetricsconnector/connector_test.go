package mlmetricsconnector

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

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
	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
)

// TestGolden runs each folder of testdata: the spans of its input.txt must become
// the metrics of its expected.txt, with its config.yaml if there is one,
// whether they arrive in one request or each in one of its own.
func TestGolden(t *testing.T) {
	inputs, err := filepath.Glob(filepath.Join("testdata", "*", "input.txt"))
	require.NoError(t, err)
	require.NotEmpty(t, inputs)
	for _, input := range inputs {
		folder := filepath.Dir(input)
		td := golden.ReadTraces(t, input)
		t.Run(filepath.Base(folder)+"/one request", func(t *testing.T) {
			compare(t, folder, metricsFrom(t, folder, td))
		})
		t.Run(filepath.Base(folder)+"/a request per span", func(t *testing.T) {
			compare(t, folder, metricsFrom(t, folder, singly(td)...))
		})
	}
}

// metricsFrom returns what the connector emits on its shutdown, with the
// configuration of a folder of testdata.
func metricsFrom(t *testing.T, folder string, requests ...ptrace.Traces) pmetric.Metrics {
	t.Helper()
	next := new(consumertest.MetricsSink)
	// The time of arrival is part of the metrics, and spans end before it.
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)))
		c := start(t, configOf(t, folder), next)
		for _, request := range requests {
			require.NoError(t, c.ConsumeTraces(t.Context(), request))
		}
		require.NoError(t, c.Shutdown(t.Context()))
	})
	return lastOf(t, next)
}

// compare compares metrics with the expected.txt of a folder. Which span is the
// newest of a stream, and so the exemplar, is a matter of delivery.
func compare(t *testing.T, folder string, got pmetric.Metrics) {
	t.Helper()
	dropExemplars(got)
	golden.Compare(t, filepath.Join(folder, "expected.txt"), golden.MetricsWithoutTimes(t, got))
}

// TestCountsDoNotDependOnDelivery sends a known number of steps, each a chain
// of up to three optimizer spans, children before parents, cut into requests
// of any size and partly delivered twice.
func TestCountsDoNotDependOnDelivery(t *testing.T) {
	for seed := range uint64(10) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		const steps = 200
		var spans []ptrace.Traces
		for n := range steps {
			depth := 1 + rnd.IntN(3)
			for level := depth; level > 0; level-- {
				parent := level - 1
				td := ptrace.NewTraces()
				rs := td.ResourceSpans().AppendEmpty()
				rs.Resource().Attributes().PutStr("ml.run.id", "run")
				span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
				span.SetTraceID(pcommon.TraceID{1})
				span.SetSpanID(pcommon.SpanID{byte(level), byte(n), 1})
				span.SetParentSpanID(pcommon.SpanID{byte(parent), byte(n), 1})
				if parent == 0 {
					span.SetParentSpanID(pcommon.SpanID{9})
				}
				span.SetName("AdamW.step")
				span.Attributes().PutStr("ml.phase", "optimizer")
				span.Attributes().PutInt("ml.batch.size", 8)
				spans = append(spans, td)
				if rnd.IntN(10) == 0 {
					spans = append(spans, td)
				}
			}
		}
		next := new(consumertest.MetricsSink)
		c := start(t, NewFactory().CreateDefaultConfig().(*Config), next)
		for len(spans) > 0 {
			n := 1 + rnd.IntN(min(7, len(spans)))
			request := ptrace.NewTraces()
			for _, td := range spans[:n] {
				td.ResourceSpans().At(0).CopyTo(request.ResourceSpans().AppendEmpty())
			}
			require.NoError(t, c.ConsumeTraces(t.Context(), request))
			spans = spans[n:]
		}
		require.NoError(t, c.Shutdown(t.Context()))
		got := counters(lastOf(t, next))
		require.Equal(t, map[string]int64{"ml.steps": steps, "ml.samples": 8 * steps, "ml.run.attempts": 1}, got, "seed %d", seed)
	}
}

// TestEqualIDsOfSeveralRanks sends the spans of ranks that draw equal ids, as Python
// programs with one seed do, and each of them twice.
func TestEqualIDsOfSeveralRanks(t *testing.T) {
	next := new(consumertest.MetricsSink)
	c := start(t, NewFactory().CreateDefaultConfig().(*Config), next)
	const ranks, steps = 4, 20
	began := time.Now().Add(-time.Minute)
	for rank := range ranks {
		td := ptrace.NewTraces()
		for n := range uint16(steps) {
			span := addSpan(td, "run", 1, n)
			td.ResourceSpans().At(int(n)).Resource().Attributes().PutInt("ml.rank.global", int64(rank))
			span.SetStartTimestamp(pcommon.NewTimestampFromTime(began.Add(time.Duration(n)*time.Second + time.Duration(rank))))
			span.Attributes().PutStr("ml.phase", "optimizer")
		}
		require.NoError(t, c.ConsumeTraces(t.Context(), td))
		require.NoError(t, c.ConsumeTraces(t.Context(), td))
	}
	require.NoError(t, c.Shutdown(t.Context()))
	assert.EqualValues(t, ranks*steps, counters(lastOf(t, next))["ml.steps"])
}

func TestConcurrentRequestsLoseNothing(t *testing.T) {
	cfg := NewFactory().CreateDefaultConfig().(*Config)
	cfg.FlushInterval = minDuration
	next := new(consumertest.MetricsSink)
	c := start(t, cfg, next)
	const senders, requests = 8, 200
	began := time.Now()
	var wg sync.WaitGroup
	for sender := range senders {
		wg.Go(func() {
			for n := range requests {
				td := ptrace.NewTraces()
				span := addSpan(td, "run", byte(sender+1), uint16(n+1)) // #nosec G115 -- small
				// Optimizers of one program that end at the same nanosecond would be one.
				span.SetEndTimestamp(pcommon.NewTimestampFromTime(began.Add(time.Duration(n*senders + sender))))
				span.Attributes().PutStr("ml.phase", "optimizer")
				span.Attributes().PutInt("gen_ai.usage.output_tokens", 3)
				assert.NoError(t, c.ConsumeTraces(context.Background(), td))
			}
		})
	}
	wg.Wait()
	require.NoError(t, c.Shutdown(t.Context()))
	assert.Equal(t, map[string]int64{
		"ml.steps": senders * requests, "ml.tokens": 3 * senders * requests, "ml.requests": senders * requests,
		"ml.run.attempts": 1,
	}, counters(lastOf(t, next)))
}

func TestReportsWhatItLeavesOut(t *testing.T) {
	tel := componenttest.NewTelemetry()
	defer func() { require.NoError(t, tel.Shutdown(context.Background())) }()
	set := connectortest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = tel.NewTelemetrySettings()
	cfg := NewFactory().CreateDefaultConfig().(*Config)
	cfg.MaxRuns, cfg.MaxSeries = 1, 4
	c, err := NewFactory().CreateTracesToMetrics(t.Context(), set, cfg, consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
	step(t, c, "run-a", 1)
	step(t, c, "run-a", 1) // the same span once more
	td := ptrace.NewTraces()
	addSpan(td, "run-b", 1, 2).Attributes().PutStr("ml.phase", "optimizer")
	addSpan(td, "", 1, 3).Attributes().PutInt("gen_ai.usage.input_tokens", 1<<60)
	addSpan(td, "", 1, 4).Attributes().PutInt("gen_ai.usage.input_tokens", 5)
	require.NoError(t, c.ConsumeTraces(t.Context(), td))

	metric := func(name string) map[string]int64 {
		m, err := tel.GetMetric("otelcol_connector_ml_metrics_" + name)
		require.NoError(t, err)
		sum := m.Data.(metricdata.Sum[int64])
		values := map[string]int64{}
		for _, p := range sum.DataPoints {
			id, _ := p.Attributes.Value("connector")
			assert.Equal(t, set.ID.String(), id.AsString())
			key := ""
			for _, attr := range p.Attributes.ToSlice() {
				if attr.Key != "connector" {
					key = attr.Value.AsString()
				}
			}
			values[key] += p.Value
		}
		return values
	}
	assert.Equal(t, map[string]int64{"duplicate_span": 1, "out_of_range": 1}, metric("skipped"))
	assert.Equal(t, map[string]int64{"": 1}, metric("runs"))
	// run-b: its timestamp is dropped and its step takes the fourth stream;
	// its attempt, and the requests' tokens and count, find no room.
	assert.Equal(t, map[string]int64{"max_runs": 3, "max_series": 4}, metric("overflowed_updates"))
	assert.Equal(t, map[string]int64{"": 7}, metric("streams"))
	require.NoError(t, c.Shutdown(t.Context()))
}

func TestLeavesTheTracesAsTheyAre(t *testing.T) {
	td := golden.ReadTraces(t, filepath.Join("testdata", "fx_epochs", "input.txt"))
	td.MarkReadOnly()
	c := start(t, NewFactory().CreateDefaultConfig().(*Config), consumertest.NewNop())
	assert.False(t, c.Capabilities().MutatesData)
	require.NoError(t, c.ConsumeTraces(t.Context(), td))
	require.NoError(t, c.Shutdown(t.Context()))
}
