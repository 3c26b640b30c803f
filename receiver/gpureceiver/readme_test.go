package gpureceiver

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/workload"
)

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	return string(text)
}

// Each YAML block of the README is a configuration that is accepted.
func TestReadmeConfigurations(t *testing.T) {
	blocks := strings.Split(readme(t), "```yaml\n")[1:]
	require.NotEmpty(t, blocks)
	for _, block := range blocks {
		block, _, _ = strings.Cut(block, "```")
		var parsed map[string]map[string]map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(block), &parsed), block)
		require.Contains(t, parsed["receivers"], metadata.Type.String(), block)
		cfg := createDefaultConfig()
		require.NoError(t, confmap.NewFromStringMap(parsed["receivers"][metadata.Type.String()]).Unmarshal(cfg), block)
		require.NoError(t, confmap.Validate(cfg), block)
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
		SlurmJobID: "x", ContainerID: "x", PodUID: "x", ServiceName: "x", UserID: "x",
		Pod: workload.Pod{Namespace: "x", Name: "x", Container: "x"},
	}
	const ofTheGPU = 5
	assert.Len(t, workloadAttributes(everything), len(metadata.MetricsInfo.NvidiaGpuWorkloadMemoryUsage.Attributes)-ofTheGPU)
}
