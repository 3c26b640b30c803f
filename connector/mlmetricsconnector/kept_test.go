package mlmetricsconnector

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"
	zaplogged "go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/metadata"
)

// sums returns the values of all counters and histograms, each with its labels and its
// start.
func sums(md pmetric.Metrics, starts bool) map[string]float64 {
	all := make(map[string]float64)
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				name := func(what string, attrs pcommon.Map, start pcommon.Timestamp) string {
					var labels []string
					for key, v := range attrs.All() {
						labels = append(labels, key+"="+v.AsString())
					}
					slices.Sort(labels)
					if starts {
						labels = append(labels, start.String())
					}
					return m.Name() + what + "{" + strings.Join(labels, ",") + "}"
				}
				switch m.Type() {
				case pmetric.MetricTypeSum:
					for _, p := range m.Sum().DataPoints().All() {
						if m.Sum().IsMonotonic() && !p.Flags().NoRecordedValue() {
							all[name("", p.Attributes(), p.StartTimestamp())] = float64(p.IntValue()) + p.DoubleValue()
						}
					}
				case pmetric.MetricTypeHistogram:
					for _, p := range m.Histogram().DataPoints().All() {
						for i, n := range p.BucketCounts().All() {
							all[name(strconv.Itoa(i), p.Attributes(), p.StartTimestamp())] = float64(n)
						}
						all[name("_sum", p.Attributes(), p.StartTimestamp())] = p.Sum()
					}
				}
			}
		}
	}
	return all
}

// lives is a connector that starts again with what is kept.
type lives struct {
	kept      *memory
	sink      *consumertest.MetricsSink
	traces    connector.Traces
	metrics   connector.Metrics
	logged    *zaplogged.ObservedLogs
	configure func(*Config)
	// passed is called with what is passed on, if it is set.
	passed func(pmetric.Metrics)
}

func (l *lives) start(t *testing.T) {
	t.Helper()
	cfg := createDefaultConfig().(*Config)
	cfg.Storage, cfg.InitialZero, cfg.FlushInterval = &memoryID, 0, 5*time.Second
	if l.configure != nil {
		l.configure(cfg)
	}
	core, logged := zaplogged.New(zap.WarnLevel)
	set, factory := connectortest.NewNopSettings(metadata.Type), NewFactory()
	set.ID, set.Logger, l.logged, l.sink = component.NewID(metadata.Type), zap.New(core), logged, new(consumertest.MetricsSink)
	sink, passed := l.sink, l.passed // a life that was killed has its own
	next, err := consumer.NewMetrics(func(ctx context.Context, md pmetric.Metrics) error {
		if passed != nil {
			passed(md)
		}
		return sink.ConsumeMetrics(ctx, md)
	})
	require.NoError(t, err)
	l.traces, err = factory.CreateTracesToMetrics(t.Context(), set, cfg, next)
	require.NoError(t, err)
	l.metrics, err = factory.CreateMetricsToMetrics(t.Context(), set, cfg, consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, l.traces.Start(t.Context(), l.kept))
	require.NoError(t, l.metrics.Start(t.Context(), l.kept))
}

func (l *lives) stop(t *testing.T) {
	t.Helper()
	require.NoError(t, l.traces.Shutdown(t.Context()))
	require.NoError(t, l.metrics.Shutdown(t.Context()))
}

func (l *lives) reload(t *testing.T) { l.stop(t); l.start(t) }

// copy returns a storage with what is in m now.
func (m *memory) copy() *memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	return &memory{values: maps.Clone(m.values)}
}

// kill starts again with what the storage has now.
func (l *lives) kill(t *testing.T) {
	t.Helper()
	killed := *l
	l.kept = l.kept.copy()
	l.start(t)
	killed.stop(t)
}

