package mlviewexporter

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
)

// load returns the configuration of YAML, or the error of reading or validating
// it.
func load(t *testing.T, text string) (*Config, error) {
	t.Helper()
	retrieved, err := confmaptest.LoadConf(writeFile(t, text))
	require.NoError(t, err)
	cfg := NewFactory().CreateDefaultConfig()
	if err := retrieved.Unmarshal(cfg); err != nil {
		return nil, err
	}
	return cfg.(*Config), confmap.Validate(cfg)
}

func TestEveryKeyIsRead(t *testing.T) {
	cfg, err := load(t, `
endpoint: localhost:9999
read_header_timeout: 3s
auth:
  authenticator: basicauth/page
tls:
  cert_file: cert.pem
  key_file: key.pem
interval: 5s
history: 1h
storage: file_storage/page
max_runs: 10
max_gpus: 20
traces: {held: 30, bytes: 50}
content: true
owners: {"1001": Ada}
jaeger_url: https://jaeger.example/
reproductions: /var/lib/reproductions
reports: {directory: /var/lib/reports, keep: 7}
insecure_no_auth: true
`)
	require.NoError(t, err)
	assert.Equal(t, "localhost:9999", cfg.NetAddr.Endpoint)
	assert.Equal(t, 3*time.Second, cfg.ReadHeaderTimeout)
	assert.Equal(t, component.MustNewIDWithName("basicauth", "page"), cfg.Auth.Get().AuthenticatorID)
	assert.Equal(t, "cert.pem", cfg.TLS.Get().CertFile)
	assert.Equal(t, 5*time.Second, cfg.Interval)
	assert.Equal(t, time.Hour, cfg.History)
	assert.Equal(t, component.MustNewIDWithName("file_storage", "page"), *cfg.Storage)
	assert.Equal(t, 10, cfg.MaxRuns)
	assert.Equal(t, 20, cfg.MaxGPUs)
	assert.Equal(t, ReportsConfig{Directory: "/var/lib/reports", Keep: 7}, cfg.Reports)
	assert.Equal(t, TracesConfig{Held: 30, Bytes: 50}, cfg.Traces)
	assert.True(t, cfg.Content)
	assert.Equal(t, map[string]string{"1001": "Ada"}, cfg.Owners)
	assert.Equal(t, "https://jaeger.example/", cfg.JaegerURL)
	assert.Equal(t, "/var/lib/reproductions", cfg.Reproductions)
	assert.True(t, cfg.InsecureNoAuth)
}

func TestDefaults(t *testing.T) {
	cfg, err := load(t, "")
	require.NoError(t, err)
	assert.Equal(t, "127.0.0.1:8890", cfg.NetAddr.Endpoint)
	assert.Equal(t, 2*time.Second, cfg.Interval)
	assert.Equal(t, 12*time.Hour, cfg.History)
	assert.Equal(t, 1000, cfg.MaxRuns)
	assert.Equal(t, 1024, cfg.MaxGPUs)
	assert.Equal(t, TracesConfig{Held: 200, Bytes: 64 << 20}, cfg.Traces)
	assert.Nil(t, cfg.Storage)
	assert.False(t, cfg.Content)
	assert.False(t, cfg.InsecureNoAuth)
}

// TestReadme has the README's first configuration, which has the defaults, and
// looks for each key in its table.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, block, found := strings.Cut(string(text), "These are the defaults:\n\n```yaml\nexporters:\n  ml_view:\n")
	require.True(t, found)
	block, _, _ = strings.Cut(block, "```")
	cfg, err := load(t, block)
	require.NoError(t, err)
	defaults := createDefaultConfig().(*Config)
	defaults.Owners = map[string]string{}
	assert.Equal(t, defaults, cfg)

	var keys []string
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Config]()) {
		if key := field.Tag.Get("mapstructure"); len(field.Index) == 1 && key != "" && key != ",squash" && key != "traces" && key != "reports" {
			keys = append(keys, key)
		}
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[TracesConfig]()) {
		if key := field.Tag.Get("mapstructure"); key != "" {
			keys = append(keys, "traces::"+key)
		}
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[ReportsConfig]()) {
		if key := field.Tag.Get("mapstructure"); key != "" {
			keys = append(keys, "reports::"+key)
		}
	}
	require.Len(t, keys, 17)
	for _, key := range keys {
		assert.Contains(t, string(text), "\n| `"+key+"` |")
	}
}

