package streams_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
)

func exponential(t *testing.T, values ...float64) pmetric.ExponentialHistogramDataPoint {
	t.Helper()
	s := streams.NewStore(streams.Limits{Series: 3}, streams.Form{Exponential: true})
	for _, v := range values {
		assert.Zero(t, s.Apply([]streams.Update{of(series.CallDuration, "", streams.Update{Value: v})}, began))
	}
	md, _ := flush(t, s, began.Add(time.Minute))
	return metric(t, md).ExponentialHistogram().DataPoints().At(0)
}

// Each value is in the bucket whose bounds it lies between, as the data model has
// it: above the lower one, up to the upper one.
func TestExponentialBuckets(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	values := []float64{1, 2, 1 << 20, 0.5, 1.0000001, math.Exp2(-20) * 1.01, math.Exp2(39.99)}
	for range 1000 {
		values = append(values, math.Exp2(rnd.Float64()*50-19))
	}
	for _, v := range values {
		point := exponential(t, v)
		assert.Equal(t, 1, point.Positive().BucketCounts().Len())
		base := math.Exp2(math.Exp2(float64(-point.Scale())))
		upper := math.Pow(base, float64(point.Positive().Offset()+1))
		assert.LessOrEqual(t, v, upper*(1+1e-12), "%g", v)
		assert.Greater(t, v, upper/base*(1-1e-12), "%g", v)
	}
}

func TestExponentialBucketsAddUp(t *testing.T) {
	point := exponential(t, 0, 0, 1e-9, 4, 1, 2, 3, 1e300, math.Inf(1))
	assert.EqualValues(t, 9, point.Count())
	assert.EqualValues(t, 3, point.ZeroCount())
	sum := uint64(0)
	for _, n := range point.Positive().BucketCounts().AsRaw() {
		sum += n
	}
	assert.EqualValues(t, 6, sum)
	assert.LessOrEqual(t, point.Positive().BucketCounts().Len(), 480)
}

// A stream that expires and comes back begins with no bucket.
func TestExponentialBucketsEnd(t *testing.T) {
	s := streams.NewStore(streams.Limits{Series: 3, Expiration: time.Minute}, streams.Form{Exponential: true})
	one := func(at time.Time) {
		s.Apply([]streams.Update{of(series.CallDuration, "", streams.Update{Value: 1})}, at)
	}
	one(began)
	later := began.Add(time.Hour)
	md, removed := flush(t, s, later)
	assert.EqualValues(t, 1, removed)
	assert.True(t, metric(t, md).ExponentialHistogram().DataPoints().At(0).Flags().NoRecordedValue())
	assert.Zero(t, s.Series())
	one(later)
	md, _ = flush(t, s, later)
	assert.EqualValues(t, 1, metric(t, md).ExponentialHistogram().DataPoints().At(0).Count())
	assert.EqualValues(t, 3, s.Series())
}
