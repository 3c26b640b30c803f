package smoke

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-ml/otelcol-ml/e2e/documents"
	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// What docs/troubleshooting.md quotes of the log is what the log says.
func TestTroubles(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(harness.Path("docs", "troubleshooting.md"))
	require.NoError(t, err)
	agent := harness.Path("distribution", "config", "agent.yaml")
	taken := harness.StartCollector(t, harness.CollectorOptions{Config: agent})
	address := taken.Address(t, "receivers::otlp::protocols::grpc")
	shared := t.TempDir()
	require.NoError(t, os.Chmod(shared, 0o777))

	for name, test := range map[string]struct {
		env       []string
		overrides map[string]any
		// page is what the page has, and says what the log has.
		page, says string
	}{
		"a port that is taken": {
			overrides: map[string]any{"receivers::otlp::protocols::grpc::endpoint": address},
			page:      "`address already in use`", says: "listen tcp " + address + ": bind: address already in use",
		},
		"a component that is not inside": {
			overrides: map[string]any{"exporters::nowhere": nil},
			page:      "`unknown type: \"…\"`", says: `unknown type: "nowhere"`,
		},
		"a folder that is not private": {
			env:  []string{"OTELCOL_ML_REPRO_DIR=" + shared},
			page: "| `\"directory\": \"…\"` of `repro_gen` |", says: `"directory": "` + shared + `"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Contains(t, string(page), test.page)
			code, output := harness.RunCollector(t, harness.CollectorOptions{Config: agent, Env: test.env, Overrides: test.overrides})
			assert.NotZero(t, code, "it has to end")
			assert.Contains(t, output, test.says)
		})
	}

	t.Run("an exporter that posts to the root", func(t *testing.T) {
		t.Parallel()
		assert.Contains(t, string(page), "logs 404")
		err := harness.PostTraces(t.Context(), "http://"+taken.Address(t, "receivers::otlp::protocols::http")+"/", oneSpan("fx", "epoch_1", nil))
		assert.ErrorContains(t, err, "status 404")
	})
}

// The queue of docs/operations.md keeps what was taken from clients over a kill.
func TestDocumentedQueueOnDisk(t *testing.T) {
	t.Parallel()
	config := withDocumented(t, "docs/operations.md", "A queue on disk")
	queue := filepath.Join(t.TempDir(), "queue")
	start := func(endpoint string) *harness.Collector {
		return harness.StartCollector(t, harness.CollectorOptions{
			Config: config,
			Env:    []string{"JAEGER_ENDPOINT=" + endpoint},
			Overrides: map[string]any{
				"extensions::file_storage::directory": queue,
			},
		})
	}

	// Nobody is there.
	collector := start(fmt.Sprintf("127.0.0.1:%d", harness.FreePort(t)))
	sender, err := harness.NewGRPCSender(collector.Address(t, "receivers::otlp::protocols::grpc"))
	require.NoError(t, err)
	const requests = 20
	for i := range requests {
		traces := oneSpan("queued", "step", nil)
		traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).SetTraceID(pcommon.TraceID{1, byte(i)})
		require.NoError(t, sender.Traces(t.Context(), traces), "the client is told that it is taken")
	}
	require.NoError(t, sender.Close())
	collector.Kill(t)

	sink := harness.StartSink(t)
	again := start(sink.Endpoint)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		arrived := map[pcommon.TraceID]bool{}
		for _, span := range sink.Spans() {
			arrived[span.TraceID()] = true
		}
		assert.Len(c, arrived, requests)
	}, arrival, poll)
	assert.Zero(t, again.Stop(t), "exit code after SIGTERM")
}

// withDocumented writes a configuration to which a section of a document has a
// reader add its lines, and returns the file.
func withDocumented(t *testing.T, document, section string) string {
	t.Helper()
	for _, block := range documents.Of(documented(t), "yaml") {
		over, ok := block.Option("over")
		if !ok || filepath.ToSlash(block.File) != document || block.Section != section {
			continue
		}
		var config, lines map[string]any
		text, err := os.ReadFile(harness.Path(filepath.FromSlash(over)))
		require.NoError(t, err)
		require.NoError(t, yaml.Unmarshal(text, &config))
		require.NoError(t, yaml.Unmarshal([]byte(block.Text), &lines))
		documents.Merge(config, lines)
		merged, err := yaml.Marshal(config)
		require.NoError(t, err)
		file := filepath.Join(t.TempDir(), "collector.yaml")
		require.NoError(t, os.WriteFile(file, merged, 0o600))
		return file
	}
	require.Fail(t, "no such block", "%s has none over another file in %q", document, section)
	return ""
}
