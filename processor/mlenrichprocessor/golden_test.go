package mlenrichprocessor

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/plogtest"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/pmetrictest"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/ptracetest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
)

var update = flag.Bool("update", false, "write what comes out as the expected.yaml of each case")

// fromDocumentation begins an input of a client that has not been run here:
// its names and values are those of the client's own pages.
const fromDocumentation = "# Made from documentation, not recorded.\n"

// TestGolden runs each folder of testdata that has an input: what is in
// before.yaml (traces, where there are any) goes in first, then input.yaml,
// and what comes out for it is compared with expected.yaml. Sent again, what
// came out comes out unchanged.
func TestGolden(t *testing.T) {
	inputs, err := filepath.Glob(filepath.Join("testdata", "*", "input.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, inputs)
	for _, input := range inputs {
		dir := filepath.Dir(input)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			p := start(t, loadConfig(t, filepath.Join(dir, "config.yaml")))
			before := filepath.Join(dir, "before.yaml")
			if _, err := os.Stat(before); err == nil {
				td, err := golden.ReadTraces(before)
				require.NoError(t, err)
				p.sendTraces(t, td)
			}
			text, err := os.ReadFile(input)
			require.NoError(t, err)
			body := strings.TrimPrefix(string(text), fromDocumentation)
			switch expected := filepath.Join(dir, "expected.yaml"); {
			case strings.HasPrefix(body, "resourceSpans:"):
				compareTraces(t, p, input, expected)
			case strings.HasPrefix(body, "resourceMetrics:"):
				compareMetrics(t, p, input, expected)
			case strings.HasPrefix(body, "resourceLogs:"):
				compareLogs(t, p, input, expected)
			default:
				t.Fatalf("%s has none of the three signals", input)
			}
		})
	}
}

func loadConfig(t *testing.T, path string) *Config {
	t.Helper()
	conf, err := confmaptest.LoadConf(path)
	require.NoError(t, err)
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, conf.Unmarshal(cfg))
	require.NoError(t, confmap.Validate(cfg))
	return cfg
}

func compareTraces(t *testing.T, p *pipelines, input, expected string) {
	t.Helper()
	in, err := golden.ReadTraces(input)
	require.NoError(t, err)
	got := p.sendTraces(t, in)
	if *update {
		require.NoError(t, golden.WriteTracesToFile(expected, got))
	}
	want, err := golden.ReadTraces(expected)
	require.NoError(t, err)
	assert.NoError(t, ptracetest.CompareTraces(want, got, ptracetest.IgnoreSpansOrder(), ptracetest.IgnoreResourceSpansOrder()))
	assert.NoError(t, ptracetest.CompareTraces(got, p.sendTraces(t, got)), "a second pass")
}

func compareMetrics(t *testing.T, p *pipelines, input, expected string) {
	t.Helper()
	in, err := golden.ReadMetrics(input)
	require.NoError(t, err)
	got := p.sendMetrics(t, in)
	if *update {
		require.NoError(t, golden.WriteMetricsToFile(expected, got, golden.SkipMetricTimestampNormalization()))
	}
	want, err := golden.ReadMetrics(expected)
	require.NoError(t, err)
	assert.NoError(t, pmetrictest.CompareMetrics(want, got, pmetrictest.IgnoreResourceMetricsOrder(),
		pmetrictest.IgnoreMetricsOrder(), pmetrictest.IgnoreMetricDataPointsOrder()))
	assert.NoError(t, pmetrictest.CompareMetrics(got, p.sendMetrics(t, got)), "a second pass")
}

func compareLogs(t *testing.T, p *pipelines, input, expected string) {
	t.Helper()
	in, err := golden.ReadLogs(input)
	require.NoError(t, err)
	got := p.sendLogs(t, in)
	if *update {
		require.NoError(t, golden.WriteLogsToFile(expected, got))
	}
	want, err := golden.ReadLogs(expected)
	require.NoError(t, err)
	assert.NoError(t, plogtest.CompareLogs(want, got, plogtest.IgnoreResourceLogsOrder()))
	assert.NoError(t, plogtest.CompareLogs(got, p.sendLogs(t, got)), "a second pass")
}
