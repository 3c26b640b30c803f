package mlmetricsconnector

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/metadata"
)

func TestEmitsByTimerUntilStreamsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := NewFactory().CreateDefaultConfig().(*Config)
		cfg.FlushInterval, cfg.MetricsExpiration, cfg.MaxRuns = 10*time.Second, 25*time.Second, 1
		cfg.InitialZero = 0
		next := new(consumertest.MetricsSink)
		c := start(t, cfg, next)
		began := time.Now()
		time.Sleep(5*time.Second + time.Second/2)
		step(t, c, "run-a", 1)
		// Emissions of what is new each second until 10 s, then at 10, 20 and 30 s;
		// the stream expires 25 s after 5.5 s, which the emission at 40 s says.
		time.Sleep(4*time.Second + time.Second/4)
		synctest.Wait()
		assert.Len(t, next.AllMetrics(), 4, "soon after the start")
		next.Reset()
		time.Sleep(51*time.Second + time.Second/4)
		synctest.Wait()
		all := next.AllMetrics()
		require.Len(t, all, 4, "nothing is emitted before there is a series, and after it has expired")
		assert.True(t, find(t, all[3], "ml.steps").Sum().DataPoints().At(0).Flags().NoRecordedValue())
		point := find(t, all[2], "ml.steps").Sum().DataPoints().At(0)
		assert.Equal(t, began.Add(5*time.Second+time.Second/2), point.StartTimestamp().AsTime().Local(), "a stream begins with its first span")
		assert.Equal(t, began.Add(30*time.Second), point.Timestamp().AsTime().Local())
		assert.EqualValues(t, 1, point.IntValue())

		next.Reset()
		step(t, c, "run-b", 2)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		point = find(t, lastOf(t, next), "ml.steps").Sum().DataPoints().At(0)
		run, _ := point.Attributes().Get("ml.run.id")
		assert.Equal(t, "run-b", run.Str(), "an expired run makes room for another")
		assert.Equal(t, began.Add(61*time.Second), point.StartTimestamp().AsTime().Local())
		require.NoError(t, c.Shutdown(t.Context()))
	})
}

// TestACounterBeginsAtZero reads what a scrape after each emission would: the zero
// soon after a start, for as long as initial_zero, and then the value.
func TestACounterBeginsAtZero(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := new(consumertest.MetricsSink)
		c := start(t, NewFactory().CreateDefaultConfig().(*Config), next)
		td := ptrace.NewTraces()
		span := addSpan(td, "run", 1, 1)
		span.Attributes().PutStr("ml.phase", "optimizer")
		span.Attributes().PutDouble("ml.loss", 0.5)
		span.Attributes().PutDouble("ml.tokens_per_second", 7)
		require.NoError(t, c.ConsumeTraces(t.Context(), td))
		time.Sleep(time.Second)
		synctest.Wait()
		md := lastOf(t, next)
		assert.Equal(t, map[string]int64{"ml.steps": 0, "ml.run.attempts": 0}, counters(md))
		rates := find(t, md, "ml.request.token.throughput").Histogram().DataPoints().At(0)
		assert.Zero(t, rates.Count())
		assert.Zero(t, rates.Sum())
		assert.Zero(t, rates.BucketCounts().At(3))
		assert.Zero(t, rates.Exemplars().Len(), "they come with the value")
		assert.InDelta(t, 0.5, find(t, md, "ml.loss").Gauge().DataPoints().At(0).DoubleValue(), 0, "a gauge has no zero")

		time.Sleep(createDefaultConfig().(*Config).InitialZero - time.Second)
		synctest.Wait()
		assert.Equal(t, int64(0), counters(lastOf(t, next))["ml.steps"])
		time.Sleep(defaultFlushInterval)
		synctest.Wait()
		md = lastOf(t, next)
		assert.Equal(t, int64(1), counters(md)["ml.steps"])
		rates = find(t, md, "ml.request.token.throughput").Histogram().DataPoints().At(0)
		assert.Equal(t, uint64(1), rates.Count())
		assert.Equal(t, uint64(1), rates.BucketCounts().At(3))
		assert.Equal(t, 1, rates.Exemplars().Len())

		step(t, c, "another", 2)
		require.NoError(t, c.Shutdown(t.Context()))
		assert.Equal(t, int64(2), counters(lastOf(t, next))["ml.steps"], "the last emission has everything")
	})
}

