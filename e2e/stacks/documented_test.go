package stacks

import (
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// jaeger is one for all stacks: what they send differs in its trace ids.
var jaeger *harness.Jaeger

func TestMain(m *testing.M) {
	os.Exit(harness.RunSuite(m, func(s *harness.Suite) { jaeger = harness.StartJaeger(s) }))
}

// awaitStored waits until Jaeger has every span that was sent, and returns
// them.
func awaitStored(t *testing.T, sent *sentlog.Log) []harness.StoredSpan {
	t.Helper()
	wanted := map[string][]string{}
	for _, span := range sent.Spans {
		wanted[span.TraceID] = append(wanted[span.TraceID], span.SpanID)
	}
	require.NotEmpty(t, wanted)
	var stored []harness.StoredSpan
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		for id, spans := range maps.Clone(wanted) {
			traces, err := jaeger.Trace(t.Context(), id)
			if !assert.NoError(c, err) {
				return
			}
			found, err := harness.SpansByID(traces)
			assert.NoError(c, err)
			if !assert.Len(c, found, len(spans), "spans of trace %s", id) {
				return
			}
			for _, span := range found {
				stored = append(stored, span)
			}
			delete(wanted, id)
		}
	}, harness.ArrivalTimeout, harness.ArrivalPoll)
	return stored
}

// workload returns what a client of one system sends in some seconds. Its
// metrics come each second; clients' own have a minute.
func workload(scenario string, seed int64) harness.Workload {
	return harness.Workload{
		Seed: seed, Scenarios: scenario, Duration: 3 * time.Second, Rate: 25, Ranks: 1, MetricsInterval: time.Second,
	}
}

// untilStopped is a workload that goes on until a query has given data: a rate
// needs two scrapes while its counter rises, whatever these take.
func untilStopped(scenario string, seed int64) harness.Workload {
	workload := workload(scenario, seed)
	workload.Duration = 0
	return workload
}

// unchanged expects a stock configuration to pass spans on as they came.
func unchanged(t *testing.T, sent *sentlog.Log, stored []harness.StoredSpan) {
	t.Helper()
	attributes := map[string]sentlog.Attributes{}
	for _, span := range sent.Spans {
		attributes[span.SpanID] = span.Attributes
	}
	for _, span := range stored {
		assert.Len(t, span.Attributes, len(attributes[span.Span.SpanID().String()]), "attributes of %s", span.Span.Name())
	}
}

func names(spans []harness.StoredSpan) map[string]bool {
	names := map[string]bool{}
	for _, span := range spans {
		names[span.Span.Name()] = true
	}
	return names
}

// TestTorchTel is the stack of TorchTel's docker folder.
func TestTorchTel(t *testing.T) {
	t.Parallel()
	s := Start(t, "torchtel", jaeger, nil)
	// OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:11000
	sent := harness.GenerateTo(t, harness.Endpoints{HTTP: "http://" + s.Published(t, 11000)}, workload("torchtel", 11))
	// Begun now, it has all of it with its first scrape.
	prometheus := s.StartPrometheus(t)

	stored := awaitStored(t, sent)
	unchanged(t, sent, stored)
	for _, name := range []string{"GPT.forward", "AdamW.step", "autograd.backward", "dataloader.next"} {
		assert.True(t, names(stored)[name], "no span %s", name)
	}
	for _, query := range []string{"train_step_count_total", "model_parameters", "gpu_memory_bytes"} {
		AwaitQuery(t, prometheus, query, func(c *assert.CollectT, sample harness.Sample) {
			assert.Equal(c, "otel-collector", sample.Labels["job"])
			assert.Equal(c, "torchtel", sample.Labels["exported_job"])
			assert.Positive(c, sample.Value)
		})
	}
	_, err := net.ResolveTCPAddr("tcp", s.Published(t, 8889))
	require.NoError(t, err, "the documents publish the metrics too")
	s.Stop(t)
}

// TestTaskWeaver is the stack of TaskWeaver's tracing folder.
func TestTaskWeaver(t *testing.T) {
	t.Parallel()
	s := Start(t, "taskweaver", jaeger, nil)
	prometheus := s.StartPrometheus(t)
	// "tracing.endpoint": "http://127.0.0.1:4317"
	client := harness.StartGenerator(t, harness.Endpoints{GRPC: s.Published(t, 4317)}, untilStopped("taskweaver", 12))

	for _, query := range []string{
		"increase(prompt_size_total[10m])",
		`prompt_size_total{direction="input"}`,
		`prompt_size_total{direction="output"}`,
	} {
		AwaitQuery(t, prometheus, query, func(c *assert.CollectT, sample harness.Sample) {
			assert.Equal(c, "taskweaver.otlp.tracer", sample.Labels["exported_job"])
			assert.Positive(c, sample.Value)
		})
	}

	sent := client.Stop(t)
	stored := awaitStored(t, sent)
	unchanged(t, sent, stored)
	assert.True(t, names(stored)["Planner.reply"])
	for _, span := range stored {
		if span.Span.Name() == "Planner.reply" {
			assert.Contains(t, span.Attributes, "prompt_size")
			assert.Contains(t, span.Attributes, "output_size")
		}
	}
	s.Stop(t)
}

