package runs

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/training"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/wallclock"
)

// However many steps end between two emissions, few of them wait.
func TestStepsDoNotPileUp(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	c, key := NewClocks(Timeouts{}), Key{Run: streams.Run{ID: "r"}}
	of := c.add(key)
	for range 3 * 4096 {
		now = now.Add(time.Millisecond)
		s := Span{EndsStep: true, Optimizes: true, Timed: true}
		s.Time.Start, s.Time.End, s.Time.Phase = now.UnixNano()-1e6, now.UnixNano(), wallclock.Optimizer
		_, live := of.observe(&s, now)
		require.True(t, live)
		require.LessOrEqual(t, len(of.Totals.Steps), maxSteps+4096)
	}
	assert.NotZero(t, of.Attempted)
}

// However many ranks send metrics, few are remembered, and none for long.
func TestMetricsAreBounded(t *testing.T) {
	m, now := new(Metrics), time.Unix(1_800_000_000, 0)
	for n := range maxClocks + 100 {
		key := Key{Run: streams.Run{ID: strconv.Itoa(n)}}
		m.See(key, Program{}, []training.Point{{Metric: "m"}}, now)
	}
	assert.Len(t, m.all, maxClocks)
	now = now.Add(gpus.GoneAfter + time.Second)
	m.take(nil, time.Minute, now)
	assert.Empty(t, m.all)
}

// An emission may come between that a clock is found and that a span is added to
// it: neither a new run nor one that comes back at the last moment is counted
// twice or lost.
func TestAnEmissionBetweenAClockAndItsSpan(t *testing.T) {
	c, store := NewClocks(Timeouts{}), streams.NewStore(streams.Limits{Series: 10, Runs: 10})
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	key := Key{Run: streams.Run{ID: "r"}}
	u := &Span{EndsStep: true, Source: key.source()}

	of := c.add(key)
	c.Advance(store, &Emission{Now: now, Expiration: time.Hour, GPUs: &gpus.Facts{}})
	assert.Zero(t, store.Streams(), "nothing is known of it")
	updates, live := of.observe(u, now)
	require.True(t, live)
	assert.Equal(t, series.RunAttempts, updates[0].Series)
	assert.Same(t, of, c.add(key))

	now = now.Add(2 * time.Hour)
	c.Advance(store, &Emission{Now: now, Expiration: time.Hour, GPUs: &gpus.Facts{}})
	_, live = of.observe(u, now)
	assert.False(t, live, "it was forgotten")
	c.Observe(store, []*Span{u, u}, now)
	assert.Zero(t, store.Overflowed.Runs.Load())
	again := c.add(key)
	assert.NotSame(t, of, again)
	assert.Equal(t, now, again.arrived)

	c.Advance(store, &Emission{Now: now, Expiration: time.Hour, GPUs: &gpus.Facts{}})
	assert.Len(t, c.runs, 1)
	c.Advance(store, &Emission{Now: now.Add(2 * time.Hour), Expiration: time.Hour, GPUs: &gpus.Facts{}})
	assert.Empty(t, c.runs, "nor is anything concluded of it")
}

// Each span of a rank beyond the limit is counted as left out.
func TestRanksBeyondTheLimit(t *testing.T) {
	c := NewClocks(Timeouts{})
	for n := range maxClocks {
		require.NotNil(t, c.add(Key{Run: streams.Run{ID: strconv.Itoa(n)}}))
	}
	known, other := &streams.Source{Run: streams.Run{ID: "7"}}, &streams.Source{Run: streams.Run{ID: "other"}}
	var spans []*Span
	for _, source := range []*streams.Source{other, other, known, other, known} {
		spans = append(spans, &Span{Source: source, EndsStep: true})
	}
	store := streams.NewStore(streams.Limits{Series: 100, Runs: 100})
	c.Observe(store, spans, time.Unix(1_800_000_000, 0))
	assert.EqualValues(t, 3, store.Overflowed.Runs.Load())
}
