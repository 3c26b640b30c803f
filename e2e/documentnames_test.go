package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/documents"
	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

var (
	inBackquotes = regexp.MustCompile("`([^`\n]+)`")
	// ourName is what begins as a metric, a recorded name or a label of ours in
	// Prometheus does.
	ourName = regexp.MustCompile(`\b(?:(?:ml|hw|nvidia|gen_ai)_[a-z0-9_]*[a-z0-9]|(?:run|rank|run_gpu|gpu_model|server|gateway):[a-z0-9_]+(?::[a-z0-9_]+)?|otelcol_[a-z0-9_]*[a-z0-9])\b`)
)

// ours are words of that form that are no metrics: components, and one of contrib.
var ours = []string{"gen_ai_normalizer", "ml_enrich", "ml_guard", "ml_lines", "ml_metrics", "ml_sample", "ml_state", "ml_view"}

// stockOwn begins the names of what the stock collector says of itself.
var stockOwn = regexp.MustCompile(`^otelcol_(?:(?:receiver_(?:accepted|refused)|exporter_(?:queue_size|sent|(?:send|enqueue)_failed))(?:_(?:spans|metric_points|log_records))?|process_(?:memory_rss|cpu_seconds)|deltatocumulative_datapoints|processor_groupbytrace_traces_evicted)$`)

// TestDocumentsNameWhatIsWritten holds the names that the pages for readers have
// in backquotes against the generated tables.
func TestDocumentsNameWhatIsWritten(t *testing.T) {
	known := slices.Concat(ours, recordedNames(t))
	written, _ := writtenNames(t)
	for _, name := range written {
		known = append(known, name, strings.TrimSuffix(name, "_count"))
	}
	// Labels, and what ml_enrich writes itself, are told by their attributes;
	// the exporter adds a unit to the latter.
	for _, page := range []string{"docs/vocabulary.md", "receiver/gpureceiver/series.md", "receiver/gpureceiver/documentation.md", "connector/mlmetricsconnector/series.md", "processor/mlenrichprocessor/README.md"} {
		for _, name := range quotedNames(t, page) {
			label := strings.NewReplacer(".", "_").Replace(name)
			known = append(known, label, label+"_bytes", label+"_per_second")
		}
	}
	for _, component := range []string{"receiver/gpureceiver", "receiver/ncclreceiver", "processor/mlenrichprocessor", "processor/mlguardprocessor", "processor/mlsampleprocessor", "processor/reprogenprocessor", "connector/mlmetricsconnector", "connector/mllinesconnector", "exporter/mlviewexporter", "extension/mlguardextension"} {
		text, err := os.ReadFile(harness.Path(component, "documentation.md"))
		require.NoError(t, err)
		known = append(known, regexp.MustCompile(`otelcol_\w+`).FindAllString(string(text), -1)...)
	}

	files, err := documents.Files(harness.Path())
	require.NoError(t, err)
	for _, file := range files {
		if file != "README.md" && !slices.Contains([]string{"docs", "docs/systems", "docs/evidence"}, filepath.ToSlash(filepath.Dir(file))) {
			continue
		}
		for _, quoted := range quotedNames(t, file) {
			for _, name := range ourName.FindAllString(regexp.MustCompile(`"[^"]*"`).ReplaceAllString(quoted, ""), -1) {
				if strings.Contains(quoted, name+"_*") || strings.Contains(quoted, name+"*") || strings.HasSuffix(quoted, "_…") || stockOwn.MatchString(name) {
					continue
				}
				assert.True(t, slices.Contains(known, name), "%s has %s in `%s`, which nobody writes", file, name, quoted)
			}
		}
	}
}

// An operator whom an alert wakes finds a row with its name, and what to do.
func TestTroubleshootingHasEveryAlert(t *testing.T) {
	files, err := filepath.Glob(harness.Path("docker", "prometheus", "rules", "*.yaml"))
	require.NoError(t, err)
	names := quotedNames(t, "docs/troubleshooting.md")
	alerts := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, match := range regexp.MustCompile(`(?m)^ *- alert: (\S+)$`).FindAllStringSubmatch(string(text), -1) {
			assert.Contains(t, names, match[1])
			alerts++
		}
	}
	assert.NotZero(t, alerts)
}

// quotedNames returns what a document has in backquotes, outside of its blocks.
func quotedNames(t *testing.T, file string) []string {
	t.Helper()
	text, err := os.ReadFile(harness.Path(filepath.FromSlash(file)))
	require.NoError(t, err)
	outside := regexp.MustCompile("(?ms)^ *```.*?^ *```$").ReplaceAllString(string(text), "")
	var names []string
	for _, match := range inBackquotes.FindAllStringSubmatch(outside, -1) {
		names = append(names, match[1])
	}
	return names
}

// recordedNames returns the names that the rules record.
func recordedNames(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(harness.Path("docker", "prometheus", "rules", "*.yaml"))
	require.NoError(t, err)
	var names []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, match := range regexp.MustCompile(`(?m)^ *- record: (\S+)$`).FindAllStringSubmatch(string(text), -1) {
			names = append(names, match[1])
		}
	}
	require.NotEmpty(t, names)
	return names
}