// spansOfWork is a training of 2 ranks, with two optimizers a step, and an agent, each
// span in a request of its own.
func spansOfWork(began time.Time, steps int) (requests []ptrace.Traces) {
	id := uint16(0)
	add := func(rank int, from, to time.Duration, attrs map[string]any) {
		td := ptrace.NewTraces()
		id++
		span := addSpan(td, "run-a", byte(rank+1), id)
		span.SetParentSpanID(pcommon.SpanID{9})
		resource := td.ResourceSpans().At(0).Resource().Attributes()
		resource.PutInt("ml.rank.global", int64(rank))
		resource.PutStr("process.creation.time", began.Add(-time.Minute).Format(time.RFC3339Nano))
		resource.PutDouble("ml.job.tokens_per_step", 100)
		if err := span.Attributes().FromRaw(attrs); err != nil {
			panic(err)
		}
		span.SetStartTimestamp(pcommon.NewTimestampFromTime(began.Add(from)))
		span.SetEndTimestamp(pcommon.NewTimestampFromTime(began.Add(to)))
		requests = append(requests, td)
	}
	for n := range steps {
		at := time.Duration(n) * time.Second
		phase := func(rank int, name string, from, to time.Duration, more map[string]any) {
			attrs := map[string]any{"ml.phase": name}
			maps.Copy(attrs, more)
			add(rank, at+from*time.Millisecond, at+to*time.Millisecond, attrs)
		}
		for rank := range 2 {
			phase(rank, "data_load", 0, 100, nil)
			phase(rank, "forward", 100, 300, nil)
			phase(rank, "backward", 300, 600, nil)
			phase(rank, "optimizer", 600, 700, nil)
			phase(rank, "optimizer", 700, 800, nil)
		}
		add(5, at, at+500*time.Millisecond, map[string]any{"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 7})
	}
	return requests
}

// live sends the requests of a training as their spans end, and calls cut before the n-th
// with those before.
func (l *lives) live(t *testing.T, n int, cut func(before []ptrace.Traces)) map[string]float64 {
	t.Helper()
	l.kept = &memory{}
	l.start(t)
	time.Sleep(time.Minute)
	requests := spansOfWork(time.Now(), 30)
	for i, td := range requests {
		if i == n {
			cut(requests[:n])
		}
		span := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
		time.Sleep(time.Until(span.EndTimestamp().AsTime()))
		synctest.Wait()
		require.NoError(t, l.traces.ConsumeTraces(t.Context(), td))
	}
	l.stop(t)
	return sums(lastOf(t, l.sink), false)
}

// A reload changes no count, wherever in a step it comes.
func TestAReloadLosesNoCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lives
		want := l.live(t, -1, nil)
		require.Contains(t, want, "ml.steps{ml.rank.global=1,ml.run.id=run-a}")
		assert.InDelta(t, 30, want["ml.steps{ml.rank.global=1,ml.run.id=run-a}"], 0)
		for n := 110; n < 122; n++ {
			got := l.live(t, n, func([]ptrace.Traces) { l.reload(t) })
			if !assert.InDeltaMapValues(t, want, got, 1e-6, "%d", n) {
				for key := range want {
					if got[key] != want[key] {
						t.Log(n, key, want[key], got[key])
					}
				}
			}
			assert.Empty(t, l.logged.All())
		}
	})
}

// A kill loses less than the counts of two seconds. What is sent again counts again if it was
// lost, and only then.
func TestAKillLosesTwoSecondsAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l lives
		want := l.live(t, -1, nil)
		for n := 110; n < 130; n++ {
			got := l.live(t, n, func([]ptrace.Traces) { l.kill(t) })
			for key := range want {
				// Of lost spans nothing is known, so that their time is another's.
				if strings.Contains(key, "state=other") || strings.Contains(key, "ml.step.duration") {
					continue
				}
				most := 2.0
				if strings.Contains(key, "tokens") {
					most *= 100
				}
				lost := want[key] - got[key]
				assert.GreaterOrEqual(t, lost, -1e-6, "%d %s", n, key)
				assert.LessOrEqual(t, lost, most, "%d %s", n, key)
			}
			got = l.live(t, n, func(before []ptrace.Traces) {
				l.kill(t)
				for _, td := range before[n-25:] {
					require.NoError(t, l.traces.ConsumeTraces(t.Context(), td))
				}
			})
			if !assert.InDeltaMapValues(t, want, got, 1e-6, "%d", n) {
				for key := range want {
					if got[key] != want[key] {
						t.Log(n, key, want[key], got[key])
					}
				}
			}
		}
	})
}

