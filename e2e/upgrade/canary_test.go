package upgrade

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/documents"
	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// document is the page that says what to compare.
const document = "docs/canary.md"

// Two collectors get the same telemetry, and the canary loses its spans for the back
// end. With the documented scrape each documented query compares the two, and those on
// what is sent show the loss.
func TestCanary(t *testing.T) {
	t.Parallel()
	backend, targets := harness.StartSink(t), map[string]string{}
	for track, overrides := range map[string]map[string]any{
		"stable": {"exporters::otlp_grpc/jaeger::endpoint": backend.Endpoint},
		"canary": {"exporters::otlp_grpc/jaeger::endpoint": refusing, "exporters::otlp_grpc/jaeger::retry_on_failure": map[string]any{"enabled": false}},
	} {
		overrides["connectors::ml_metrics::flush_interval"] = "1s"
		c := harness.StartCollector(t, harness.CollectorOptions{
			Config: harness.Path("distribution", "config", "agent.yaml"), Overrides: overrides, Env: []string{"TRACES_EXPORTER=otlp_grpc/jaeger"},
		})
		targets[track+":8889"] = c.Address(t, "exporters::prometheus")
		targets[track+":8888"] = c.Address(t, harness.TelemetryPath)
		harness.StartGenerator(t, harness.Endpoints{
			GRPC: c.Address(t, "receivers::otlp::protocols::grpc"), HTTP: "http://" + c.Address(t, "receivers::otlp::protocols::http"),
		}, harness.Workload{Seed: 1, Scenarios: "all", Rate: 5, Ranks: 2})
	}
	blocks, err := documents.All(harness.Path())
	require.NoError(t, err)
	blocks = slices.DeleteFunc(blocks, func(b documents.Block) bool { return b.File != document })
	prometheus := harness.StartPrometheusAt(t, scrapes(t, blocks), targets)
	queries := documents.Of(blocks, "promql")
	require.NotEmpty(t, queries)
	for _, block := range queries {
		lost := strings.Contains(block.Text, "otelcol_exporter_send_failed_spans")
		require.EventuallyWithT(t, func(e *assert.CollectT) {
			samples, err := prometheus.Query(t.Context(), strings.TrimSpace(block.Text))
			assert.NoError(e, err)
			tracks := map[string]bool{}
			for _, sample := range samples {
				tracks[sample.Labels["track"]] = true
			}
			want := map[string]bool{"canary": true, "stable": true}
			if lost {
				want = map[string]bool{"canary": true}
			}
			assert.Equal(e, want, tracks, block.Text)
		}, arrival, poll)
	}
}

// scrapes writes the documented scrape as a configuration, with a short interval.
func scrapes(t *testing.T, blocks []documents.Block) string {
	t.Helper()
	for _, block := range documents.Of(blocks, "yaml") {
		if strings.HasPrefix(block.Text, "scrape_configs:") {
			file := filepath.Join(t.TempDir(), "prometheus.yaml")
			require.NoError(t, os.WriteFile(file, []byte("global: {scrape_interval: 1s, scrape_timeout: 1s}\n"+block.Text), 0o600))
			return file
		}
	}
	t.Fatal("the page has no scrape_configs")
	return ""
}
