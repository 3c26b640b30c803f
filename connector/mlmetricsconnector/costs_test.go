package mlmetricsconnector

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/price"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
)

// pricesOf copies a file of prices and gives it a date.
func pricesOf(t *testing.T, from string) (path string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Clean(from))
	require.NoError(t, err)
	path = filepath.Join(t.TempDir(), "prices.json")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	date := time.Date(2026, 8, 21, 12, 0, 0, 0, time.UTC)
	require.NoError(t, os.Chtimes(path, date, date))
	return path
}

var priceFile = filepath.Join("internal", "price", "testdata", "prices.json")

// TestComputedCosts sends the spans of testdata/costs to a connector with a file of
// prices. Without one, as TestGolden sends them, only stated costs are known.
func TestComputedCosts(t *testing.T) {
	folder := filepath.Join("testdata", "costs")
	td := golden.ReadTraces(t, filepath.Join(folder, "input.txt"))
	for name, requests := range map[string][]ptrace.Traces{"one request": {td}, "a request per span": singly(td)} {
		t.Run(name, func(t *testing.T) {
			cfg := createDefaultConfig().(*Config)
			cfg.Prices.File = pricesOf(t, priceFile)
			next := new(consumertest.MetricsSink)
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Until(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)))
				c := start(t, cfg, next)
				for _, request := range requests {
					ctx, end := vocabulary.WithEnriched(t.Context())
					require.NoError(t, c.ConsumeTraces(ctx, request))
					end()
				}
				require.NoError(t, c.Shutdown(t.Context()))
			})
			md := lastOf(t, next)
			md.ResourceMetrics().RemoveIf(func(rm pmetric.ResourceMetrics) bool {
				rm.ScopeMetrics().At(0).Metrics().RemoveIf(func(m pmetric.Metric) bool {
					return m.Name() != "ml.cost" && m.Name() != "ml.user.cost" && m.Name() != "ml.requests.unpriced"
				})
				return rm.ScopeMetrics().At(0).Metrics().Len() == 0
			})
			dropExemplars(md)
			golden.Compare(t, filepath.Join(folder, "computed.txt"), golden.MetricsWithoutTimes(t, md))
		})
	}
}

// A file that comes later, or changes, has its prices from then on. One that cannot
// be read is reported on the page.
func TestAFileOfPricesThatComesLater(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.Prices.File = filepath.Join(t.TempDir(), "prices.json")
	synctest.Test(t, func(t *testing.T) {
		c := start(t, cfg, consumertest.NewNop()).(*metricsConnector)
		assert.Nil(t, c.prices.Table())
		missing := c.state.Notices()[c.set.ID.String()]
		require.Len(t, missing, 1)
		assert.Equal(t, "Prices of models", missing[0].What)
		assert.Contains(t, missing[0].Why, "no such file")
		require.NoError(t, os.Rename(pricesOf(t, priceFile), cfg.Prices.File))
		time.Sleep(price.CheckPrices)
		synctest.Wait()
		assert.Equal(t, "2026-08-21", c.prices.Table().Date())
		assert.Empty(t, c.state.Notices()[c.set.ID.String()])
		require.NoError(t, os.WriteFile(cfg.Prices.File, []byte("{"), 0o600))
		time.Sleep(price.CheckPrices)
		synctest.Wait()
		assert.Equal(t, "2026-08-21", c.prices.Table().Date(), "the earlier prices stay")
		assert.Contains(t, c.state.Notices()[c.set.ID.String()][0].Why, "it cannot be read as a list of providers in the form of genai-prices")

		// A disk that is away for a while has the same file again.
		require.NoError(t, os.Rename(pricesOf(t, priceFile), cfg.Prices.File))
		time.Sleep(price.CheckPrices)
		synctest.Wait()
		assert.Empty(t, c.state.Notices()[c.set.ID.String()])
		require.NoError(t, os.Rename(cfg.Prices.File, cfg.Prices.File+".away"))
		time.Sleep(price.CheckPrices)
		synctest.Wait()
		assert.Len(t, c.state.Notices()[c.set.ID.String()], 1)
		require.NoError(t, os.Rename(cfg.Prices.File+".away", cfg.Prices.File))
		time.Sleep(price.CheckPrices)
		synctest.Wait()
		assert.Empty(t, c.state.Notices()[c.set.ID.String()], "the file is back")
		require.NoError(t, c.Shutdown(t.Context()))
	})
}

