package mlmetricsconnector

import (
	"encoding/binary"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
)

// BenchmarkConsumeTraces reads requests of all five systems' spans, with new
// span ids each time.
func BenchmarkConsumeTraces(b *testing.B) {
	inputs, err := filepath.Glob(filepath.Join("testdata", "*", "input.yaml"))
	require.NoError(b, err)
	td := ptrace.NewTraces()
	for range 5 {
		for _, input := range inputs {
			one, err := golden.ReadTraces(input)
			require.NoError(b, err)
			one.ResourceSpans().MoveAndAppendTo(td.ResourceSpans())
		}
	}
	c, err := NewFactory().CreateTracesToMetrics(b.Context(), connectortest.NewNopSettings(metadata.Type), NewFactory().CreateDefaultConfig(), consumertest.NewNop())
	require.NoError(b, err)
	require.NoError(b, c.Start(b.Context(), componenttest.NewNopHost()))
	id := uint64(0)
	b.ReportAllocs()
	for b.Loop() {
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, span := range ss.Spans().All() {
					id++
					var bytes pcommon.SpanID
					binary.BigEndian.PutUint64(bytes[:], id)
					span.SetSpanID(bytes)
				}
			}
		}
		require.NoError(b, c.ConsumeTraces(b.Context(), td))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*td.SpanCount()), "ns/span")
	require.NoError(b, c.Shutdown(b.Context()))
}

// BenchmarkFlush turns 100 000 streams into metrics.
func BenchmarkFlush(b *testing.B) {
	store := streams.NewStore(streams.Limits{Series: 100_000})
	for i := range 100_000 {
		store.Apply([]streams.Update{{
			Source: &streams.Source{Resource: streams.Resource{Service: "s"}}, Series: series.Requests,
			Labels: [series.MaxLabels]string{strconv.Itoa(i)}, Count: 1,
		}}, time.Now())
	}
	points := 0
	f := streams.Flusher{
		Store: store, Prepare: func(pcommon.InstrumentationScope) {},
		Pass: func(md pmetric.Metrics) error {
			points += md.DataPointCount()
			return nil
		},
	}
	b.ReportAllocs()
	for b.Loop() {
		points = 0
		_, err := f.Flush(time.Now())
		require.NoError(b, err)
		require.Equal(b, 100_000, points)
	}
}
