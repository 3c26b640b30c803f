package gpureceiver

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/recording"
)

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	return string(text)
}

// TestReadmeQueryIsTheTestedOne: promtool tries the query for the labels of pods.
func TestReadmeQueryIsTheTestedOne(t *testing.T) {
	tested, err := os.ReadFile(filepath.Join("testdata", "pod_labels_test.yaml"))
	require.NoError(t, err)
	_, query, found := strings.Cut(string(tested), "expr: |\n")
	require.True(t, found)
	query, _, _ = strings.Cut(query, "eval_time")
	assert.Contains(t, strings.Join(strings.Fields(readme(t)), " "), "```promql "+strings.Join(strings.Fields(query), " ")+" ```")
}

// Each YAML block of the README is a configuration that is accepted.
func TestReadmeConfigurations(t *testing.T) {
	blocks := strings.Split(readme(t), "```yaml\n")[1:]
	require.NotEmpty(t, blocks)
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		var parsed struct {
			Receivers map[string]map[string]any `yaml:"receivers"`
		}
		require.NoError(t, yaml.Unmarshal([]byte(block), &parsed), block)
		require.Contains(t, parsed.Receivers, metadata.Type.String(), block)
		cfg := createDefaultConfig()
		require.NoError(t, confmap.NewFromStringMap(parsed.Receivers[metadata.Type.String()]).Unmarshal(cfg), block)
		require.NoError(t, confmap.Validate(cfg), block)
	}
}

// A setting that the README's list of everything lacks is one that nobody
// finds.
func TestReadmeNamesEverySetting(t *testing.T) {
	_, block, found := strings.Cut(readme(t), "All keys but `replay` and `events`, which are shown below:\n\n```yaml\n")
	require.True(t, found)
	block, _, _ = strings.Cut(block, "```")
	var parsed map[string]map[string]map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(block), &parsed))
	listed := confmap.NewFromStringMap(parsed["receivers"][metadata.Type.String()])

	all := confmap.New()
	require.NoError(t, all.Marshal(createDefaultConfig()))
	// These have a key for each metric, event and attribute; the replay is in
	// a block of its own.
	for _, key := range []string{"metrics", "events", "resource_attributes", "replay"} {
		all.Delete(key)
	}
	for _, key := range all.AllKeys() {
		assert.True(t, listed.IsSet(key), key)
	}
}

// The recording of recordings.md can be played, and each capture is listed there.
func TestReadmeRecordings(t *testing.T) {
	page, err := os.ReadFile("recordings.md")
	require.NoError(t, err)
	_, block, found := strings.Cut(string(page), "```yaml recording\n")
	require.True(t, found)
	block, _, _ = strings.Cut(block, "```")
	_, err = recording.Parse([]byte(block))
	require.NoError(t, err)
	captures, err := filepath.Glob(filepath.Join("testdata", "captures", "*.yaml"))
	require.NoError(t, err)
	for _, capture := range captures {
		assert.Contains(t, string(page), "("+filepath.ToSlash(capture)+")")
	}
}

func TestReadmeNamesEveryDriverState(t *testing.T) {
	for _, state := range device.DriverStates {
		assert.Contains(t, readme(t), "| `"+string(state)+"` |")
	}
}

// The states that snapshots have and those that metadata.yaml declares are two
// lists.
func TestDriverStatesAreThoseOfTheMetric(t *testing.T) {
	assert.Len(t, metadata.MapAttributeNvidiaGpuDriverState, len(device.DriverStates))
	for _, state := range device.DriverStates {
		assert.Contains(t, metadata.MapAttributeNvidiaGpuDriverState, string(state))
	}
}

// The attributes of a workload are those that the README's table lists.
func TestReadmeNamesEveryWorkloadAttribute(t *testing.T) {
	for _, name := range metadata.MetricsInfo.NvidiaGpuWorkloadMemoryUsage.Attributes {
		assert.Contains(t, readme(t), "`"+name+"`")
	}
	known := workload.Number{Known: true}
	everything := workload.Workload{
		RunID: "x", RunAttempt: known, RankGlobal: known, RankLocal: known, WorldSize: known,
		SlurmJobID: "x", ContainerID: "x", PodUID: "x", ServiceName: "x", UserID: "x", UserName: "x",
		Pod: workload.Pod{Namespace: "x", Name: "x", Container: "x"},
	}
	const ofTheGPU = 5
	assert.Len(t, workloadAttributes(&everything), len(metadata.MetricsInfo.NvidiaGpuWorkloadMemoryUsage.Attributes)-ofTheGPU)
}