// The user's own name is no label, where no ml_enrich has hashed it.
func TestCostsHaveNoNamesOfUsers(t *testing.T) {
	next := new(consumertest.MetricsSink)
	c := start(t, createDefaultConfig().(*Config), next)
	td := ptrace.NewTraces()
	span := addSpan(td, "", 1, 1)
	td.ResourceSpans().At(0).Resource().Attributes().PutStr("user.id", "ada")
	require.NoError(t, span.Attributes().FromRaw(map[string]any{
		"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 5, "gen_ai.usage.cost": 0.5, "enduser.id": "ada",
	}))
	require.NoError(t, c.ConsumeTraces(t.Context(), td))
	require.NoError(t, c.Shutdown(t.Context()))
	text := golden.MetricsWithoutTimes(t, lastOf(t, next))
	assert.Contains(t, text, `ml.cost{gen_ai.token.type="other", ml.cost.source="stated"} 0.5`)
	assert.NotContains(t, text, "ada")
}

// No client can make the costs of all others unreadable.
func TestImpossibleCosts(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.Prices.File = pricesOf(t, priceFile)
	next := new(consumertest.MetricsSink)
	c := start(t, cfg, next)
	td := ptrace.NewTraces()
	for i, tokens := range []int64{1 << 53, 1 << 53, 1000} {
		span := addSpan(td, "", byte(i+1), uint16(i+1))
		require.NoError(t, span.Attributes().FromRaw(map[string]any{
			"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-4o",
			"gen_ai.usage.input_tokens": tokens, "gen_ai.usage.output_tokens": 0,
		}))
	}
	require.NoError(t, c.ConsumeTraces(t.Context(), td))
	require.NoError(t, c.Shutdown(t.Context()))
	text := golden.MetricsWithoutTimes(t, lastOf(t, next))
	assert.Regexp(t, `ml\.cost\{.*\} 0\.0025\n`, text)
	assert.Regexp(t, `ml\.requests\.unpriced\{.*\} 2\n`, text)
}

// gpuOf is a GPU of a model that the workload of a run holds, of nobody without one.
func gpuOf(model, id, run string) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	if model != "" {
		rm.Resource().Attributes().PutStr("hw.name", model)
	}
	metrics := rm.ScopeMetrics().AppendEmpty().Metrics()
	add := func(name string, value int64) pcommon.Map {
		m := metrics.AppendEmpty()
		m.SetName(name)
		point := m.SetEmptySum().DataPoints().AppendEmpty()
		point.SetIntValue(value)
		point.Attributes().PutStr("hw.id", id)
		point.Attributes().PutStr("host.name", "n1")
		return point.Attributes()
	}
	add("hw.gpu.utilization", 0).PutStr("hw.gpu.task", "general")
	if run != "" {
		add("nvidia.gpu.workload.memory.usage", 1<<30).PutStr("ml.run.id", run)
	}
	return md
}

func TestPricesOfGPUs(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.Prices.GPUHour = map[string]float64{"H100": 2.5, "L4": 0.5}
	r := newRun(t, cfg)
	md := r.every(t, 2*time.Minute, func() {
		r.metrics(t, gpuOf("NVIDIA H100 80GB HBM3", "GPU-a", "both"))
		r.metrics(t, gpuOf("NVIDIA H100 80GB HBM3", "GPU-b", "both"))
		r.metrics(t, gpuOf("NVIDIA L4", "GPU-c", "both"))
		r.metrics(t, gpuOf("NVIDIA L4", "GPU-c", "shares"))
		r.metrics(t, gpuOf("NVIDIA L40S", "GPU-d", "partly"))
		r.metrics(t, gpuOf("NVIDIA L4", "GPU-e", "partly"))
		r.metrics(t, gpuOf("NVIDIA L4", "GPU-f", ""))
		r.metrics(t, gpuOf("", "GPU-g", "nameless"))
	})
	dropExemplars(md)
	text := golden.MetricsWithoutTimes(t, md)
	for _, line := range []string{
		`ml.run.gpu.price{ml.run.id="both"} 5.25`, `ml.run.gpu.price{ml.run.id="shares"} 0.25`,
		`ml.gpu.price{host.name="n1", hw.id="GPU-a"} 2.5`, `ml.gpu.price{host.name="n1", hw.id="GPU-f"} 0.5`,
	} {
		assert.Contains(t, text, line+"\n")
	}
	for _, absent := range []string{`ml.run.gpu.price{ml.run.id="partly"}`, `ml.run.gpu.price{ml.run.id="nameless"}`, `ml.gpu.price{host.name="n1", hw.id="GPU-d"}`} {
		assert.NotContains(t, text, absent, "the price of a GPU is not known")
	}
}
