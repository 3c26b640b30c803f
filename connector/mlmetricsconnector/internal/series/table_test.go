package series_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
)

func TestTableIsComplete(t *testing.T) {
	names := map[string]bool{}
	for id, s := range series.All {
		require.NotEmpty(t, s.Name, "series %d", id)
		assert.False(t, names[s.Name], "%s is there twice", s.Name)
		names[s.Name] = true
		assert.NotEmpty(t, s.Description, s.Name)
		assert.LessOrEqual(t, len(s.Labels), series.MaxLabels, s.Name)
		assert.Equal(t, s.Kind == series.Histogram, len(s.Buckets) > 0, s.Name)
		assert.True(t, slices.IsSorted(s.Buckets), s.Name)
		assert.False(t, s.Kind == series.Gauge && s.Unit == "1" && !s.Momentary, "%s: Prometheus exporters append _ratio to a gauge", s.Name)
		assert.False(t, s.Momentary && s.Kind != series.Gauge && s.Kind != series.State, "%s: only a newest value can be computed anew", s.Name)
		assert.Equal(t, s.Kind == series.Gauge && s.Unit == "", s.Unit == "", "%s: only gauges are without a unit", s.Name)
		for _, label := range s.Labels {
			// A failed GPU is not one of its run's series, and names the run all the same.
			assert.False(t, slices.Contains(series.RunLabels, label) && s.Name != "ml.problem.onset.timestamp", s.Name)
		}
	}
}

func TestThroughputBuckets(t *testing.T) {
	bounds := series.All[series.RequestTokenThroughput].Buckets
	assert.Len(t, bounds, 15)
	assert.InDelta(t, 1, bounds[0], 0)
	assert.InDelta(t, 16384, bounds[14], 0)
}
