package mlmetricsconnector

import (
	"path/filepath"
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
)

const (
	// perRank and perRun are how many series a rank of a run has at most, or a
	// run whose process has no rank, and a run besides those of its ranks.
	perRank, perRun = 100, 60
)

// owner is whose series one is: a rank's, a run's, or nobody's.
type owner struct{ service, run, rank string }

// shownSeries counts the series that Prometheus shows in text, by owner.
func shownSeries(md pmetric.Metrics) map[owner]int {
	shown := map[owner]int{}
	for _, rm := range md.ResourceMetrics().All() {
		text := func(attrs pcommon.Map, key string) string {
			if v, ok := attrs.Get(key); ok {
				return v.AsString()
			}
			return ""
		}
		service := text(rm.Resource().Attributes(), "service.name")
		add := func(attrs pcommon.Map, n int) {
			shown[owner{service, text(attrs, "ml.run.id"), text(attrs, "ml.rank.global")}] += n
		}
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				switch m.Type() {
				case pmetric.MetricTypeHistogram:
					for _, p := range m.Histogram().DataPoints().All() {
						add(p.Attributes(), p.BucketCounts().Len()+2)
					}
				case pmetric.MetricTypeSum:
					for _, p := range m.Sum().DataPoints().All() {
						add(p.Attributes(), 1)
					}
				default:
					for _, p := range m.Gauge().DataPoints().All() {
						add(p.Attributes(), 1)
					}
				}
			}
		}
	}
	return shown
}

// TestSeriesOfARank sends everything that is known of clients here, with the
// default configuration.
func TestSeriesOfARank(t *testing.T) {
	check := func(t *testing.T, requests []ptrace.Traces) {
		next := new(consumertest.MetricsSink)
		c := start(t, NewFactory().CreateDefaultConfig().(*Config), next)
		for _, request := range requests {
			require.NoError(t, c.ConsumeTraces(t.Context(), request))
		}
		require.NoError(t, c.Shutdown(t.Context()))
		shown := shownSeries(lastOf(t, next))
		ranked := map[owner]bool{}
		for of := range shown {
			if of.rank != "" {
				ranked[owner{of.service, of.run, ""}] = true
			}
		}
		for of, n := range shown {
			most := perRun
			if of.rank != "" {
				most = perRank
			} else if !ranked[of] {
				most = perRank // its process has no rank
			}
			if of.run != "" {
				assert.LessOrEqual(t, n, most, "%+v", of)
			}
		}
	}
	recordings, err := filepath.Glob(filepath.Join("testdata", "recordings", "*", "traces.json"))
	require.NoError(t, err)
	inputs, err := filepath.Glob(filepath.Join("testdata", "*", "input.txt"))
	require.NoError(t, err)
	for _, file := range append(recordings, inputs...) {
		t.Run(file, func(t *testing.T) { check(t, requestsOf(t, filepath.Dir(file))) })
	}
}

// flood sends spans of many ranks and runs, and calls and requests of many names.
func flood(t *testing.T, c connector.Traces, identities int) {
	t.Helper()
	for n := range identities {
		td := ptrace.NewTraces()
		for id, attributes := range []map[string]any{
			{"ml.phase": "forward"},
			{"ml.phase": "optimizer", "ml.loss": 0.5},
			{"gen_ai.usage.output_tokens": 7, "gen_ai.request.model": "m" + strconv.Itoa(n), "ml.tokens_per_second": 5.5},
			{"ml.function": "f" + strconv.Itoa(n)},
		} {
			span := addSpan(td, "run"+strconv.Itoa(n/8), byte(n), uint16(n*4+id+1)) // #nosec G115 -- small
			td.ResourceSpans().At(id).Resource().Attributes().PutInt("ml.rank.global", int64(n%8))
			if id == 3 {
				span.SetName("snakepit.grpc.execute")
				span.SetStartTimestamp(span.EndTimestamp() - 1e6)
			}
			require.NoError(t, span.Attributes().FromRaw(attributes))
		}
		require.NoError(t, c.ConsumeTraces(t.Context(), td))
	}
}

// TestMaxSeriesBoundsWhatPrometheusShows sends identities without end: buckets, sums
// and counts are series like any other.
func TestMaxSeriesBoundsWhatPrometheusShows(t *testing.T) {
	overflow := 0
	for i := range series.All {
		s := &series.All[i]
		if s.Kind != series.Gauge && s.Kind != series.State {
			overflow += len(s.Buckets) + 3
		}
	}
	for _, limit := range []int{1, 100, 1000} {
		t.Run(strconv.Itoa(limit), func(t *testing.T) {
			cfg := createDefaultConfig().(*Config)
			cfg.MaxSeries, cfg.MaxRuns, cfg.GenAIMetrics = limit, 10_000, true
			next := new(consumertest.MetricsSink)
			synctest.Test(t, func(t *testing.T) { // no time goes by, so that there is one emission
				c := start(t, cfg, next)
				flood(t, c, 400)
				require.NoError(t, c.Shutdown(t.Context()))
			})
			n := 0
			for _, md := range next.AllMetrics() {
				for _, of := range shownSeries(md) {
					n += of
				}
			}
			assert.LessOrEqual(t, n, limit+overflow)
			assert.GreaterOrEqual(t, n, limit-30, "the limit is used")
		})
	}
}

// TestCallsAreOfNoRun has calls and requests in runs: their distributions are of
// the program and the host.
func TestCallsAreOfNoRun(t *testing.T) {
	next := new(consumertest.MetricsSink)
	c := start(t, createDefaultConfig().(*Config), next)
	flood(t, c, 3)
	require.NoError(t, c.Shutdown(t.Context()))
	for _, name := range []string{"ml.request.token.throughput", "ml.call.duration"} {
		points := find(t, lastOf(t, next), name).Histogram().DataPoints()
		assert.Equal(t, 3, points.Len(), name)
		for _, p := range points.All() {
			assert.NotContains(t, p.Attributes().AsRaw(), "ml.run.id", name)
			assert.NotContains(t, p.Attributes().AsRaw(), "ml.rank.global", name)
		}
	}
}
