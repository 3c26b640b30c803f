package reprogenprocessor

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/metadata"
)

func loadConfig(t *testing.T, id string) (*Config, error) {
	cm, err := confmaptest.LoadConf(filepath.Join("testdata", "config.yaml"))
	require.NoError(t, err)
	var name component.ID
	require.NoError(t, name.UnmarshalText([]byte(id)))
	sub, err := cm.Sub(name.String())
	require.NoError(t, err)
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, sub.Unmarshal(cfg))
	return cfg, confmap.Validate(cfg)
}

func TestConfig(t *testing.T) {
	cfg, err := loadConfig(t, metadata.Type.String())
	require.NoError(t, err)
	assert.Equal(t, createDefaultConfig(), cfg)

	cfg, err = loadConfig(t, "repro_gen/all")
	require.NoError(t, err)
	assert.Equal(t, &Config{
		Directory:      "/var/lib/otelcol-ml/reproductions",
		AllowedModules: []string{"statistics", "my_app.models.*", "numpy.linalg:solve"},
		QueueSize:      64,
		RateLimit:      RateLimitConfig{PerMinute: 5, Burst: 10},
		Retention:      RetentionConfig{Artifacts: 200, Bytes: 100 << 20, Age: 24 * time.Hour},
	}, cfg)
}

func TestBadConfig(t *testing.T) {
	for id, wants := range map[string][]string{
		"repro_gen/no_directory": {`"directory" is empty`},
		"repro_gen/bad_modules": {
			`"allowed_modules[0]": "os.system()" is not "pkg.mod"`, `"allowed_modules[1]"`,
			`"allowed_modules[2]": "builtins:eval" names the module "builtins"`,
		},
		"repro_gen/bad_limits": {
			`"queue_size" is 0: it must be at least 1`,
			`"per_minute" is -1: it must be at least 1`, `"burst" is 0`, "rate_limit",
			`"artifacts" is -1`, `"bytes" is -1`, `"age" is -1s`, "retention",
		},
	} {
		t.Run(id, func(t *testing.T) {
			_, err := loadConfig(t, id)
			for _, want := range wants {
				require.ErrorContains(t, err, want)
			}
		})
	}
}
