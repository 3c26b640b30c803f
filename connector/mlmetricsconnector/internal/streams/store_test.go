package streams_test

import (
	"errors"
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
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func noScope(pcommon.InstrumentationScope) {}

// of is an update of a series of a run.
func of(id series.ID, run string, u streams.Update) streams.Update {
	u.Source = &streams.Source{Resource: streams.Resource{Service: "s"}, Run: streams.Run{ID: run}}
	u.Series = id
	return u
}

// flush returns what a flush passes on, in one piece.
func flush(t *testing.T, s *streams.Store, now time.Time) (pmetric.Metrics, int64) {
	all := pmetric.NewMetrics()
	f := streams.Flusher{Store: s, Prepare: noScope, Pass: func(md pmetric.Metrics) error {
		md.ResourceMetrics().MoveAndAppendTo(all.ResourceMetrics())
		return nil
	}}
	removed, err := f.Flush(now, nil)
	require.NoError(t, err)
	return all, removed
}

// metric returns the only metric there is.
func metric(t *testing.T, md pmetric.Metrics) pmetric.Metric {
	require.Equal(t, 1, md.MetricCount())
	return md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0)
}

func TestHistogramBucketsIncludeTheirUpperBound(t *testing.T) {
	s := streams.NewStore(streams.Limits{Series: 1})
	for _, v := range []float64{0, 1, 1.5, 2, 16384, 16385} {
		s.Apply([]streams.Update{of(series.RequestTokenThroughput, "", streams.Update{Value: v})}, began)
	}
	md, _ := flush(t, s, began.Add(time.Minute))
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
		of(series.Loss, "r", streams.Update{Value: 2, At: 20}),
		of(series.Loss, "r", streams.Update{Value: 1, At: 10}),
		of(series.Loss, "r", streams.Update{Value: 3, At: 20}),
	}, began)
	md, _ := flush(t, s, began)
	assert.InDelta(t, 3, metric(t, md).Gauge().DataPoints().At(0).DoubleValue(), 0, "of two that ended together, the later one")
}

func TestCounterDoesNotWrapRound(t *testing.T) {
	s := streams.NewStore(streams.Limits{Series: 1})
	for range 3 {
		s.Apply([]streams.Update{of(series.Tokens, "", streams.Update{Count: math.MaxInt64 - 1})}, began)
	}
	md, _ := flush(t, s, began)
	assert.EqualValues(t, math.MaxInt64-1, metric(t, md).Sum().DataPoints().At(0).IntValue())
}

func TestSeriesLimit(t *testing.T) {
	s := streams.NewStore(streams.Limits{Series: 2, Runs: 100})
	for i := range 10 {
		s.Apply([]streams.Update{
			of(series.Steps, strconv.Itoa(i), streams.Update{Count: 1}),
			of(series.Loss, strconv.Itoa(i), streams.Update{Value: 1}),
		}, began)
	}
	assert.EqualValues(t, 18, s.Overflowed.Series.Load())
	assert.EqualValues(t, 3, s.Streams(), "two and the overflow of steps; that of a gauge would mean nothing")
	md, _ := flush(t, s, began)
	assert.Equal(t, 3, md.DataPointCount())
}

func TestExpiredStreamsMakeRoom(t *testing.T) {
	s := streams.NewStore(streams.Limits{Series: 1, Runs: 1, Expiration: time.Minute})
	s.Apply([]streams.Update{of(series.Steps, "a", streams.Update{Count: 5})}, began)
	_, removed := flush(t, s, began.Add(time.Minute))
	require.Zero(t, removed, "at the end of its time it is still there")
	md, removed := flush(t, s, began.Add(time.Minute+1))
	assert.EqualValues(t, 1, removed)
	point := metric(t, md).Sum().DataPoints().At(0)
	assert.True(t, point.Flags().NoRecordedValue(), "its end is passed on")
	assert.Equal(t, pmetric.NumberDataPointValueTypeEmpty, point.ValueType())
	assert.Equal(t, map[string]any{"ml.run.id": "a"}, point.Attributes().AsRaw())
	assert.Zero(t, s.Streams())
	assert.Zero(t, s.Runs())
	md, _ = flush(t, s, began.Add(2*time.Minute))
	assert.Zero(t, md.DataPointCount(), "its end is passed on once")

	later := began.Add(time.Hour)
	s.Apply([]streams.Update{of(series.Steps, "b", streams.Update{Count: 1})}, later)
	assert.Zero(t, s.Overflowed.Series.Load())
	md, _ = flush(t, s, later)
	assert.Equal(t, later, metric(t, md).Sum().DataPoints().At(0).StartTimestamp().AsTime())
}

