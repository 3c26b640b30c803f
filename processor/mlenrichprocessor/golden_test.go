package mlenrichprocessor

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
)

// TestGolden runs each folder of testdata that has a case.txt: what is in
// before.txt (traces, where there are any) goes in first, then what is in
// case.txt, which marks what has to be added with a +. Sent again, what came
// out comes out unchanged. config.yaml is for what is not the default. A new
// case is a case.txt without marks; run with -update and read them.
func TestGolden(t *testing.T) {
	cases, err := filepath.Glob(filepath.Join("testdata", "*", "case.txt"))
	require.NoError(t, err)
	require.NotEmpty(t, cases)
	for _, path := range cases {
		dir := filepath.Dir(path)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			p := start(t, loadConfig(t, filepath.Join(dir, "config.yaml")))
			before := filepath.Join(dir, "before.txt")
			if _, err := os.Stat(before); err == nil {
				p.sendTraces(t, golden.ReadTraces(t, before))
			}
			switch golden.Signal(t, path) {
			case "traces":
				got := p.sendTraces(t, golden.ReadTraces(t, path))
				golden.CompareTraces(t, path, got)
				require.Equal(t, golden.Traces(t, got), golden.Traces(t, p.sendTraces(t, got)), "a second pass")
			case "metrics":
				got := p.sendMetrics(t, golden.ReadMetrics(t, path))
				golden.CompareMetrics(t, path, got)
				require.Equal(t, golden.Metrics(t, got), golden.Metrics(t, p.sendMetrics(t, got)), "a second pass")
			case "logs":
				got := p.sendLogs(t, golden.ReadLogs(t, path))
				golden.CompareLogs(t, path, got)
				require.Equal(t, golden.Logs(t, got), golden.Logs(t, p.sendLogs(t, got)), "a second pass")
			default:
				t.Fatalf("%s has none of the three signals", path)
			}
		})
	}
}

// loadConfig returns the default where there is no file.
func loadConfig(t *testing.T, path string) *Config {
	t.Helper()
	conf := confmap.New()
	if _, err := os.Stat(path); err == nil {
		conf, err = confmaptest.LoadConf(path)
		require.NoError(t, err)
	}
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, conf.Unmarshal(cfg))
	require.NoError(t, confmap.Validate(cfg))
	return cfg
}
