package ncclreceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
)

func TestDefaultConfig(t *testing.T) {
	require.NoError(t, createDefaultConfig().(*Config).Validate())
}

func TestConfigRefused(t *testing.T) {
	for name, test := range map[string]struct {
		config map[string]any
		error  string
	}{
		"asks too often": {
			map[string]any{"collection_interval": "14s"},
			`"collection_interval" is 14s; it must be between 15s and 1h0m0s`,
		},
		"asks too seldom": {
			map[string]any{"collection_interval": "2h"},
			`"collection_interval" is 2h0m0s; it must be between 15s and 1h0m0s`,
		},
		"no host": {
			map[string]any{"endpoint": ":28028"},
			`"endpoint" is ":28028"; it must be host:port, such as localhost:28028`,
		},
		"no port": {
			map[string]any{"endpoint": "localhost"},
			`"endpoint" is "localhost"; it must be host:port`,
		},
		"no number": {
			map[string]any{"endpoint": "localhost:ras"},
			`"endpoint" is "localhost:ras"; it must be host:port`,
		},
		"relative pattern": {
			map[string]any{"flight_recorder": []string{"nccl_trace_rank_*"}},
			`"flight_recorder" has "nccl_trace_rank_*"; it must be an absolute path`,
		},
		"impossible pattern": {
			map[string]any{"flight_recorder": []string{"/tmp/[a"}},
			`"flight_recorder" has "/tmp/[a"; it must be an absolute path`,
		},
		"relative root": {
			map[string]any{"root_path": "hostfs"},
			`"root_path" is "hostfs"; it must be an absolute path, or empty`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := createDefaultConfig()
			require.NoError(t, confmap.NewFromStringMap(test.config).Unmarshal(cfg))
			assert.ErrorContains(t, confmap.Validate(cfg), test.error)
		})
	}
}