// What was passed on never goes back over a kill, or Prometheus would add it up again, and
// it keeps its start. A storage that fails passes on all the same.
func TestWhatWasPassedOnIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lives{kept: &memory{}}
		type moment struct {
			passed map[string]float64
			kept   *memory
		}
		var moments []moment
		l.passed = func(md pmetric.Metrics) { moments = append(moments, moment{sums(md, true), l.kept.copy()}) }
		l.start(t)
		for _, td := range spansOfWork(time.Now(), 30) {
			require.NoError(t, l.traces.ConsumeTraces(t.Context(), td))
			time.Sleep(77 * time.Millisecond)
		}
		l.stop(t)
		require.Greater(t, len(moments), 5)
		l.passed = nil
		for _, m := range moments {
			l.kept = m.kept
			l.start(t)
			time.Sleep(time.Second)
			synctest.Wait()
			got := sums(lastOf(t, l.sink), true)
			for key, value := range m.passed {
				assert.GreaterOrEqual(t, got[key], value, key)
			}
			l.stop(t)
		}
		l.kept = &memory{failing: errors.New("disk full")}
		l.start(t)
		step(t, l.traces, "run-a", 1)
		time.Sleep(10 * time.Second)
		l.stop(t)
		assert.Contains(t, sums(lastOf(t, l.sink), false), "ml.steps{ml.run.id=run-a}")
		assert.Len(t, l.logged.All(), 2, "one of the counts, one of the rest")
	})
}

// What is damaged, or no counts, is said once and not used: counts begin at zero, as they do
// without a storage, and not a little lower than they were.
func TestDamagedCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lives{kept: &memory{}}
		l.start(t)
		step(t, l.traces, "run-a", 1)
		l.stop(t)
		whole := l.kept.values["counts.state"]
		for name, damaged := range map[string][]byte{
			"a bit":     append(slices.Clone(whole[:len(whole)-5]), whole[len(whole)-5]^1, 0, 0, 0, 0),
			"cut":       whole[:len(whole)/2],
			"no counts": []byte(`{"version":1}`),
		} {
			l.kept = &memory{values: map[string][]byte{"counts.state": damaged}}
			l.start(t)
			step(t, l.traces, "run-a", 2)
			l.stop(t)
			assert.InDelta(t, 1, sums(lastOf(t, l.sink), false)["ml.steps{ml.run.id=run-a}"], 0, name)
			assert.Len(t, l.logged.All(), 1, name)
			assert.Equal(t, damaged, l.kept.values["counts.state.backup"], name)
			l.reload(t)
			assert.Empty(t, l.logged.All(), name)
			l.stop(t)
		}
	})
}

// Limits that have become lower hold, and gauges are not kept.
func TestKeptCountsHaveLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := lives{kept: &memory{}}
		l.start(t)
		for i := range uint16(20) {
			step(t, l.traces, fmt.Sprint("run-", i), i+1)
		}
		l.configure = func(cfg *Config) { cfg.MaxRuns, cfg.MaxSeries = 3, 5 }
		l.reload(t)
		time.Sleep(time.Second)
		synctest.Wait()
		assert.Len(t, sums(lastOf(t, l.sink), false), 5)
		md := lastOf(t, l.sink)
		for m := range metricsOf(md) {
			assert.NotEqual(t, pmetric.MetricTypeGauge, m.Type(), m.Name())
		}
		l.stop(t)
	})
}

// Steps that only a trainer's metrics show are not lost with the value before.
func TestStepsInMetricsOutliveARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, again := range map[string]func(*lives, *testing.T){"reload": (*lives).reload, "kill": (*lives).kill} {
			l := lives{kept: &memory{}}
			l.start(t)
			for n := range int64(20) {
				if n == 10 {
					time.Sleep(1500 * time.Millisecond)
					again(&l, t)
				}
				require.NoError(t, l.metrics.ConsumeMetrics(t.Context(), stepsSent(5*n)))
				time.Sleep(10 * time.Second)
			}
			l.stop(t)
			assert.InDelta(t, 95, sums(lastOf(t, l.sink), false)["ml.steps{ml.rank.global=7,ml.run.id=run-a}"], 0, name)
		}
	})
}

