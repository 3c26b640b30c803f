package harness

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Timing of what tests wait for: what a collector holds back and how often
// Prometheus scrapes, plus much patience.
const (
	// ArrivalTimeout is how long telemetry may take to a back end's API. A step
	// that is the last thing sent is told after a minute of silence, and which
	// one is last depends on how busy the machine is.
	ArrivalTimeout = 2 * time.Minute
	// ArrivalPoll is the pause between two looks at a back end.
	ArrivalPoll = 100 * time.Millisecond
)

// AwaitValues waits until a query gives exactly the wanted value for each value
// of a label. A key of wanted is the label's value; samples that share it are
// added up.
func (p *Prometheus) AwaitValues(tb testing.TB, expression, label string, wanted map[string]float64) {
	tb.Helper()
	require.NotEmpty(tb, wanted, "nothing to expect of %s", expression)
	require.EventuallyWithT(tb, func(c *assert.CollectT) {
		samples, err := p.Query(tb.Context(), expression)
		if !assert.NoError(c, err) {
			return
		}
		got := map[string]float64{}
		for _, sample := range samples {
			got[sample.Labels[label]] += sample.Value
		}
		assert.Equal(c, wanted, got, expression)
	}, ArrivalTimeout, ArrivalPoll)
}

// AwaitNear is AwaitValues for several labels and for values that may be off by
// a part of themselves. A key of wanted has the labels' values joined by "/".
func (p *Prometheus) AwaitNear(tb testing.TB, expression string, labels []string, wanted map[string]float64, part float64) {
	tb.Helper()
	require.NotEmpty(tb, wanted, "nothing to expect of %s", expression)
	require.EventuallyWithT(tb, func(c *assert.CollectT) {
		samples, err := p.Query(tb.Context(), expression)
		if !assert.NoError(c, err) {
			return
		}
		got := map[string]float64{}
		for _, sample := range samples {
			var values []string
			for _, label := range labels {
				values = append(values, sample.Labels[label])
			}
			got[strings.Join(values, "/")] += sample.Value
		}
		if !assert.ElementsMatch(c, slices.Collect(maps.Keys(wanted)), slices.Collect(maps.Keys(got)), expression) {
			return
		}
		for key, want := range wanted {
			assert.InDelta(c, want, got[key], part*math.Abs(want), "%s of %s", key, expression)
		}
	}, ArrivalTimeout, ArrivalPoll)
}

// AwaitSeries waits until a selector has series and returns them.
func (p *Prometheus) AwaitSeries(tb testing.TB, selector string) []Labels {
	tb.Helper()
	var series []Labels
	require.EventuallyWithT(tb, func(c *assert.CollectT) {
		var err error
		series, err = p.Series(tb.Context(), selector)
		assert.NoError(c, err)
		assert.NotEmpty(c, series, "no series of %s", selector)
	}, ArrivalTimeout, ArrivalPoll)
	return series
}

// Distinct returns the values of a label, sorted.
func Distinct(series []Labels, label string) []string {
	values := map[string]bool{}
	for _, labels := range series {
		values[labels[label]] = true
	}
	return slices.Sorted(maps.Keys(values))
}
