package mlmetricsconnector

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// BenchmarkConsumeTraces reads requests of 512 spans as they leave ml_enrich,
// with new ids each time. Those that are "seen" come directly from it.
func BenchmarkConsumeTraces(b *testing.B) {
	kinds := []string{"mixed"}
	for i := range benchClients {
		kinds = append(kinds, benchClients[i].name)
	}
	for _, seen := range []string{"seen", "seen and recorded", "unseen"} {
		for _, kind := range kinds {
			b.Run(kind+"/"+seen, func(b *testing.B) {
				ctx := b.Context()
				if seen != "unseen" {
					var end func()
					ctx, end = vocabulary.WithEnriched(ctx)
					defer end()
				}
				td := benchSpans(kind, 512)
				c, err := NewFactory().CreateTracesToMetrics(ctx, connectortest.NewNopSettings(metadata.Type), NewFactory().CreateDefaultConfig(), consumertest.NewNop())
				require.NoError(b, err)
				require.NoError(b, c.Start(ctx, componenttest.NewNopHost()))
				if seen == "seen and recorded" {
					c.(*metricsConnector).Shared.outlets.Add(consumertest.NewNop())
				}
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

// crowded is a started connector with n streams: requests to n models.
func crowded(tb testing.TB, n int) *metricsConnector {
	cfg := createDefaultConfig().(*Config)
	cfg.MaxSeries, cfg.FlushInterval = n+10, time.Hour
	cfg.MetricsExpiration = 2 * time.Hour
	c, err := newMetricsConnector(connectortest.NewNopSettings(metadata.Type), cfg, new(instancesByID), consumertest.NewNop())
	require.NoError(tb, err)
	require.NoError(tb, c.Start(tb.Context(), componenttest.NewNopHost()))
	for i := range n {
		c.store.Apply([]streams.Update{{
			Source: &streams.Source{Resource: streams.Resource{Service: "s"}}, Series: series.Requests,
			Labels: [series.MaxLabels]string{strconv.Itoa(i)}, Count: 1,
		}}, time.Now())
	}
	return c
}

// BenchmarkFlush turns 100 000 streams into metrics while requests of 32 spans
// come in one after the other. It reports how long 99 of 100 of them took at
// most, and how long when there is no flush: what is beyond either is the
// scheduler's. How long a flush holds a lock is measured by BenchmarkHold.
func BenchmarkFlush(b *testing.B) {
	c := crowded(b, 100_000)
	td := benchSpans("llm", 32)
	consume := func(took []time.Duration, until <-chan struct{}) []time.Duration {
		for {
			select {
			case <-until:
				return took
			default:
			}
			began := time.Now()
			if err := c.ConsumeTraces(context.Background(), td); err != nil {
				b.Error(err)
			}
			took = append(took, time.Since(began))
		}
	}
	var during, without []time.Duration
	b.ReportAllocs()
	for b.Loop() {
		done, measured := make(chan struct{}), make(chan struct{})
		go func() {
			during = consume(during, done)
			close(measured)
		}()
		began := time.Now()
		require.NoError(b, c.emit(b.Context(), false))
		took := time.Since(began)
		close(done)
		<-measured

		b.StopTimer()
		idle := make(chan struct{})
		time.AfterFunc(took, func() { close(idle) })
		without = consume(without, idle)
		b.StartTimer()
	}
	of99 := func(all []time.Duration) float64 {
		slices.Sort(all)
		return float64(all[len(all)*99/100].Microseconds()) / 1000
	}
	b.ReportMetric(of99(during), "ms-consume-p99")
	b.ReportMetric(of99(without), "ms-consume-p99-without")
	require.NoError(b, c.Shutdown(context.Background()))
}
