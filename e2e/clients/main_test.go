package clients

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// The servers of the package, started by TestMain.
var (
	jaeger        *harness.Jaeger
	prometheus    *harness.Prometheus
	collector     *harness.Collector
	logs          *harness.Sink
	reproductions string
	// rootURL is where a second OTLP receiver takes spans on the path "/": of
	// exporters that were given the address without a path.
	rootURL string
)

// allowedModules is what reproduction files may call: what the examples make
// fail.
var allowedModules = []any{
	"statistics", "json", "json.decoder", "datetime",
	// The model of examples/torchtel, and that of TestReproClient.
	"regressor", "reported_model",
}

func TestMain(m *testing.M) { os.Exit(harness.RunSuite(m, start)) }

func start(s *harness.Suite) {
	// Private, as the collector wants it to be.
	reproductions = filepath.Join(s.TempDir(), "reproductions")
	jaeger = harness.StartJaeger(s)
	logs = harness.StartSink(s)
	root := fmt.Sprintf("127.0.0.1:%d", harness.FreePort(s))
	rootURL = "http://" + root
	collector = harness.StartCollector(s, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "demo.yaml"),
		Env: []string{
			"GPU_RECORDING=" + harness.Path("receiver", "gpureceiver", "testdata", "captures", "demo-2xh100.yaml"),
			"JAEGER_ENDPOINT=" + jaeger.OTLPEndpoint(),
			"LOGS_EXPORTER=otlp_grpc/logs",
			"LOGS_ENDPOINT=" + logs.Endpoint,
			"OTELCOL_ML_REPRO_DIR=" + reproductions,
		},
		Overrides: map[string]any{
			"processors::repro_gen::allowed_modules":      allowedModules,
			"processors::repro_gen::artifacts_per_minute": 1000,

			"receivers::otlp/root::protocols::http::endpoint":        root,
			"receivers::otlp/root::protocols::http::traces_url_path": "/",
			"service::pipelines::traces/in::receivers":               []any{"otlp", "otlp/root", "ml_lines"},
			"service::pipelines::logs::receivers":                    []any{"otlp", "otlp/root"},
		},
	})
	collector.AwaitHealthy(s)
	prometheus = harness.StartPrometheus(s, map[string]string{
		"otelcol-ml:8889": collector.Address(s, "exporters::prometheus"),
		"otelcol-ml:8888": collector.Address(s, harness.TelemetryPath),
	})
}

// Where the examples send to.
func overHTTP(t *testing.T) string {
	t.Helper()
	return "http://" + collector.Address(t, "receivers::otlp::protocols::http")
}

func overGRPC(t *testing.T) string {
	t.Helper()
	return "http://" + collector.Address(t, "receivers::otlp::protocols::grpc")
}

// awaitFailure returns the stored span of a failure and the reproduction that
// the collector wrote of it. Equal failures share a few artifacts, so it need
// not be this span's own.
func awaitFailure(t *testing.T, spans []harness.StoredSpan, failure harness.TrueError) (harness.StoredSpan, harness.Artifact) {
	t.Helper()
	var failed harness.StoredSpan
	for _, span := range spans {
		if span.Span.TraceID().String() == failure.TraceID && span.Span.SpanID().String() == failure.SpanID {
			failed = span
		}
	}
	require.NotNil(t, failed.Attributes, "the span %s/%s of %s is not stored", failure.TraceID, failure.SpanID, failure.Type)
	require.Equal(t, "Error", failed.Span.Status().Code().String())
	path, _ := failed.Attributes["repro.artifact.path"].(string)
	require.NotEmpty(t, path, "the span of %s has no repro.artifact.path", failure.Type)

	var found harness.Artifact
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		artifacts, err := harness.Artifacts(reproductions)
		assert.NoError(c, err)
		for _, artifact := range artifacts {
			if artifact.Group == filepath.Base(path) {
				found = artifact
				return
			}
		}
		assert.Fail(c, "no artifact yet", "group %s of %s, %d artifacts", path, failure.Type, len(artifacts))
	}, harness.ArrivalTimeout, harness.ArrivalPoll)
	return failed, found
}

// floats makes the values of a query out of counts.
func floats(counts map[string]int) map[string]float64 {
	values := map[string]float64{}
	for key, count := range counts {
		values[key] = float64(count)
	}
	return values
}

// named returns the spans of one name.
func named(spans []harness.StoredSpan, name string) []harness.StoredSpan {
	var found []harness.StoredSpan
	for _, span := range spans {
		if span.Span.Name() == name {
			found = append(found, span)
		}
	}
	return found
}

// values returns the distinct values of an attribute of the spans or their
// resources as text; spans without it count as "".
func values(spans []harness.StoredSpan, key string) map[string]int {
	counts := map[string]int{}
	for _, span := range spans {
		text := ""
		if value, ok := span.Attribute(key); ok {
			text = fmt.Sprint(value)
		}
		counts[text]++
	}
	return counts
}
