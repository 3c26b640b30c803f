package registry

import (
	"go/build"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"

	"github.com/otelcol-ml/otelcol-ml/e2e/genai"
	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor"
)

func readRegistry(t *testing.T) *Registry {
	t.Helper()
	r, wrong := Read(harness.Path("registry"))
	require.Empty(t, wrong)
	return r
}

var conventionKey = regexp.MustCompile(`attribute\.Key\("([^"]+)"\)`)

// TestWhatIsReferredToIsOfTheConventions looks the names that the registry takes from others up
// in the Go package of the conventions.
func TestWhatIsReferredToIsOfTheConventions(t *testing.T) {
	// The package has the attributes of 1.41.1: a patch version adds none.
	at, err := build.Import("go.opentelemetry.io/otel/attribute", ".", build.FindOnly)
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(at.Dir, "..", "semconv", "v1.41.0", "attribute_group.go"))
	require.NoError(t, err)
	known := make(map[string]bool)
	for _, found := range conventionKey.FindAllStringSubmatch(string(text), -1) {
		known[found[1]] = true
	}
	r := readRegistry(t)
	require.NotEmpty(t, r.References)
	for _, name := range r.References {
		assert.True(t, known[name], "the conventions have no %s", name)
	}
	for name := range r.Attributes {
		assert.False(t, known[name], "%s is of the conventions", name)
	}
}

// telemetry is what components have made of recordings.
type telemetry struct {
	traces  []ptrace.Traces
	metrics []pmetric.Metrics
	logs    []plog.Logs
}

// glob returns the files of a pattern, at least one.
func glob(t *testing.T, pattern ...string) []string {
	t.Helper()
	files, err := filepath.Glob(harness.Path(pattern...))
	require.NoError(t, err)
	require.NotEmpty(t, files, pattern)
	return files
}

// madeOfRecordings returns what ml_enrich and ml_metrics make of what LLM clients have sent,
// what ml_enrich makes of its test cases, and what tests have made sure that the receivers and
// ml_metrics write.
func madeOfRecordings(t *testing.T) *telemetry {
	t.Helper()
	made := new(telemetry)
	for _, folder := range []string{"recordings", "others"} {
		clients, err := genai.ReadRecordings(harness.Path("e2e", "genai", folder))
		require.NoError(t, err)
		require.NotEmpty(t, clients)
		for i := range clients {
			requests, err := clients[i].Requests()
			require.NoError(t, err)
			result, err := genai.Process(t.Context(), requests, t.TempDir())
			require.NoError(t, err, clients[i].Client)
			made.traces = append(made.traces, result.Spans...)
			made.metrics = append(made.metrics, result.Series)
		}
	}
	for _, path := range glob(t, "processor", "mlenrichprocessor", "testdata", "*", "case.txt") {
		made.enrich(t, filepath.Dir(path))
	}
	for _, path := range slices.Concat(
		glob(t, "receiver", "gpureceiver", "testdata", "replay", "*", "expected_*.txt"), glob(t, "receiver", "gpureceiver", "testdata", "nvml", "*.txt"),
		glob(t, "connector", "mlmetricsconnector", "testdata", "*", "expected.txt"), glob(t, "connector", "mlmetricsconnector", "testdata", "recordings", "*", "expected.txt"),
		glob(t, "e2e", "trainers", "testdata", "*", "expected.txt"),
	) {
		made.metrics = append(made.metrics, golden.ReadMetrics(t, path))
	}
	for _, path := range slices.Concat(glob(t, "receiver", "gpureceiver", "testdata", "logs", "*", "expected.txt"), glob(t, "receiver", "ncclreceiver", "testdata", "*.txt")) {
		if golden.Signal(t, path) == "logs" {
			made.logs = append(made.logs, golden.ReadLogs(t, path))
		} else {
			made.metrics = append(made.metrics, golden.ReadMetrics(t, path))
		}
	}
	return made
}

// enrich sends a test case of ml_enrich through it, with what goes before it.
func (m *telemetry) enrich(t *testing.T, folder string) {
	t.Helper()
	factory := mlenrichprocessor.NewFactory()
	cfg := factory.CreateDefaultConfig()
	if conf, err := confmaptest.LoadConf(filepath.Join(folder, "config.yaml")); err == nil {
		require.NoError(t, conf.Unmarshal(cfg))
		require.NoError(t, confmap.Validate(cfg))
	}
	set := processor.Settings{ID: component.NewID(factory.Type()), TelemetrySettings: componenttest.NewNopTelemetrySettings()}
	spans, points, records := new(consumertest.TracesSink), new(consumertest.MetricsSink), new(consumertest.LogsSink)
	traces, err := factory.CreateTraces(t.Context(), set, cfg, spans)
	require.NoError(t, err)
	metrics, err := factory.CreateMetrics(t.Context(), set, cfg, points)
	require.NoError(t, err)
	logs, err := factory.CreateLogs(t.Context(), set, cfg, records)
	require.NoError(t, err)
	parts := []component.Component{traces, metrics, logs}
	for _, part := range parts {
		require.NoError(t, part.Start(t.Context(), componenttest.NewNopHost()))
	}
	if before, err := filepath.Glob(filepath.Join(folder, "before.txt")); err == nil && len(before) > 0 {
		require.NoError(t, traces.ConsumeTraces(t.Context(), golden.ReadTraces(t, before[0])))
	}
	switch path := filepath.Join(folder, "case.txt"); golden.Signal(t, path) {
	case "traces":
		require.NoError(t, traces.ConsumeTraces(t.Context(), golden.ReadTraces(t, path)))
	case "metrics":
		require.NoError(t, metrics.ConsumeMetrics(t.Context(), golden.ReadMetrics(t, path)))
	case "logs":
		require.NoError(t, logs.ConsumeLogs(t.Context(), golden.ReadLogs(t, path)))
	}
	for _, part := range parts {
		require.NoError(t, part.Shutdown(t.Context()))
	}
	m.traces, m.metrics, m.logs = append(m.traces, spans.AllTraces()...), append(m.metrics, points.AllMetrics()...), append(m.logs, records.AllLogs()...)
}