// TestARestartThatOvertakesShows has a connector that counts more within a scrape
// interval than the one before it did in its life: the scrapes show that it began
// anew.
func TestARestartThatOvertakesShows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := new(consumertest.MetricsSink)
		var scraped []int64
		scrape := func() {
			synctest.Wait()
			scraped = append(scraped, counters(lastOf(t, next))["ml.steps"])
		}
		id := uint16(0)
		for _, steps := range []int{3, 9} {
			c := start(t, NewFactory().CreateDefaultConfig().(*Config), next)
			for range steps {
				id++
				step(t, c, "run", id)
				time.Sleep(time.Millisecond)
			}
			for range 5 {
				time.Sleep(10 * time.Second)
				scrape()
			}
			require.NoError(t, c.Shutdown(t.Context()))
		}
		increase, last := int64(0), int64(0)
		for _, value := range scraped {
			if value < last {
				last = 0
			}
			increase, last = increase+value-last, value
		}
		assert.Equal(t, int64(12), increase, "%v", scraped)
	})
}

func TestNothingExpiresWithoutExpiration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := NewFactory().CreateDefaultConfig().(*Config)
		cfg.MetricsExpiration, cfg.FlushInterval = 0, 5*time.Hour
		next := new(consumertest.MetricsSink)
		c := start(t, cfg, next)
		step(t, c, "run", 1)
		time.Sleep(50 * time.Hour)
		require.NoError(t, c.Shutdown(t.Context()))
		assert.EqualValues(t, 1, counters(lastOf(t, next))["ml.steps"])
	})
}

// TestClockAheadDoesNotFreezeGauges sends a loss that claims to be from next
// year; one from now must replace it all the same.
func TestClockAheadDoesNotFreezeGauges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := new(consumertest.MetricsSink)
		c := start(t, NewFactory().CreateDefaultConfig().(*Config), next)
		for n, ahead := range []time.Duration{365 * 24 * time.Hour, 0} {
			td := ptrace.NewTraces()
			span := addSpan(td, "run", 1, uint16(n+1)) // #nosec G115 -- small
			span.SetEndTimestamp(pcommon.NewTimestampFromTime(time.Now().Add(ahead)))
			span.Attributes().PutDouble("ml.loss", float64(n))
			require.NoError(t, c.ConsumeTraces(t.Context(), td))
			time.Sleep(time.Second)
		}
		require.NoError(t, c.Shutdown(t.Context()))
		assert.InDelta(t, 1, find(t, lastOf(t, next), "ml.loss").Gauge().DataPoints().At(0).DoubleValue(), 0)
	})
}

func TestFailedEmissionIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var failing atomic.Bool
		sink := new(consumertest.MetricsSink)
		next, err := consumer.NewMetrics(func(ctx context.Context, md pmetric.Metrics) error {
			if failing.Load() {
				return errors.New("queue full")
			}
			return sink.ConsumeMetrics(ctx, md)
		})
		require.NoError(t, err)
		c := start(t, NewFactory().CreateDefaultConfig().(*Config), next)
		failing.Store(true)
		step(t, c, "run", 1)
		time.Sleep(defaultFlushInterval)
		synctest.Wait()
		failing.Store(false)
		time.Sleep(defaultFlushInterval)
		synctest.Wait()
		assert.EqualValues(t, 1, counters(lastOf(t, sink))["ml.steps"])

		failing.Store(true)
		require.ErrorContains(t, c.Shutdown(t.Context()), "queue full")
		require.NoError(t, c.Shutdown(t.Context()), "a second shutdown does nothing")
	})
}

// TestShutdownHonoursItsContext has a next component that never answers.
func TestShutdownHonoursItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next, err := consumer.NewMetrics(func(ctx context.Context, _ pmetric.Metrics) error {
			<-ctx.Done()
			return ctx.Err()
		})
		require.NoError(t, err)
		c := start(t, NewFactory().CreateDefaultConfig().(*Config), next)
		step(t, c, "run", 1)
		time.Sleep(defaultFlushInterval)
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, c.Shutdown(ctx), context.DeadlineExceeded)
	})
}

func TestShutdownWithoutStart(t *testing.T) {
	c, err := NewFactory().CreateTracesToMetrics(t.Context(), connectortest.NewNopSettings(metadata.Type), NewFactory().CreateDefaultConfig(), consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, c.Shutdown(t.Context()))
	require.NoError(t, c.Shutdown(t.Context()))
}
