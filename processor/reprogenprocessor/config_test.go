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
	names := defaultCallAttributes()
	names.Payload, names.Args, names.Kwargs = []string{"repro.payload", "app.call"}, []string{"app.args"}, []string{}
	assert.Equal(t, &Config{
		Directory:        "/var/lib/otelcol-ml/reproductions",
		AllowedModules:   []string{"statistics", "my_app.models.*", "numpy.linalg:solve"},
		AllowedCommands:  []string{"/srv/train.py", "-m my_app.train"},
		AllowedHosts:     []string{"models.internal", "[fd00::7]:8000"},
		CallAttributes:   names,
		SiblingWait:      5 * time.Second,
		EnrichWindow:     time.Hour,
		Traces:           TracesConfig{Held: 100, SpansPerTrace: 50, Bytes: 8 << 20, AttributeBytes: 1 << 10},
		QueueSize:        64,
		Workers:          4,
		RateLimit:        RateLimitConfig{PerMinute: 5, Burst: 10},
		MaxGroups:        1000,
		MaxPayloadBytes:  64 << 10,
		MaxArtifactBytes: 2 << 20,
		Retention:        RetentionConfig{Artifacts: 200, Bytes: 100 << 20, Age: 24 * time.Hour},
		EmitLog:          true,
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
			`"args[0]" is "args", as "function[1]" is`, `"library" has 17 names: at most 16`, "call_attributes",
		},
		"repro_gen/bad_commands": {
			`"allowed_commands[0]": "train.py" is not "/path/of/train.py"`, `"allowed_commands[1]"`, "telemetry's",
		},
		"repro_gen/bad_hosts": {`"allowed_hosts[0]": "http://models.internal" is not "host"`, `"allowed_hosts[1]"`},
		"repro_gen/bad_limits": {
			`"sibling_wait" is -1s: it must be at least 0`, `"enrich_window" is -1s`,
			`"held" is 0: it must be at least 1`, `"spans_per_trace" is -1`, `"bytes" is 1000: it must be at least 1048576`,
			`"attribute_bytes" is 100000: it must be 256 to 65536`,
			`"queue_size" is 0: it must be at least 1`, `"workers" is 65: it must be 1 to 64`, `"max_groups" is 0`,
			`"max_payload_bytes" is 1048577: it must be 1024 to 1048576`, `"max_artifact_bytes" is 1`, `"min_free_bytes" is -1`,
			`"per_minute" is -1: it must be at least 1`, `"burst" is 0`, "rate_limit",
			`"artifacts" is -1`, `"bytes" is -1`, `"age" is -1s`, "retention",
		},
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
