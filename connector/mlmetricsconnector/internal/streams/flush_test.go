package streams

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
)

// full is a store with n streams of histograms, each with all exemplars.
func full(n int, limits Limits, now time.Time) *Store {
	s := NewStore(limits)
	src := &Source{Resource: Resource{Service: "s"}}
	for i := range n {
		for bucket := range maxExemplars {
			s.Apply([]Update{{
				Source: src, Series: series.CallDuration, Labels: [series.MaxLabels]string{strconv.Itoa(i)},
				Value: float64(int(1) << bucket), Trace: [16]byte{1}, At: 1,
			}}, now)
		}
	}
	return s
}

// largest is the shard with the most streams.
func (s *Store) largest() *shard {
	most := &s.shards[0]
	for i := range s.shards {
		if len(s.shards[i].list) > len(most.list) {
			most = &s.shards[i]
		}
	}
	return most
}

// BenchmarkHold writes what a flush of 100 000 streams writes under one lock:
// a Consume call waits for it at most.
func BenchmarkHold(b *testing.B) {
	sh := full(100_000, Limits{Series: 100_000 * 15}, time.Now()).largest()
	f := Flusher{Prepare: func(pcommon.InstrumentationScope) {}}
	from := 0
	b.ReportAllocs()
	for b.Loop() {
		if sh.each(from, f.newBuilder(time.Now()).add) {
			from += chunk
		} else {
			from = 0
		}
	}
}

// TestALockIsHeldForAPiece shows that what is done under one lock does not
// depend on the number of streams.
func TestALockIsHeldForAPiece(t *testing.T) {
	sh := full(50_000, Limits{Series: 50_000 * 15}, time.Now()).largest()
	require.Greater(t, len(sh.list), 2*chunk)
	visited, chunks := 0, 0
	for from, more := 0, true; more; from += chunk {
		piece := 0
		more = sh.each(from, func(*stream) { piece++ })
		assert.LessOrEqual(t, piece, chunk)
		visited += piece
		chunks++
	}
	assert.Equal(t, len(sh.list), visited)
	assert.Equal(t, (len(sh.list)+chunk-1)/chunk, chunks)
}

// TestPiecesOfAFlush counts what is passed on at once.
func TestPiecesOfAFlush(t *testing.T) {
	s := full(3*maxPoints/2, Limits{Series: 2 * maxPoints * 15}, time.Now())
	var sizes []int
	f := Flusher{Store: s, Prepare: func(pcommon.InstrumentationScope) {}, Pass: func(md pmetric.Metrics) error {
		sizes = append(sizes, md.DataPointCount())
		raw, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
		assert.Less(t, len(raw), 4<<20, "what gRPC servers accept")
		return err
	}}
	_, err := f.Flush(time.Now(), nil)
	require.NoError(t, err)
	assert.Equal(t, []int{maxPoints, maxPoints / 2}, sizes)
}

// TestFlatWhileStreamsComeAndGo has 200 000 different streams go through a
// store of 100 000: what is kept of them is counted.
func TestFlatWhileStreamsComeAndGo(t *testing.T) {
	const limit = 100_000
	s := NewStore(Limits{Series: limit, Expiration: time.Minute})
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	src := &Source{Resource: Resource{Service: "s"}}
	passed := 0
	f := Flusher{Store: s, Prepare: func(pcommon.InstrumentationScope) {}, Pass: func(md pmetric.Metrics) error {
		passed += md.DataPointCount()
		return nil
	}}
	for round := range 2 {
		for i := range limit {
			s.Apply([]Update{{Source: src, Series: series.Requests, Labels: [series.MaxLabels]string{strconv.Itoa(round*limit + i)}, Count: 1}}, now)
		}
		require.EqualValues(t, limit, s.Streams(), "round %d", round)
		now = now.Add(2 * time.Minute)
		passed = 0
		removed, err := f.Flush(now, nil)
		require.NoError(t, err)
		require.EqualValues(t, limit, removed)
		require.Equal(t, limit, passed, "the end of each")
		hashes, listed, room := 0, 0, 0
		for i := range s.shards {
			hashes += len(s.shards[i].byHash)
			listed += len(s.shards[i].list)
			room += cap(s.shards[i].list)
		}
		require.Zero(t, hashes+listed+int(s.Streams())+int(s.regular.Load()))
		require.Less(t, room, 4*limit)
	}
	// Those that are too many are one stream.
	for i := range limit + 1000 {
		s.Apply([]Update{{Source: src, Series: series.Requests, Labels: [series.MaxLabels]string{strconv.Itoa(i)}, Count: 1}}, now)
	}
	assert.EqualValues(t, limit+1, s.Streams())
}

// TestEverySeriesHasItsWriter emits each series of the table, one that overflowed,
// and the ends of all.
func TestEverySeriesHasItsWriter(t *testing.T) {
	now := time.Now()
	s := NewStore(Limits{Series: 100_000, Runs: 1, Expiration: time.Minute})
	for id := range series.Count {
		for _, run := range []string{"r", "beyond the limit"} {
			s.Apply([]Update{{Source: &Source{Resource: Resource{Service: "s"}, Run: Run{ID: run}}, Series: id, Count: 1, Value: 1, At: now.UnixNano()}}, now)
		}
	}
	points := map[string]int{}
	f := Flusher{Store: s, Writer: Label{"writer", "w"}, Prepare: func(pcommon.InstrumentationScope) {}, Pass: func(md pmetric.Metrics) error {
		for _, m := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
			for _, attrs := range attributesOf(m) {
				points[m.Name()]++
				writer, _ := attrs.Get("writer")
				assert.Equal(t, "w", writer.AsString(), m.Name())
			}
		}
		return nil
	}}
	for _, at := range []time.Time{now, now.Add(time.Hour)} {
		_, err := f.Flush(at, nil)
		require.NoError(t, err)
	}
	assert.Len(t, points, int(series.Count))
}

// attributesOf returns the attributes of all points of a metric.
func attributesOf(m pmetric.Metric) (all []pcommon.Map) {
	switch m.Type() {
	case pmetric.MetricTypeSum:
		for _, p := range m.Sum().DataPoints().All() {
			all = append(all, p.Attributes())
		}
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			all = append(all, p.Attributes())
		}
	default:
		for _, p := range m.Gauge().DataPoints().All() {
			all = append(all, p.Attributes())
		}
	}
	return all
}
