package mlmetricsconnector

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// BenchmarkConsumeTraces reads requests of 512 spans as they leave ml_enrich,
// with new ids each time. Those that are "seen" come directly from it.
func BenchmarkConsumeTraces(b *testing.B) {
	kinds := []string{"mixed"}
	for i := range benchClients {
		kinds = append(kinds, benchClients[i].name)
	}
	for _, seen := range []string{"seen", "unseen"} {
		for _, kind := range kinds {
			b.Run(kind+"/"+seen, func(b *testing.B) {
				ctx := b.Context()
				if seen == "seen" {
					ctx = mlattr.WithEnriched(ctx)
				}
				td := benchSpans(kind, 512)
				c, err := NewFactory().CreateTracesToMetrics(ctx, connectortest.NewNopSettings(metadata.Type), NewFactory().CreateDefaultConfig(), consumertest.NewNop())
				require.NoError(b, err)
				require.NoError(b, c.Start(ctx, componenttest.NewNopHost()))
				round := uint64(0)
				b.ReportAllocs()
				for b.Loop() {
					b.StopTimer()
					round++
					renew(td, round)
					b.StartTimer()
					if err := c.ConsumeTraces(ctx, td); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*td.SpanCount()), "ns/span")
				require.NoError(b, c.Shutdown(context.Background()))
			})
		}
	}
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
