package reprogenprocessor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap/confmaptest"

	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
)

// TestGolden runs each folder of testdata/cases: case.txt goes in with config.yaml,
// and marks with a + what is added; expected_artifacts.txt is what was written, the
// template and the times left out. A new case is a new folder.
func TestGolden(t *testing.T) {
	eachCase(t, func(t *testing.T, folder string, cfg *Config) {
		path := filepath.Join(folder, "case.txt")
		sink := produce(t, cfg, golden.ReadTraces(t, path))
		golden.CompareTraces(t, path, sink.AllTraces()[0])
		golden.Compare(t, filepath.Join(folder, "expected_artifacts.txt"), written(t, cfg))
	})
}

// eachCase runs a test for each folder of testdata/cases, with its configuration.
func eachCase(t *testing.T, test func(t *testing.T, folder string, cfg *Config)) {
	cases, err := os.ReadDir(filepath.Join("testdata", "cases"))
	require.NoError(t, err)
	require.NotEmpty(t, cases)
	for _, c := range cases {
		t.Run(c.Name(), func(t *testing.T) {
			folder := filepath.Join("testdata", "cases", c.Name())
			cfg := testConfig(t)
			cm, err := confmaptest.LoadConf(filepath.Join(folder, "config.yaml"))
			require.NoError(t, err)
			sub, err := cm.Sub(component.MustNewID("repro_gen").String())
			require.NoError(t, err)
			require.NoError(t, sub.Unmarshal(cfg))
			test(t, folder, cfg)
		})
	}
}

// written lists what a directory holds, without what differs from run to run.
func written(t *testing.T, cfg *Config) string {
	var b strings.Builder
	for _, a := range artifacts(t, cfg) {
		name := filepath.Base(a)
		head, spec := scriptText(t, a)
		group := filepath.Base(filepath.Dir(a))
		for _, part := range []struct{ file, content string }{
			{"repro.py: SPEC_TEXT", head + spec + "\n"}, {"trace.json", text(t, a, "trace.json")}, {"report.md", text(t, a, "report.md")},
		} {
			b.WriteString("=== " + group + "/TIME" + name[16:] + "/" + part.file + "\n")
			for line := range strings.Lines(part.content) {
				if !strings.HasPrefix(line, "- seen at ") {
					b.WriteString(line)
				}
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}