// TestTuFT has what TuFT's documents ask of a collector, and their panels as
// PromQL: the median of training throughput and the rate of sampling requests,
// both by base model.
func TestTuFT(t *testing.T) {
	t.Parallel()
	s := Start(t, "tuft", jaeger, nil)
	prometheus := s.StartPrometheus(t)
	// TUFT_OTLP_ENDPOINT=http://localhost:4317
	client := harness.StartGenerator(t, harness.Endpoints{GRPC: s.Published(t, 4317)}, untilStopped("tuft", 15))

	for _, query := range []string{
		"histogram_quantile(0.5, sum by (base_model, le) (rate(tuft_training_tokens_per_second_per_second_bucket[5m])))",
		"sum by (base_model) (rate(tuft_sampling_requests_total[5m]))",
	} {
		AwaitQuery(t, prometheus, query, func(c *assert.CollectT, sample harness.Sample) {
			assert.NotEmpty(c, sample.Labels["base_model"])
			assert.Positive(c, sample.Value)
		})
	}

	sent := client.Stop(t)
	stored := awaitStored(t, sent)
	unchanged(t, sent, stored)
	keys := map[string]string{}
	for _, span := range stored {
		for _, key := range []string{"tuft.session_id", "tuft.training_run_id", "tuft.sampling_session_id"} {
			if value, ok := span.Attributes[key].(string); ok && value != "" {
				keys[key] = value
			}
		}
	}
	require.Len(t, keys, 3, "the keys that traces are filtered by")
	for key, value := range keys {
		found, err := jaeger.Search(t.Context(), "tuft", map[string]string{key: value}, 10)
		require.NoError(t, err)
		assert.NotEmpty(t, found, "Jaeger finds no trace by %s", key)
	}

	require.NotEmpty(t, sent.Logs)
	assert.Contains(t, s.Output(), `"otelcol.signal": "logs"`, "the debug exporter has not seen a log record")
	s.Stop(t)
}

// exposition is what telemetry_metrics makes of some of the metrics that
// Snakepit 0.13.0 defines, written after its source. It has no summaries.
const exposition = `# TYPE snakepit_grpc_worker_executions counter
snakepit_grpc_worker_executions{worker_id="pool_worker_1",command="predict"} 7
# TYPE snakepit_heartbeat_pings counter
snakepit_heartbeat_pings{worker_id="pool_worker_1"} 40
`

// TestSnakepit has what Snakepit's documents ask of a collector, with the
// Prometheus endpoint of the application as a target of the collector's own.
func TestSnakepit(t *testing.T) {
	t.Parallel()
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = io.WriteString(w, exposition)
	}))
	t.Cleanup(app.Close)
	s := Start(t, "snakepit", jaeger, map[string]string{"app:9568": strings.TrimPrefix(app.URL, "http://")})
	prometheus := s.StartPrometheus(t)
	// exporters: %{otlp: %{endpoint: "http://collector:4318"}}
	endpoint, found := s.Resolve(t, "collector:4318")
	require.True(t, found)
	sent := harness.GenerateTo(t, harness.Endpoints{HTTP: "http://" + endpoint}, workload("snakepit", 13))

	stored := awaitStored(t, sent)
	unchanged(t, sent, stored)
	assert.True(t, names(stored)["BridgeService/ExecuteTool"], "no span of a worker")
	AwaitQuery(t, prometheus, "snakepit_grpc_worker_executions_total", func(c *assert.CollectT, sample harness.Sample) {
		assert.InDelta(c, 7, sample.Value, 0)
	})
	s.Stop(t)
}

// TestFX posts spans to the documented endpoint as it is, without a path.
func TestFX(t *testing.T) {
	t.Parallel()
	s := Start(t, "fx", jaeger, nil)
	// setup_tracing(otlp_endpoint="http://localhost:4318")
	endpoint := "http://" + s.Published(t, 4318)
	sent := harness.GenerateTo(t, harness.Endpoints{HTTP: endpoint, FX: endpoint}, workload("fx", 14))
	stored := awaitStored(t, sent)
	unchanged(t, sent, stored)
	s.Stop(t)
}
