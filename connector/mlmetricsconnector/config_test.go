package mlmetricsconnector

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/metadata"
)

func TestDefaultsAreTheDocumentedOnes(t *testing.T) {
	cfg := NewFactory().CreateDefaultConfig().(*Config)
	require.NoError(t, cfg.Validate())
	assert.Equal(t, &Config{
		FlushInterval: 15 * time.Second, InitialZero: 15 * time.Second, FirstStepTimeout: 30 * time.Minute, StallTimeout: 5 * time.Minute, IdleTimeout: 30 * time.Minute, MetricsExpiration: time.Hour, MaxSeries: 100000, MaxRuns: 200,
	}, cfg)
}

func TestInvalidValuesAreNamed(t *testing.T) {
	for name, tt := range map[string]struct {
		input map[string]any
		want  []string
	}{
		"zero interval": {
			input: map[string]any{"flush_interval": "0s"},
			want:  []string{`"flush_interval" is 0s, must be at least 100ms`},
		},
		"negative times": {
			input: map[string]any{"initial_zero": "-1s", "first_step_timeout": "-1m"},
			want: []string{
				`"initial_zero" is -1s, must be 0 (the value at once) or more`,
				`"first_step_timeout" is -1m0s, must be 0 (never stalled before the first step) or at least 100ms`,
			},
		},
		"timeouts of problems": {
			input: map[string]any{"stall_timeout": "0s", "idle_timeout": "-1m"},
			want: []string{
				`"stall_timeout" is 0s, must be at least 100ms`,
				`"idle_timeout" is -1m0s, must be 0 (an idle GPU is no problem) or at least 100ms`,
			},
		},
		"expires between two emissions": {
			input: map[string]any{"flush_interval": "1m", "metrics_expiration": "30s"},
			want:  []string{`"metrics_expiration" is 30s, must be 0 (never) or at least "flush_interval" (1m0s)`},
		},
		"prices of GPUs": {
			input: map[string]any{"prices": map[string]any{"gpu_hour": map[string]any{"H100": -1, "": 2, "L4": math.NaN()}}},
			want: []string{
				`"gpu_hour" has the price -1 for "H100", must be between 0 and 1e+06`,
				`"gpu_hour" has the price NaN for "L4", must be between 0 and 1e+06`,
				`"gpu_hour" has the name "", must have between 1 and 128 bytes`,
			},
		},
		"thresholds": {
			input: map[string]any{"thresholds": map[string]any{"slow": 1, "failing": 2, "costly": math.NaN(), "looks_hung": 1}},
			want: []string{
				`"slow" is 1, must be between 1.035 and 100`, `"failing" is 2, must be between 0.05 and 1`, `"costly" is NaN, must be`,
				`"thresholds" has "looks_hung", must have kinds of [costly failing slow `,
			},
		},
		"times without units": {
			input: map[string]any{"first_step_timeout": 30, "stall_timeout": 300, "idle_timeout": 30},
			want:  []string{`"first_step_timeout" is 30ns, `, `"stall_timeout" is 300ns, `, `"idle_timeout" is 30ns, `},
		},
		"all at once": {
			input: map[string]any{"flush_interval": "-1s", "metrics_expiration": "-1s", "max_series": 0, "max_runs": -1},
			want: []string{
				`"flush_interval" is -1s`, `"metrics_expiration" is -1s`,
				`"max_series" is 0, must be at least 1`, `"max_runs" is -1, must not be negative`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := NewFactory().CreateDefaultConfig().(*Config)
			require.NoError(t, confmap.NewFromStringMap(tt.input).Unmarshal(cfg))
			err := cfg.Validate()
			for _, want := range tt.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

func TestUnknownAndMistypedKeysAreRefused(t *testing.T) {
	for key, value := range map[string]any{"flush_intervall": "15s", "flush_interval": "soon", "max_runs": "many"} {
		err := confmap.NewFromStringMap(map[string]any{key: value}).Unmarshal(NewFactory().CreateDefaultConfig().(*Config))
		require.ErrorContains(t, err, key)
	}
}

// TestReadmeExamples loads every fenced block of the README.
func TestReadmeExamples(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	blocks := strings.Split(string(readme), "```yaml\n")[1:]
	require.NotEmpty(t, blocks)
	for _, block := range blocks {
		text, _, closed := strings.Cut(block, "```")
		require.True(t, closed)
		file := filepath.Join(t.TempDir(), "example.yaml")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		conf, err := confmaptest.LoadConf(file)
		require.NoError(t, err)
		connectors, err := conf.Sub("connectors")
		require.NoError(t, err)
		found := 0
		for id := range connectors.ToStringMap() {
			if id == metadata.Type.String() || strings.HasPrefix(id, metadata.Type.String()+"/") {
				sub, err := connectors.Sub(id)
				require.NoError(t, err)
				load(t, sub)
				found++
			}
		}
		assert.NotZero(t, found, "the block configures no ml_metrics:\n%s", text)
	}
}
