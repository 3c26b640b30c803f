package mlsampleprocessor

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
	"github.com/otelcol-ml/otelcol-ml/processor/mlsampleprocessor/internal/sample"
)

// TestGolden runs each folder of testdata, one for each rule: what is in case.txt is
// received in one request, and +ml.sample.count marks the spans that are sent. Keys that config.yaml
// does not have keep nothing for themselves. A new case is a case.txt without marks; run
// with -update and read them.
func TestGolden(t *testing.T) {
	cases, err := filepath.Glob(filepath.Join("testdata", "*", "case.txt"))
	require.NoError(t, err)
	require.NotEmpty(t, cases)
	for _, path := range cases {
		dir := filepath.Dir(path)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			b := newBed(t, loadConfig(t, filepath.Join(dir, "config.yaml")))
			td := golden.ReadTraces(t, path)
			b.clock = td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).EndTimestamp().AsTime()
			b.consume(t, td)
			b.pass(t, 2*b.cfg.Wait)
			sent := make(map[string]ptrace.Span)
			for _, span := range b.end(t) {
				sent[span.TraceID().String()+span.SpanID().String()] = span
			}
			for _, rs := range td.ResourceSpans().All() {
				for _, ss := range rs.ScopeSpans().All() {
					for _, span := range ss.Spans().All() {
						if kept, ok := sent[span.TraceID().String()+span.SpanID().String()]; ok {
							kept.CopyTo(span)
						}
					}
				}
			}
			golden.CompareTraces(t, path, td)
		})
	}
}

func loadConfig(t *testing.T, path string) *Config {
	t.Helper()
	conf := confmap.New()
	if _, err := os.Stat(path); err == nil {
		conf, err = confmaptest.LoadConf(path)
		require.NoError(t, err)
	}
	cfg := only(sample.Steps{})
	cfg.Calls = sample.Calls{OneIn: maxOneIn}
	require.NoError(t, conf.Unmarshal(cfg))
	return cfg
}