// FuzzKeptCounts has a connector read anything.
func FuzzKeptCounts(f *testing.F) {
	connects := func(t testing.TB) *metricsConnector {
		c, err := newMetricsConnector(connectortest.NewNopSettings(metadata.Type), createDefaultConfig().(*Config), new(instancesByID), consumertest.NewNop())
		require.NoError(t, err)
		return c
	}
	c := connects(f)
	for _, td := range spansOfWork(time.Now(), 2) {
		require.NoError(f, c.ConsumeTraces(f.Context(), td))
	}
	data, err := c.counts.Export()
	require.NoError(f, err)
	f.Add(data)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		c := connects(t)
		if c.counts.Import(data) == nil {
			for _, td := range spansOfWork(time.Now(), 2) {
				require.NoError(t, c.ConsumeTraces(t.Context(), td))
			}
			require.NoError(t, c.emit(t.Context(), true))
		}
		require.NoError(t, c.Shutdown(t.Context()))
	})
}

// stepsSent is the counter of steps that Axolotl sends.
func stepsSent(steps int64) pmetric.Metrics {
	md := trains(time.Now(), 1, 2000, 1)
	metrics := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
	metrics.RemoveIf(func(pmetric.Metric) bool { return true })
	m := metrics.AppendEmpty()
	m.SetName("axolotl_global_steps")
	sum := m.SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	point := sum.DataPoints().AppendEmpty()
	point.SetIntValue(steps)
	point.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	return md
}

// BenchmarkKeptCounts saves and restores 100,000 series as Prometheus shows them, of runs of
// 100 ranks.
func BenchmarkKeptCounts(b *testing.B) {
	connects := func() *metricsConnector {
		c, err := newMetricsConnector(connectortest.NewNopSettings(metadata.Type), createDefaultConfig().(*Config), new(instancesByID), consumertest.NewNop())
		require.NoError(b, err)
		return c
	}
	c := connects()
	now := time.Now()
	for run := 0; c.store.Series() < 99_000; run++ {
		for rank := range 100 {
			for _, td := range spansOfWork(now.Add(-time.Duration(100*run+rank)*time.Minute), 1)[:5] {
				resource := td.ResourceSpans().At(0).Resource().Attributes()
				resource.PutStr("ml.run.id", fmt.Sprint("run-", run))
				resource.PutStr("host.name", fmt.Sprint("node-", rank/8))
				resource.PutInt("ml.rank.global", int64(rank))
				require.NoError(b, c.ConsumeTraces(b.Context(), td))
			}
		}
		require.NoError(b, c.emit(b.Context(), true))
	}
	b.Logf("%d streams, %d series, %d ranks", c.store.Streams(), c.store.Series(), len(c.clocks.Keep()))
	var data []byte
	b.Run("save", func(b *testing.B) {
		for b.Loop() {
			c.counts.changes.Add(1)
			var err error
			data, err = c.counts.Export()
			require.NoError(b, err)
		}
		b.ReportMetric(float64(len(data)), "bytes")
	})
	b.Run("restore", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			c := connects()
			b.StartTimer()
			require.NoError(b, c.counts.Import(data))
		}
	})
	b.Run("request during saves", func(b *testing.B) {
		ended := make(chan struct{})
		ctx, cancel := context.WithCancel(b.Context())
		go func() {
			defer close(ended)
			for ctx.Err() == nil {
				c.counts.changes.Add(1)
				_, _ = c.counts.Export()
			}
		}()
		longest := time.Duration(0)
		for b.Loop() {
			began := time.Now()
			require.NoError(b, c.ConsumeTraces(b.Context(), spansOfWork(now, 1)[0]))
			longest = max(longest, time.Since(began))
		}
		cancel()
		<-ended
		b.ReportMetric(float64(longest.Microseconds()), "longest-µs")
	})
}
