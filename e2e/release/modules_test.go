package release

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// manifest is what somebody else's build has: components by their versions.
const manifest = `
dist: {name: theirs, module: example.com/theirs, output_path: ./theirs, version: 1.0.0, cgo_enabled: true}
receivers:
  - gomod: go.opentelemetry.io/collector/receiver/otlpreceiver v0.158.0
  - gomod: github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver vVERSION
processors:
  - gomod: github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor vVERSION
exporters:
  - gomod: go.opentelemetry.io/collector/exporter/debugexporter v0.158.0
connectors:
  - gomod: github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector vVERSION
extensions:
  - gomod: github.com/otelcol-ml/otelcol-ml/extension/mlstateextension vVERSION
providers:
  - gomod: go.opentelemetry.io/collector/confmap/provider/envprovider v1.64.0
  - gomod: go.opentelemetry.io/collector/confmap/provider/fileprovider v1.64.0
`

const theirConfig = `
extensions: {ml_state: {}}
receivers:
  otlp: {protocols: {grpc: {endpoint: 127.0.0.1:0}}}
  gpu: {}
processors: {ml_enrich: {}}
connectors: {ml_metrics: {}}
exporters: {debug: {}}
service:
  extensions: [ml_state]
  pipelines:
    traces: {receivers: [otlp], processors: [ml_enrich], exporters: [ml_metrics]}
    metrics: {receivers: [gpu, ml_metrics], exporters: [debug]}
`

// Somebody else's manifest of ocb names components by the release's version. Go finds
// the tags where the repository would be, which here is the clone.
func TestComponentsByVersion(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "manifest.yaml"), []byte(strings.ReplaceAll(manifest, "VERSION", *version)), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "config.yaml"), []byte(theirConfig), 0o600))
	modules := output(t, dir, "go", "env", "GOMODCACHE")
	code, text := harness.Run(t, harness.Command{
		Name: "ocb", Path: harness.Binary(t, ".cache/bin/builder", ".cache", "bin", "builder"),
		Args: []string{"--config", "manifest.yaml"}, Dir: dir,
		Env: []string{
			"GOMODCACHE=" + filepath.Join(dir, "modules"), "GOCACHE=" + output(t, dir, "go", "env", "GOCACHE"),
			"GOPROXY=file://" + filepath.Join(modules, "cache", "download") + "," + output(t, dir, "go", "env", "GOPROXY"), "GOPRIVATE=github.com/otelcol-ml/*", "GONOSUMDB=*",
			"GOFLAGS=-modcacherw -buildvcs=false", "GOWORK=off", "GOTOOLCHAIN=local", "CGO_ENABLED=1",
			"CGO_CFLAGS=-g -O2 -Wno-deprecated-declarations",
			"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url.file://" + *source + ".insteadOf",
			"GIT_CONFIG_VALUE_0=https://github.com/otelcol-ml/otelcol-ml", "GIT_ALLOW_PROTOCOL=file",
		},
	}, limit)
	require.Zero(t, code, text)
	theirs := filepath.Join(dir, "theirs", "theirs")
	assert.Contains(t, output(t, dir, theirs, "components"), "github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector v"+*version)
	output(t, dir, theirs, "validate", "--config", "config.yaml")
}
