package gpureceiver

import (
	"path/filepath"
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
			[]string{`"replay::path" is the directory`, directory},
		},
		"library is a directory": {
			map[string]any{"nvml": map[string]any{"library_path": directory}},
			[]string{`"nvml::library_path" is the directory`, directory},
		},
		"negative interval": {
			map[string]any{"collection_interval": "-1s"},
			[]string{`"collection_interval" is -1s; it must be positive`},
		},
		"timeout longer than the interval": {
			map[string]any{"collection_interval": "5s", "timeout": "6s"},
			[]string{`"timeout" is 6s; it must be between 0 and "collection_interval", 5s`},
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

func TestUnknownKeysAreRefused(t *testing.T) {
	for _, config := range []map[string]any{
		{"replay": map[string]any{"file": "x"}},
		{"metrics": map[string]any{"hw.gpu.utilisation": map[string]any{"enabled": true}}},
	} {
		require.ErrorContains(t, confmap.NewFromStringMap(config).Unmarshal(createDefaultConfig()), "invalid keys")
	}
}

// A library that is not there yet is waited for, and is no error.
func TestMissingLibraryIsAccepted(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.NVML.LibraryPath = filepath.Join(t.TempDir(), "later.so")
	require.NoError(t, confmap.Validate(cfg))
}
