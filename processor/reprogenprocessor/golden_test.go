package reprogenprocessor

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/golden"
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/ptracetest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap/confmaptest"
)

var update = flag.Bool("update", false, "write the expected files of the golden cases")

// TestGolden runs each folder of testdata/cases: config.yaml and input.yaml
// go in; expected.yaml is what is passed on, and expected_artifacts.txt what
// was written, the template and the times left out. A new case is a new folder.
func TestGolden(t *testing.T) {
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
			input, err := golden.ReadTraces(filepath.Join(folder, "input.yaml"))
			require.NoError(t, err)

			sink := produce(t, cfg, input)
			got := sink.AllTraces()[0]
			written := written(t, cfg)
			if *update {
				require.NoError(t, golden.WriteTraces(t, filepath.Join(folder, "expected.yaml"), got))
				require.NoError(t, os.WriteFile(filepath.Join(folder, "expected_artifacts.txt"), []byte(written), 0o600))
			}
			want, err := golden.ReadTraces(filepath.Join(folder, "expected.yaml"))
			require.NoError(t, err)
			require.NoError(t, ptracetest.CompareTraces(want, got))
			assert.Equal(t, text(t, folder, "expected_artifacts.txt"), written)
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
