package smoke

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// With the gate service.partialReload, a change of receivers alone restarts these and nothing
// else. Counters go on in every case.
func TestWhatAReloadKeeps(t *testing.T) {
	t.Parallel()
	const partial, full = "Performing partial receiver reload", "Config updated, restart service"
	for name, test := range map[string]struct {
		gates   []string
		changed string
		says    string
	}{
		"a receiver, with the gate":    {[]string{"service.partialReload"}, "receivers: {otlp: {protocols: {http: {max_request_body_size: 4000000}}}}", partial},
		"nothing, with the gate":       {[]string{"service.partialReload"}, "", partial},
		"a processor, with the gate":   {[]string{"service.partialReload"}, "processors: {ml_enrich: {resource_labels: [team]}}", full},
		"a receiver, without the gate": {nil, "receivers: {otlp: {protocols: {http: {max_request_body_size: 4000000}}}}", full},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			lines := filepath.Join(dir, "lines.yaml")
			require.NoError(t, os.WriteFile(lines, nil, 0o600))
			collector := harness.StartCollector(t, harness.CollectorOptions{
				Config: harness.Path("distribution", "config", "agent.yaml"), Merged: []string{lines}, Dir: dir,
				FeatureGates: test.gates,
				Overrides: map[string]any{
					"connectors::ml_metrics::flush_interval": "1s",
					"connectors::ml_metrics::initial_zero":   "0s",
				},
			})
			sender, err := harness.NewGRPCSender(collector.Address(t, "receivers::otlp::protocols::grpc"))
			require.NoError(t, err)
			t.Cleanup(func() { assert.NoError(t, sender.Close()) })
			awaitBatch := func(span byte, counted float64) {
				td := oneSpan("torchtel", "batch_1", func(attributes pcommon.Map) {
					attributes.PutInt("batch", int64(span))
					attributes.PutDouble("loss", 0.5)
				})
				td.ResourceSpans().At(0).Resource().Attributes().PutStr("host.name", "n1")
				td.ResourceSpans().At(0).ScopeSpans().At(0).Scope().SetName("torchtel")
				td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).SetSpanID(pcommon.SpanID{0x5a, span})
				require.EventuallyWithT(t, func(c *assert.CollectT) {
					// The port is closed for a moment.
					assert.NoError(c, sender.Traces(t.Context(), td))
				}, arrival, poll)
				require.EventuallyWithT(t, func(c *assert.CollectT) {
					samples, err := harness.Scrape(t.Context(), collector.Address(t, "exporters::prometheus"))
					if !assert.NoError(c, err) {
						return
					}
					found := harness.Select(samples, "ml_batches_total", nil)
					if assert.Len(c, found, 1) {
						assert.InDelta(c, counted, found[0].Value, 0)
					}
				}, arrival, poll)
			}
			awaitBatch(1, 1)
			require.NoError(t, os.WriteFile(lines, []byte(test.changed), 0o600))
			ready := strings.Count(collector.Output(), "Everything is ready.")
			require.NoError(t, syscall.Kill(collector.PID(), syscall.SIGHUP))
			collector.AwaitOutput(t, test.says)
			if test.says == full {
				require.Eventually(t, func() bool { return strings.Count(collector.Output(), "Everything is ready.") > ready }, arrival, poll)
			}
			awaitBatch(2, 2)
		})
	}
}
