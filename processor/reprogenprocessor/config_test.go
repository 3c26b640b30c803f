package reprogenprocessor

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind/pythoncall"
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
	names := pythoncall.DefaultConfig()
	names.Payload, names.Args, names.Kwargs = []string{"repro.payload", "app.call"}, []string{"app.args"}, []string{}
	assert.Equal(t, &Config{
		Directory:          "/var/lib/otelcol-ml/reproductions",
		AllowedModules:     []string{"statistics", "my_app.models.*", "numpy.linalg:solve"},
		AllowedCommands:    []string{"/srv/train.py", "-m my_app.train"},
		AllowedHosts:       []string{"models.internal", "[fd00::7]:8000"},
		CallAttributes:     names,
		SiblingWait:        5 * time.Second,
		EnrichWindow:       time.Hour,
		MaxMemoryBytes:     8 << 20,
		QueueSize:          64,
		ArtifactsPerMinute: 5,
		Retention:          RetentionConfig{MaxArtifacts: 200, MaxBytes: 100 << 20, MaxAge: 24 * time.Hour},
		EmitLog:            true,
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
		"repro_gen/bad_names": {
			`"payload[0]" is empty: it must be the name of a span attribute`,
			`"payload[1]" is "repro.artifact.path": repro_gen writes that one`,
			`"args[0]" is "args", as "function[1]" is`, `"function[2]" is "library", as`, `"kwargs" has 17 names: at most 16`, "call_attributes",
		},
		"repro_gen/bad_commands": {
			`"allowed_commands[0]": "train.py" is not "/path/of/train.py"`, `"allowed_commands[1]"`, "telemetry's",
		},
		"repro_gen/bad_hosts": {`"allowed_hosts[0]": "http://models.internal" is not "host"`, `"allowed_hosts[1]"`},
		"repro_gen/bad_limits": {
			`"sibling_wait" is -1s: it must be 0s or at least 1ms`, `"enrich_window" is -1s`,
			`"max_memory_bytes" is 1000: it must be at least 1048576`,
			`"queue_size" is 0: it must be at least 1`, `"min_free_bytes" is -1`,
			`"artifacts_per_minute" is 0: it must be at least 1`,
			`"max_artifacts" is -1`, `"max_bytes" is -1`, `"max_age" is -1s`, "retention",
		},
		"repro_gen/many_artifacts": {`"artifacts_per_minute" is 100001: it must be at most 100000`},
		"repro_gen/no_unit":        {`"sibling_wait" is 10ns: it must be 0s or at least 1ms`},
		"repro_gen/waits_too_long": {`"sibling_wait" is 1h0m0s: it must be at most "enrich_window", 30m0s`},
	} {
		t.Run(id, func(t *testing.T) {
			_, err := loadConfig(t, id)
			for _, want := range wants {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

// TestRemovedKeys: a configuration with a key that is not there any more is
// refused, and the error says what to do.
func TestRemovedKeys(t *testing.T) {
	for key, want := range map[string]string{
		"workers": "two artifacts are written at a time", "max_groups": "10000", "max_payload_bytes": "262144", "max_artifact_bytes": "1048576",
		"traces::held": "max_memory_bytes", "traces::bytes": "max_memory_bytes", "rate_limit::per_minute": "artifacts_per_minute",
		"rate_limit::burst": "twice", "retention::artifacts": "retention::max_artifacts", "retention::bytes": "retention::max_bytes",
		"retention::age": "retention::max_age", "call_attributes::library": "library", "call_attributes::call_type": "call_type",
	} {
		value := any(7)
		names := strings.Split(key, "::")
		for _, name := range slices.Backward(names) {
			value = map[string]any{name: value}
		}
		err := confmap.NewFromStringMap(value.(map[string]any)).Unmarshal(createDefaultConfig().(*Config))
		require.ErrorContains(t, err, want, key)
		require.ErrorContains(t, err, names[0], key)
		require.ErrorContains(t, err, "was removed", key)
	}
	err := confmap.NewFromStringMap(map[string]any{"workers": 2, "max_groups": 3}).Unmarshal(createDefaultConfig().(*Config))
	require.ErrorContains(t, err, `"workers" was removed`)
	require.ErrorContains(t, err, `"max_groups" was removed`)
}