// TestEndIsRepeatedUntilAccepted has a next component that refuses the first
// time, and a stream that begins anew before the second.
func TestEndIsRepeatedUntilAccepted(t *testing.T) {
	s := streams.NewStore(streams.Limits{Series: 10, Expiration: time.Minute})
	one := func(id series.ID, at time.Time) {
		s.Apply([]streams.Update{of(id, "", streams.Update{Count: 5})}, at)
	}
	one(series.Requests, began)
	one(series.Errors, began)
	end := began.Add(2 * time.Minute)
	refusing := streams.Flusher{Store: s, Prepare: noScope, Pass: func(pmetric.Metrics) error { return errors.New("queue full") }}
	removed, err := refusing.Flush(end, nil)
	require.ErrorContains(t, err, "queue full")
	assert.Zero(t, removed)

	one(series.Errors, end)
	md, removed := flush(t, s, end)
	assert.EqualValues(t, 1, removed)
	for _, m := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		point := m.Sum().DataPoints().At(0)
		if m.Name() == series.All[series.Requests].Name {
			assert.True(t, point.Flags().NoRecordedValue())
			continue
		}
		assert.EqualValues(t, 5, point.IntValue(), "what was before the end is gone")
		assert.Equal(t, end, point.StartTimestamp().AsTime())
	}
}

// TestEachEndIsAMetric is for the prometheus exporter, which ignores what
// follows a point without a value in the same metric.
func TestEachEndIsAMetric(t *testing.T) {
	s := streams.NewStore(streams.Limits{Series: 1000, Runs: 1000, Expiration: time.Minute})
	for i := range 600 {
		s.Apply([]streams.Update{of(series.Steps, strconv.Itoa(i), streams.Update{Count: 1})}, began.Add(time.Duration(i%2)*time.Hour))
	}
	md, removed := flush(t, s, began.Add(time.Hour))
	assert.EqualValues(t, 300, removed)
	assert.EqualValues(t, 300, s.Streams())
	live := 0
	for _, m := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		points := m.Sum().DataPoints()
		if points.At(0).Flags().NoRecordedValue() {
			assert.Equal(t, 1, points.Len())
		} else {
			live += points.Len()
		}
	}
	assert.Equal(t, 300, live)
	md, _ = flush(t, s, began.Add(time.Hour))
	assert.Equal(t, 300, md.DataPointCount())
}

func TestRunsLimitWithoutRuns(t *testing.T) {
	s := streams.NewStore(streams.Limits{Series: 10})
	s.Apply([]streams.Update{
		of(series.Steps, "a", streams.Update{Count: 1}), of(series.Steps, "b", streams.Update{Count: 2}), of(series.Loss, "b", streams.Update{Value: 1}),
	}, began)
	assert.EqualValues(t, 3, s.Overflowed.Runs.Load())
	md, _ := flush(t, s, began)
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
				s.Apply([]streams.Update{of(series.Steps, strconv.Itoa(i%50), streams.Update{Count: 1})}, began)
			}
		})
	}
	wg.Go(func() {
		for range 50 {
			flush(t, s, began)
		}
	})
	wg.Wait()
	md, _ := flush(t, s, began)
	var sum int64
	for _, p := range metric(t, md).Sum().DataPoints().All() {
		sum += p.IntValue()
	}
	assert.EqualValues(t, 2000, sum)
}

// Updates that differ in anything are of different streams, and equal ones are of one.
func TestStreamsDiffer(t *testing.T) {
	resources := []streams.Resource{{}, {Service: "a"}, {Namespace: "a"}, {Namespace: "a", Service: "a"}}
	runs := []streams.Run{{}, {ID: "a"}, {ID: "b"}, {ID: "a", Job: "a"}, {ID: "a", Rank: "a"}, {ID: "a", Host: "a"}, {Host: "a"}, {ID: mlattr.Other}}
	labels := [][series.MaxLabels]string{{}, {"a"}, {"", "a"}, {"a", "a"}, {"a", "b"}, {"b", "a"}, {"ab"}, {"", "", "a"}}
	s := streams.NewStore(streams.Limits{Series: 1 << 20, Runs: 100})
	want := int64(0)
	for _, id := range []series.ID{series.Requests, series.Errors} {
		for _, resource := range resources {
			for _, run := range runs {
				for _, l := range labels {
					if len(series.All[id].Labels) < 3 && l[2] != "" {
						continue
					}
					want++
					for range 2 {
						s.Apply([]streams.Update{{Source: &streams.Source{Resource: resource, Run: run}, Series: id, Labels: l, Count: 1}}, began)
					}
				}
			}
		}
	}
	assert.Equal(t, want, s.Streams())
	md, _ := flush(t, s, began)
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, metric := range sm.Metrics().All() {
				for _, p := range metric.Sum().DataPoints().All() {
					assert.EqualValues(t, 2, p.IntValue(), p.Attributes().AsRaw())
				}
			}
		}
	}
}
