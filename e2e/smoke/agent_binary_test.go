package smoke

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// agentBytes is the project's limit for the smaller binary.
const agentBytes = 60_000_000

// TestAgentBinary: otelcol-ml-agent is small, and runs what a machine with GPUs runs.
func TestAgentBinary(t *testing.T) {
	useAgent(t)
	info, err := os.Stat(harness.CollectorBinary(t))
	require.NoError(t, err)
	assert.LessOrEqual(t, info.Size(), int64(agentBytes))

	config := func(name string) string { return harness.Path("distribution", "config", name) }
	for _, over := range [][]string{{"agent.yaml"}, {"production.yaml"}, {"agent.yaml", "nccl.yaml"}, {"agent.yaml", "archive.yaml"}, {"agent.yaml", "llm-backend.yaml"}, {"demo.yaml"}} {
		var files []string
		for _, name := range over {
			files = append(files, config(name))
		}
		code, output := harness.ValidateIn(t, t.TempDir(), []string{recording(), "OTELCOL_ML_ARCHIVE_DIR=" + t.TempDir()}, files...)
		assert.Zero(t, code, "%s: %s", filepath.Join(over...), output)
	}
	code, output := harness.Validate(t, nil, harness.Path("docker", "collector", "gpu.yaml"))
	assert.Zero(t, code, output)

	a := startAgent(t, nil)
	require.NoError(t, a.sender.Traces(t.Context(), oneSpan("served", "work", func(pcommon.Map) {})))
	a.awaitValue(t, "traces_span_metrics_calls_total", 1)
}
