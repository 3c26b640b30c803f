package e2e

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// job is the main job while it runs: five systems and a GPU recording in,
// Jaeger, Prometheus and reproduction files out.
type job struct {
	jaeger        *harness.Jaeger
	logs          *harness.Sink
	prometheus    *harness.Prometheus
	collector     *harness.Collector
	reproductions string
	// started is when Prometheus began to read.
	started time.Time
	// sent is what the collector has accepted of the first workload, and
	// stored the spans of it as Jaeger has them.
	sent   *sentlog.Log
	stored store
}

// The two workloads differ in their seed, so that no id is sent twice.
var (
	// The first runs long enough for epochs to end and for everything to be
	// scraped more than once.
	firstWorkload = harness.Workload{Seed: 1, Scenarios: "all", Duration: 20 * time.Second, Rate: 5, Ranks: 2}
	// The second ends right before the collector does.
	lastWorkload = harness.Workload{Seed: 2, Scenarios: "all", Duration: 3 * time.Second, Rate: 20, Ranks: 2}
)

// stepTokens is how many tokens a step of all ranks of the training job has.
const stepTokens = 8192

// TestMainJob runs the demo's configuration between real servers. The parts
// share one run: what it takes to start everything is most of the time.
func TestMainJob(t *testing.T) {
	j := startJob(t)
	harness.SendChats(t, j.collector)
	j.sent = harness.Generate(t, j.collector, firstWorkload)
	j.stored = j.jaeger.AwaitSpans(t, j.sent.Spans)

	t.Run("spans are stored as they were sent", func(t *testing.T) { checkProducersData(t, j.sent.Spans, j.stored) })
	for name, part := range map[string]func(*testing.T, *job){
		"calls":         testCalls,
		"traces":        testTraces,
		"logs":          testLogs,
		"metrics":       testMetrics,
		"training":      testTraining,
		"rules":         testRules,
		"gpus":          testGPUs,
		"dashboards":    testDashboards,
		"reproductions": testReproductions,
		"documents":     testDocumentedQueries,
	} {
		t.Run(name, func(t *testing.T) { part(t, j) })
	}
	t.Run("nothing is lost at the end", func(t *testing.T) { testEnd(t, j) })
}

func startJob(t *testing.T) *job {
	t.Helper()
	j := &job{reproductions: t.TempDir()}
	j.jaeger = harness.StartJaeger(t)
	j.logs = harness.StartSink(t)
	_, servers := harness.StartInferenceServers(t, true)
	j.collector = harness.StartCollector(t, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "demo.yaml"),
		Merged: []string{harness.Path("distribution", "config", "servers.yaml")},
		Env: append(servers,
			"GPU_RECORDING="+harness.Path("receiver", "gpureceiver", "testdata", "captures", "demo-2xh100.yaml"),
			"JAEGER_ENDPOINT="+j.jaeger.OTLPEndpoint(),
			"LOGS_EXPORTER=otlp_grpc/logs",
			"LOGS_ENDPOINT="+j.logs.Endpoint,
			"OTELCOL_ML_REPRO_DIR="+j.reproductions,
		),
		Overrides: map[string]any{
			// The workload fails more often than a system in production, and
			// which failures the limit drops is not what this test is about.
			"processors::repro_gen::artifacts_per_minute": 1000,
			// TorchTel does not say how many tokens its steps have.
			"processors::ml_enrich::training": []any{map[string]any{
				"service": "torchtel", "per": "job", "tokens_per_step": stepTokens, "flops_per_token": 1e9,
			}},
			// The workload ends long before its questions do.
			"connectors::ml_metrics::stall_timeout":      "5m",
			"connectors::ml_metrics::first_step_timeout": "30m",
			"connectors::ml_metrics::idle_timeout":       "30m",
			"connectors::ml_metrics::prices":             map[string]any{"file": harness.PricesOfChats(t), "gpu_hour": map[string]any{"H100": 2.5}},
		},
	})
	j.collector.AwaitHealthy(t)
	j.started = time.Now()
	j.prometheus = harness.StartPrometheus(t, map[string]string{
		"otelcol-ml:8889": j.collector.Address(t, "exporters::prometheus"),
		"otelcol-ml:8888": j.collector.Address(t, harness.TelemetryPath),
	})
	return j
}

// testEnd asks the collector to end right behind the last request that it has
// accepted. Whatever it still holds then has to arrive.
func testEnd(t *testing.T, j *job) {
	sent := harness.Generate(t, j.collector, lastWorkload)
	code := j.collector.Stop(t)
	assert.Zero(t, code, "exit code after SIGTERM")
	assert.Empty(t, harness.LogErrors(j.collector.Output()), "errors in the collector's log")

	require.NotEmpty(t, sent.Spans)
	stored := j.jaeger.AwaitSpans(t, sent.Spans)
	checkProducersData(t, sent.Spans, stored)
	for id, trace := range harness.ByTrace(sent.Spans) {
		assert.Len(t, stored[id], len(trace), "trace %s has spans that nobody sent", id)
	}
	awaitLogs(t, j.logs, slices.Concat(j.sent.Logs, sent.Logs))
}
