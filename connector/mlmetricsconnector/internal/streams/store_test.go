package streams_test

import (
	"math"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func noScope(pcommon.InstrumentationScope) {}

func of(id series.ID, run string) streams.Key {
	return streams.Key{Resource: streams.Resource{Service: "s"}, Run: streams.Run{ID: run}, Series: id}
}

// metric returns the only metric there is.
func metric(t *testing.T, md pmetric.Metrics) pmetric.Metric {
	require.Equal(t, 1, md.MetricCount())
	return md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0)
}

func TestHistogramBucketsIncludeTheirUpperBound(t *testing.T) {
	s := streams.NewStore(streams.Limits{Series: 1})
	for _, v := range []float64{0, 1, 1.5, 2, 16384, 16385} {
		s.Apply([]streams.Update{{Key: of(series.RequestTokenThroughput, ""), Value: v}}, began)
	}
	md, _ := s.Metrics(began.Add(time.Minute), noScope)
	point := metric(t, md).Histogram().DataPoints().At(0)
	want := make([]uint64, 16)
	want[0], want[1], want[14], want[15] = 2, 2, 1, 1
	assert.Equal(t, want, point.BucketCounts().AsRaw())
	assert.EqualValues(t, 6, point.Count())
	assert.InDelta(t, 0+1+1.5+2+16384+16385, point.Sum(), 1e-9)
	assert.Equal(t, began, point.StartTimestamp().AsTime())
	assert.Equal(t, began.Add(time.Minute), point.Timestamp().AsTime())
}

func TestNewestGaugeWins(t *testing.T) {
	s := streams.NewStore(streams.Limits{Series: 1, Runs: 1})
	s.Apply([]streams.Update{
		{Key: of(series.Loss, "r"), Value: 2, At: 20},
		{Key: of(series.Loss, "r"), Value: 1, At: 10},
		{Key: of(series.Loss, "r"), Value: 3, At: 20},
	}, began)
	md, _ := s.Metrics(began, noScope)
	assert.InDelta(t, 3, metric(t, md).Gauge().DataPoints().At(0).DoubleValue(), 0, "of two that ended together, the later one")
}

func TestCounterDoesNotWrapRound(t *testing.T) {
	s := streams.NewStore(streams.Limits{Series: 1})
	for range 3 {
		s.Apply([]streams.Update{{Key: of(series.Tokens, ""), Count: math.MaxInt64 - 1}}, began)
	}
	md, _ := s.Metrics(began, noScope)
	assert.EqualValues(t, math.MaxInt64-1, metric(t, md).Sum().DataPoints().At(0).IntValue())
}

func TestSeriesLimit(t *testing.T) {
	s := streams.NewStore(streams.Limits{Series: 2, Runs: 100})
	var over streams.Overflowed
	for i := range 10 {
		got := s.Apply([]streams.Update{
			{Key: of(series.Steps, strconv.Itoa(i)), Count: 1},
			{Key: of(series.Loss, strconv.Itoa(i)), Value: 1},
		}, began)
		over.Series += got.Series
	}
	assert.Equal(t, streams.Overflowed{Series: 18}, over)
	assert.EqualValues(t, 3, s.Streams(), "two and the overflow of steps; that of a gauge would mean nothing")
	md, _ := s.Metrics(began, noScope)
	assert.Equal(t, 3, md.DataPointCount())
}

func TestExpiredStreamsMakeRoom(t *testing.T) {
	s := streams.NewStore(streams.Limits{Series: 1, Runs: 1, Expiration: time.Minute})
	s.Apply([]streams.Update{{Key: of(series.Steps, "a"), Count: 5}}, began)
	_, expired := s.Metrics(began.Add(time.Minute), noScope)
	require.Zero(t, expired, "at the end of its time it is still there")
	md, expired := s.Metrics(began.Add(time.Minute+1), noScope)
	assert.EqualValues(t, 1, expired)
	assert.Zero(t, md.DataPointCount())
	assert.Zero(t, s.Streams())
	assert.Zero(t, s.Runs())

	later := began.Add(time.Hour)
	assert.Zero(t, s.Apply([]streams.Update{{Key: of(series.Steps, "b"), Count: 1}}, later))
	md, _ = s.Metrics(later, noScope)
	assert.Equal(t, later, metric(t, md).Sum().DataPoints().At(0).StartTimestamp().AsTime())
}

func TestRunsLimitWithoutRuns(t *testing.T) {
	s := streams.NewStore(streams.Limits{Series: 10})
	over := s.Apply([]streams.Update{
		{Key: of(series.Steps, "a"), Count: 1}, {Key: of(series.Steps, "b"), Count: 2}, {Key: of(series.Loss, "b"), Value: 1},
	}, began)
	assert.Equal(t, streams.Overflowed{Runs: 3}, over)
	md, _ := s.Metrics(began, noScope)
	point := metric(t, md).Sum().DataPoints().At(0)
	assert.EqualValues(t, 3, point.IntValue())
	assert.Equal(t, map[string]any{series.Overflow: true}, point.Attributes().AsRaw())
}

func TestFlushAndApplyTogether(t *testing.T) {
	s := streams.NewStore(streams.Limits{Series: 1000, Runs: 1000})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 500 {
				s.Apply([]streams.Update{{Key: of(series.Steps, strconv.Itoa(i%50)), Count: 1}}, began)
			}
		})
	}
	wg.Go(func() {
		for range 50 {
			s.Metrics(began, noScope)
		}
	})
	wg.Wait()
	md, _ := s.Metrics(began, noScope)
	var sum int64
	for _, p := range metric(t, md).Sum().DataPoints().All() {
		sum += p.IntValue()
	}
	assert.EqualValues(t, 2000, sum)
}
