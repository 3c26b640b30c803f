package gpureceiver

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
)

func TestDefaultConfig(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, confmap.Validate(cfg))
	assert.Equal(t, SourceAuto, cfg.Source, "a recording is never played unless it is asked for")
	assert.Equal(t, 10*time.Second, cfg.CollectionInterval)
	assert.Equal(t, 5*time.Second, cfg.callTimeout())
	cfg.CollectionInterval = time.Second
	assert.Equal(t, time.Second, cfg.callTimeout())
	cfg.CollectionInterval = 10 * time.Millisecond
	assert.Equal(t, time.Second, cfg.callTimeout(), "process lists take longer")
}

func TestConfigRefused(t *testing.T) {
	directory := t.TempDir()
	for name, test := range map[string]struct {
		config map[string]any
		errors []string
	}{
		"source": {
			map[string]any{"source": "dcgm"},
			[]string{`"source" is "dcgm"; allowed are "auto", "nvml" and "replay"`},
		},
		"replay without a recording": {
			map[string]any{"source": "replay"},
			[]string{`"replay::path" is empty; with "source" "replay" it must name a recording`},
		},
		"recording is a directory": {
			map[string]any{"source": "replay", "replay": map[string]any{"path": directory}},
			[]string{`"replay::path" is "` + directory + `"; it must name a recording`},
		},
		"a relative path of the kernel's log": {
			map[string]any{"kernel_log": map[string]any{"path": "dev/kmsg"}},
			[]string{`"kernel_log::path" is "dev/kmsg"; it must be an absolute path`},
		},
		"negative interval": {
			map[string]any{"collection_interval": "-1s"},
			[]string{`"collection_interval" is -1s; it must be at least 1ms`},
		},
		"timeout longer than the interval": {
			map[string]any{"collection_interval": "5s", "timeout": "6s"},
			[]string{`"timeout" is 6s; it must be between 0 and "collection_interval", 5s`},
		},
		"negative timeout": {
			map[string]any{"timeout": "-1ms"},
			[]string{`"timeout" is -1ms; it must be between 0 and "collection_interval", 10s`},
		},
		"no interval": {
			map[string]any{"collection_interval": "0s"},
			[]string{`"collection_interval" is 0s; it must be at least 1ms`},
		},
		"negative delay": {
			map[string]any{"initial_delay": "-1s"},
			[]string{`"initial_delay" is -1s; it must not be negative`},
		},
		"relative root": {
			map[string]any{"root_path": "hostfs"},
			[]string{`"root_path" is "hostfs"; it must be an absolute path, or empty`},
		},
		"everything at once": {
			map[string]any{"source": "x", "timeout": "-1s", "root_path": "y"},
			[]string{`"source" is "x"`, `"timeout" is -1s`, `"root_path" is "y"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := createDefaultConfig()
			require.NoError(t, confmap.NewFromStringMap(test.config).Unmarshal(cfg))
			err := confmap.Validate(cfg)
			for _, expected := range test.errors {
				require.ErrorContains(t, err, expected)
			}
		})
	}
}

// What is misspelled is refused by its name, not silently left at its default.
func TestUnknownKeysAreRefused(t *testing.T) {
	for key, config := range map[string]map[string]any{
		"file":               {"replay": map[string]any{"file": "x"}},
		"interval":           {"interval": "10s"},
		"release":            {"nvml": map[string]any{"release": true}},
		"hw.gpu.utilisation": {"metrics": map[string]any{"hw.gpu.utilisation": map[string]any{"enabled": true}}},
		"xid":                {"events": map[string]any{"xid": map[string]any{"enabled": true}}},
		"gpu.model":          {"resource_attributes": map[string]any{"gpu.model": map[string]any{"enabled": true}}},
		"enable":             {"metrics": map[string]any{"hw.power": map[string]any{"enable": true}}},
	} {
		err := confmap.NewFromStringMap(config).Unmarshal(createDefaultConfig())
		require.ErrorContains(t, err, "invalid keys")
		require.ErrorContains(t, err, key)
	}
}

// A duration without a unit, or none at all, is refused and not taken for
// nanoseconds.
func TestMalformedDurationsAreRefused(t *testing.T) {
	for _, key := range []string{"collection_interval", "initial_delay", "timeout"} {
		err := confmap.NewFromStringMap(map[string]any{key: "10"}).Unmarshal(createDefaultConfig())
		require.ErrorContains(t, err, key)
	}
}
