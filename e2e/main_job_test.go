package e2e

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

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
	sendChats(t, j.collector)
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
			"connectors::ml_metrics::prices":             map[string]any{"file": pricesOfChats(t), "gpu_hour": map[string]any{"H100": 2.5}},
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

// pricesOfChats returns a file with the price of the model that sendChats asks.
func pricesOfChats(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "prices.json")
	const prices = `[{"id": "openai", "models": [{"match": {"equals": "small"}, "prices": {"input_mtok": 1, "output_mtok": 2}}]}]`
	require.NoError(t, os.WriteFile(file, []byte(prices), 0o600))
	return file
}

// sendChats sends a request to a model each second until the test ends, because no
// scenario has tokens of a model that is named.
func sendChats(t *testing.T, collector *harness.Collector) {
	t.Helper()
	sender, err := harness.NewGRPCSender(collector.Address(t, "receivers::otlp::protocols::grpc"))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		running.Wait()
		assert.NoError(t, sender.Close())
	})
	running.Go(func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for n := byte(1); ; n++ {
			select {
			case now := <-ticker.C:
				if sender.Traces(ctx, chatAt(now, n)) != nil {
					return // the collector has ended
				}
			case <-ctx.Done():
				return
			}
		}
	})
}

// chatAt is the n-th request to a model.
func chatAt(end time.Time, n byte) ptrace.Traces {
	traces := ptrace.NewTraces()
	resource := traces.ResourceSpans().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", "assistant")
	span := resource.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.SetName("chat small")
	span.SetKind(ptrace.SpanKindClient)
	span.SetTraceID(pcommon.TraceID{15: 1, 0: n})
	span.SetSpanID(pcommon.SpanID{7: 1, 0: n})
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(end.Add(-time.Second)))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(end))
	span.Attributes().PutStr("gen_ai.operation.name", "chat")
	span.Attributes().PutStr("gen_ai.provider.name", "openai")
	span.Attributes().PutStr("gen_ai.request.model", "small")
	span.Attributes().PutInt("gen_ai.usage.input_tokens", 1000)
	span.Attributes().PutInt("gen_ai.usage.output_tokens", 100)
	return traces
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