// TestWhatIsWrittenIsInTheRegistry finds no name of this project that the registry lacks, and
// none with another type, unit or instrument.
func TestWhatIsWrittenIsInTheRegistry(t *testing.T) {
	check := NewCheck(readRegistry(t))
	check.all(madeOfRecordings(t))
	assert.Empty(t, slices.Sorted(maps.Keys(check.Findings)))
	for name := range check.Registry.Metrics {
		assert.Equal(t, !seenByDemo[name] && !unseen[name], check.Seen["metric."+name], name)
	}
}

func (c *Check) all(made *telemetry) {
	for _, td := range made.traces {
		c.Traces(td)
	}
	for _, md := range made.metrics {
		c.Metrics(md)
	}
	for _, ld := range made.logs {
		c.Logs(ld)
	}
}

// seenByDemo are the metrics that only a collector with a GPU and a run on it writes.
var seenByDemo = map[string]bool{
	"ml.gpu.price": true, "ml.run.gpu.utilization": true, "ml.gpu.idle.time": true, "ml.run.gpu.price": true,
	"ml.requests.unpriced": true,
}

// unseen are the metrics that neither shows: those of the kernel's log, what the collector
// says of its own trouble, and what people say of problems. Tests of their own read them.
var unseen = map[string]bool{"nvidia.gpu.kernel_log.state": true, "nvidia.nvswitch.sxid.errors": true, "ml.collector.notice.timestamp": true, "ml.problem.verdicts": true}

// TestWhatACollectorWritesIsInTheRegistry does the same with what the built collector makes of
// all generated systems, of GPUs on which one of them runs, and of one that fails.
func TestWhatACollectorWritesIsInTheRegistry(t *testing.T) {
	for capture, shows := range map[string]map[string]bool{"demo-2xh100.yaml": seenByDemo, "dead-gpu.yaml": {}} {
		t.Run(capture, func(t *testing.T) {
			t.Parallel()
			check := NewCheck(readRegistry(t))
			check.all(demo(t, capture, func(c *Check) (missing []string) {
				for name := range shows {
					if !c.Seen["metric."+name] {
						missing = append(missing, name)
					}
				}
				if len(shows) == 0 && !c.Seen["event.ml.problem"] {
					missing = []string{"ml.problem"}
				}
				return missing
			}))
			assert.Empty(t, slices.Sorted(maps.Keys(check.Findings)))
		})
	}
}

// demo runs the configuration of the demo with a recording of GPUs until nothing is missing.
func demo(t *testing.T, capture string, missing func(*Check) []string) *telemetry {
	t.Helper()
	sink := harness.StartSink(t)
	collector := harness.StartCollector(t, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "demo.yaml"),
		Env: []string{
			"GPU_RECORDING=" + harness.Path("receiver", "gpureceiver", "testdata", "captures", capture),
			"OTELCOL_ML_REPRO_DIR=" + t.TempDir(),
			"TRACES_EXPORTER=otlp_grpc/sink",
		},
		Overrides: map[string]any{
			"exporters::otlp_grpc/sink":                      map[string]any{"endpoint": sink.Endpoint, "tls": map[string]any{"insecure": true}},
			"service::pipelines::metrics::exporters":         []any{"ml_metrics", "otlp_grpc/sink"},
			"service::pipelines::metrics/derived::exporters": []any{"otlp_grpc/sink"},
			"service::pipelines::logs::exporters":            []any{"otlp_grpc/sink"},
			"service::pipelines::logs/derived::exporters":    []any{"otlp_grpc/sink"},
			"processors::repro_gen::sibling_wait":            "0s",
			"connectors::ml_metrics::prices": map[string]any{
				"file":     harness.Path("connector", "mlmetricsconnector", "internal", "price", "testdata", "prices.json"),
				"gpu_hour": map[string]any{"H100": 2.5},
			},
		},
	})
	collector.AwaitHealthy(t)
	harness.Generate(t, collector, harness.Workload{Seed: 3, Scenarios: "all", Duration: 4 * time.Second, Rate: 20, Ranks: 2})
	made := new(telemetry)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		made.traces, made.metrics, made.logs = sink.Traces(), sink.MetricRequests(), sink.Logs()
		check := NewCheck(readRegistry(t))
		check.all(made)
		assert.Empty(c, missing(check))
	}, time.Minute, time.Second)
	return made
}
