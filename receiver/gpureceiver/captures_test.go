package gpureceiver

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/recording"
)

// Each capture says where its values come from and is played by a folder.
func TestCapturesAreLabelledAndPlayed(t *testing.T) {
	captures, err := filepath.Glob(filepath.Join("testdata", "captures", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, captures)
	configs, err := filepath.Glob(filepath.Join("testdata", "replay", "*", "config.yaml"))
	require.NoError(t, err)
	played := map[string]bool{}
	for _, config := range configs {
		played[loadConfig(t, config).Replay.Path] = true
	}
	for _, capture := range captures {
		rec, err := recording.Load(capture)
		require.NoError(t, err)
		made := rec.Origin == "made from documented values, not recorded"
		assert.True(t, made || strings.HasPrefix(rec.Origin, "recorded by "), "%s is from %q", capture, rec.Origin)
		if made {
			text, err := os.ReadFile(capture)
			require.NoError(t, err)
			assert.Contains(t, string(text), "othing here was measured", capture)
		}
		assert.True(t, played[capture], capture)
	}
}

// The folders that show everything switch everything on.
func TestEverythingIsEverything(t *testing.T) {
	configs, err := filepath.Glob(filepath.Join("testdata", "replay", "everything_*", "config.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, configs)
	for _, path := range configs {
		cfg := loadConfig(t, path)
		for _, group := range []reflect.Value{reflect.ValueOf(cfg.Metrics), reflect.ValueOf(cfg.MetricsBuilderConfig.ResourceAttributes)} {
			for i := range group.NumField() {
				if enabled := group.Field(i).FieldByName("Enabled"); enabled.IsValid() {
					assert.True(t, enabled.Bool(), "%s: %s", path, group.Type().Field(i).Name)
				}
			}
		}
	}
}

// ofKernelLog are the metrics that neither NVML nor a recording has.
var ofKernelLog = map[string]bool{"nvidia.gpu.kernel_log.state": true, "nvidia.nvswitch.sxid.errors": true}

// Whatever metric there is, a capture shows it.
func TestEveryMetricIsInACapture(t *testing.T) {
	seen := map[string]bool{}
	configs, err := filepath.Glob(filepath.Join("testdata", "replay", "everything_*", "config.yaml"))
	require.NoError(t, err)
	for _, path := range configs {
		for _, resource := range newRig(t, loadConfig(t, path)).scrape(t).ResourceMetrics().All() {
			for _, scope := range resource.ScopeMetrics().All() {
				for _, metric := range scope.Metrics().All() {
					seen[metric.Name()] = true
				}
			}
		}
	}
	info := reflect.ValueOf(metadata.MetricsInfo)
	for _, metric := range info.Fields() {
		name := metric.FieldByName("Name").String()
		if name == "nvidia.gpu.memory.retired_pages" || ofKernelLog[name] || hostMetrics[name] {
			// Of GPUs before Ampere, of which there is no capture.
			continue
		}
		assert.True(t, seen[name], name)
	}
}