func TestInvalidConfigurationsAreExplained(t *testing.T) {
	for text, message := range map[string]string{
		"interval: 2ms":                     `"interval" is 2ms; it must be between 100ms and 1m0s`,
		"interval: 1h":                      `"interval" is 1h0m0s; it must be between 100ms and 1m0s`,
		"history: -1s":                      `"history" is -1s; it must be between 1m0s and 168h0m0s`,
		"history: 200h":                     `"history" is 200h0m0s; it must be between 1m0s and 168h0m0s`,
		"max_runs: 0":                       `"max_runs" is 0; it must be between 1 and 100000`,
		"max_gpus: 200000":                  `"max_gpus" is 200000; it must be between 1 and 100000`,
		"traces: {held: -1}":                `"traces::held" is -1; it must be between 1 and 100000`,
		"traces: {bytes: -5}":               `"traces::bytes" is -5; it must be between 1 and 17179869184`,
		"reports: {keep: 0}":                `"reports::keep" is 0; it must be between 1 and 10000`,
		"jaeger_url: javascript:alert(1)":   `"jaeger_url" is "javascript:alert(1)", must be an address with http or https`,
		"jaeger_url: http://user:pw@jaeger": `must be an address with http or https and without a password`,
		"jaeger_url: jaeger.example":        `"jaeger_url" is "jaeger.example", must be`,
		`endpoint: ""`:                      `"endpoint" is "", must be a host and a port, such as "127.0.0.1:8890"`,
		"endpoint: localhost":               `"endpoint" is "localhost", must be a host and a port`,
		"max_run: 5":                        `has invalid keys: max_run`,
	} {
		_, err := load(t, text)
		assert.ErrorContains(t, err, message, text)
	}
}

func TestOpenAddressesNeedAuthentication(t *testing.T) {
	const refused = `which other machines can reach: set "auth"`
	for _, endpoint := range []string{"0.0.0.0:8890", ":8890", "[::]:8890", "192.168.1.7:8890", "gpu-01:8890", "localhost.example.org:8890", "[::ffff:10.0.0.1]:8890"} {
		_, err := load(t, "endpoint: '"+endpoint+"'")
		require.ErrorContains(t, err, refused, endpoint)
		require.ErrorContains(t, err, `"insecure_no_auth: true"`, "the error says how to permit it")
		_, err = load(t, "endpoint: '"+endpoint+"'\ninsecure_no_auth: true")
		require.NoError(t, err, endpoint)
		_, err = load(t, "endpoint: '"+endpoint+"'\nauth: {authenticator: basicauth}")
		require.NoError(t, err, endpoint)
		_, err = load(t, "endpoint: '"+endpoint+"'\ntls: {cert_file: page.crt, key_file: page.key, client_ca_file: readers.crt}")
		require.NoError(t, err, endpoint)
		_, err = load(t, "endpoint: '"+endpoint+"'\ntls: {cert_file: page.crt, key_file: page.key}")
		require.ErrorContains(t, err, refused, endpoint)
	}
	for _, endpoint := range []string{"127.0.0.1:8890", "127.8.9.1:0", "localhost:8890", "LOCALHOST:8890", "[::1]:8890", "[::ffff:127.0.0.1]:8890"} {
		_, err := load(t, "endpoint: '"+endpoint+"'")
		require.NoError(t, err, endpoint)
	}
	_, err := load(t, "endpoint: /run/page.sock\ntransport: unix")
	require.NoError(t, err, "the file's permissions say who reads the page")
}
