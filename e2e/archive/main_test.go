package archive

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

const (
	nativeCompression = "exporter.file.nativeCompression"
	hashKey           = "a key of at least thirty-two bytes"
	// current is the file that the collector writes to.
	current = "traces.jsonl.zst"

	timeout = 2 * time.Minute
)

// configuration returns the path of a shipped configuration.
func configuration(name string) string { return harness.Path("distribution", "config", name) }

// startArchive starts production.yaml with archive.yaml, which writes into a folder.
func startArchive(t *testing.T, folder string, options harness.CollectorOptions, env ...string) *harness.Collector {
	t.Helper()
	options.Config = configuration("production.yaml")
	options.Merged = []string{configuration("archive.yaml")}
	options.FeatureGates = []string{nativeCompression}
	return start(t, options, append(env, "OTELCOL_ML_ARCHIVE_DIR="+folder)...)
}

// start starts a collector that shows its series soon.
func start(t *testing.T, options harness.CollectorOptions, env ...string) *harness.Collector {
	t.Helper()
	overrides := map[string]any{
		"connectors::ml_metrics::flush_interval": "1s",
		"connectors::ml_metrics::initial_zero":   "1s",
	}
	if len(options.FeatureGates) > 0 {
		overrides["processors::batch/archive::timeout"] = "200ms"
	}
	maps.Copy(overrides, options.Overrides)
	options.Overrides = overrides
	options.Env = append(env, "OTELCOL_ML_HASH_KEY="+hashKey, "OTELCOL_ML_REPRO_DIR="+filepath.Join(t.TempDir(), "reproductions"))
	return harness.StartCollector(t, options)
}

// own returns the sum of one of the collector's own counters.
func own(c require.TestingT, t *testing.T, collector *harness.Collector, name string, labels harness.Labels) (sum float64) {
	samples, err := harness.Scrape(t.Context(), collector.Address(t, harness.TelemetryPath))
	require.NoError(c, err)
	for _, sample := range harness.Select(samples, name, labels) {
		sum += sample.Value
	}
	return sum
}

// awaitArchived waits until the exporter has written a number of spans.
func awaitArchived(t *testing.T, collector *harness.Collector, spans int) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.Equal(c, spans, int(own(c, t, collector, "otelcol_exporter_sent_spans", harness.Labels{"exporter": "file/archive"})))
	}, timeout, harness.ArrivalPoll)
}

// program returns the command of examples/archive.
func program(t *testing.T, arguments ...string) *exec.Cmd {
	t.Helper()
	return exec.CommandContext(t.Context(), harness.ExamplePython(t, "archive"), append([]string{harness.Path("examples", "archive", "main.py")}, arguments...)...)
}

// tryRun runs examples/archive.
func tryRun(t *testing.T, env []string, arguments ...string) (output, errors string, err error) {
	t.Helper()
	command := program(t, arguments...)
	command.Env = append(os.Environ(), append(env, "PYTHONDONTWRITEBYTECODE=1")...)
	var stdout, stderr strings.Builder
	command.Stdout, command.Stderr = &stdout, &stderr
	err = command.Run()
	return stdout.String(), stderr.String(), err
}

// run runs examples/archive and returns what it prints.
func run(t *testing.T, env []string, arguments ...string) string {
	t.Helper()
	output, errors, err := tryRun(t, env, arguments...)
	require.NoError(t, err, errors)
	return output
}

// row is a row of an answer, by the names of its columns.
type row map[string]any

// ask returns the answer to a question.
func ask(t *testing.T, parquet, question string) (rows []row) {
	t.Helper()
	output := run(t, nil, "ask", "--json", parquet, harness.Path("examples", "archive", "questions", question+".sql"))
	for line := range strings.Lines(output) {
		var one row
		require.NoError(t, json.Unmarshal([]byte(line), &one), line)
		rows = append(rows, one)
	}
	return rows
}
