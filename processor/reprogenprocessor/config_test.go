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
	gateway := createDefaultConfig().(*Config).Evidence.Gateway
	gateway.Endpoint, gateway.Timeout = "https://fleet.example:8890", time.Second
	assert.Equal(t, &Config{
		Directory:          "/var/lib/otelcol-ml/reproductions",
		AllowedModules:     []string{"statistics", "my_app.models.*", "numpy.linalg:solve"},
		SiblingWait:        5 * time.Second,
		ArtifactsPerMinute: 5,
		Retention:          RetentionConfig{MaxArtifacts: 200, MaxBytes: 100 << 20, MaxAge: 24 * time.Hour},
		EmitLog:            true,
		Evidence:           EvidenceConfig{RootPath: "/hostfs", FlightRecorder: []string{"/tmp/nccl_trace_rank_*"}, Gateway: gateway},
		limits:             createDefaultConfig().(*Config).limits,
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
			`"sibling_wait" is -1s: it must be 0s, or 1ms to 30m0s`,
			`"min_free_bytes" is -1`,
			`"artifacts_per_minute" is 0; it must be between 1 and 100000`,
			`"retention::max_artifacts" is -1`, `"retention::max_bytes" is -1`, `"retention::max_age" is -1s: it must be at least 0s`,
		},
		"repro_gen/evidence": {
			`"evidence::flight_recorder[0]" is "dumps/*": it must be a pattern that begins with "/"`, `"evidence::flight_recorder[1]" is "/tmp/["`,
			`"evidence::gateway::endpoint" is "fleet:8890": it must be an address with http or https`,
		},
		"repro_gen/many_artifacts": {`"artifacts_per_minute" is 100001; it must be between 1 and 100000`},
		"repro_gen/no_unit":        {`"sibling_wait" is 10ns: it must be 0s, or 1ms to 30m0s`},
		"repro_gen/waits_too_long": {`"sibling_wait" is 1h0m0s: it must be 0s, or 1ms to 30m0s`},
	} {
		t.Run(id, func(t *testing.T) {
			_, err := loadConfig(t, id)
			for _, want := range wants {
				require.ErrorContains(t, err, want)
			}
		})
	}
}
