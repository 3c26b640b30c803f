package clients

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/documents"
	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// The quick start has a newcomer's quarter of an hour, so it stays short.
func TestQuickstartIsShort(t *testing.T) {
	words := len(strings.Fields(quickstart(t)))
	assert.LessOrEqual(t, words, 600)
}

// The loop of the quick start, run as it stands, is the run that the page promises:
// steps, tokens by the attribute, and an end.
func TestQuickstartLoop(t *testing.T) {
	programs := documents.Of(documents.Parse("docs/quickstart.md", quickstart(t)), "python")
	require.Len(t, programs, 1)
	file := filepath.Join(t.TempDir(), "loop.py")
	require.NoError(t, os.WriteFile(file, []byte(programs[0].Text), 0o600))
	code, output := harness.Run(t, harness.Command{
		Name: "loop.py", Path: harness.ExamplePython(t, "llm"), Args: []string{file},
		Env: []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + overHTTP(t)},
	}, 3*time.Minute)
	require.Zero(t, code, output)
	const run = `{job="trainer", ml_run_id="run-17"}`
	prometheus.AwaitValues(t, "sum by (ml_rank_global) (ml_steps_total"+run+")", "ml_rank_global", map[string]float64{"0": 400})
	prometheus.AwaitValues(t, "sum by (ml_rank_global) (ml_tokens_total"+run+")", "ml_rank_global", map[string]float64{"0": 400 * 4096})
	prometheus.AwaitValues(t, "max by (ml_run_state) (ml_run_state"+run+" == 1)", "ml_run_state", map[string]float64{"ended": 1})
}

func quickstart(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(harness.Path("docs", "quickstart.md"))
	require.NoError(t, err)
	return string(text)
}
