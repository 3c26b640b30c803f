package e2e

import (
	"context"
	"encoding/json"
	"maps"
	"math"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/e2e/dashboards"
	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// TestDashboardsOfFaults has a collector lose, refuse and drop what it can, and
// asks the panels about it that have nothing to say of one that is well.
func TestDashboardsOfFaults(t *testing.T) {
	address := func() string { return "127.0.0.1:" + strconv.Itoa(harness.FreePort(t)) }
	refusing := address()
	nowhere := map[string]any{
		"endpoint": address(),
		"tls":      map[string]any{"insecure": true},
		"timeout":  "1s",
	}
	refused := map[string]any{"receivers": []any{"otlp/refused"}, "exporters": []any{"otlp_grpc/full"}}
	with := func(keys map[string]any) map[string]any {
		exporter := maps.Clone(nowhere)
		maps.Copy(exporter, keys)
		return exporter
	}
	collector := harness.StartCollector(t, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "demo.yaml"),
		Env: []string{
			// One of its two GPUs falls off the bus.
			"GPU_RECORDING=" + harness.Path("receiver", "gpureceiver", "testdata", "captures", "dead-gpu.yaml"),
			"OTELCOL_ML_REPRO_DIR=" + t.TempDir(),
			"TRACES_EXPORTER=otlp_grpc/lost",
		},
		Overrides: map[string]any{
			// What nobody takes is given up at once, or stands in a queue that is
			// full with one.
			"exporters::otlp_grpc/lost": with(map[string]any{"retry_on_failure": map[string]any{"enabled": false}}),
			"exporters::otlp_grpc/full": with(map[string]any{"sending_queue": map[string]any{"queue_size": 1, "num_consumers": 1}}),

			"receivers::otlp/refused": map[string]any{"protocols": map[string]any{"grpc": map[string]any{"endpoint": refusing}}},

			"service::pipelines::metrics::exporters":   []any{"prometheus", "otlp_grpc/lost"},
			"service::pipelines::logs::exporters":      []any{"otlp_grpc/lost"},
			"service::pipelines::traces/refused":       refused,
			"service::pipelines::metrics/refused":      refused,
			"service::pipelines::logs/refused":         refused,
			"exporters::prometheus::metric_expiration": "5s",

			"processors::ml_guard/identities::identities":     map[string]any{"limits": map[string]any{"run": 1}},
			"connectors::ml_metrics::max_series":              400,
			"connectors::ml_metrics::max_runs":                2,
			"processors::repro_gen::sibling_wait":             "0s",
			"processors::repro_gen::artifacts_per_minute":     6,
			"processors::repro_gen::retention::max_artifacts": 1,
			"processors::repro_gen::min_free_bytes":           0,
		},
	})
	collector.AwaitHealthy(t)
	started := time.Now()
	prometheus := harness.StartPrometheus(t, map[string]string{
		"otelcol-ml:8889": collector.Address(t, "exporters::prometheus"),
		"otelcol-ml:8888": collector.Address(t, harness.TelemetryPath),
	})
	// A value that no counter has before its first fault is an increase only
	// where Prometheus has read the counter, or its absence, before.
	prometheus.AwaitSeries(t, "otelcol_process_uptime")

	sender, err := harness.NewGRPCSender(collector.Address(t, "receivers::otlp::protocols::grpc"))
	require.NoError(t, err)
	defer func() { _ = sender.Close() }()
	twice := badSpans()
	require.NoError(t, sender.Traces(t.Context(), twice))
	require.NoError(t, sender.Metrics(t.Context(), badPoints()))
	keepAsking(t, refusing)
	for range 2 {
		harness.Generate(t, collector, harness.Workload{Seed: 3, Scenarios: "all", Duration: 4 * time.Second, Rate: 20, Ranks: 2})
		require.NoError(t, sender.Traces(t.Context(), twice), "delivered already")
	}

	boards, api := loadDashboards(t), apiOf(t, prometheus)
	known := map[string]bool{}
	for _, a := range targetsOf(boards) {
		known[a.String()] = true
	}
	for _, name := range dashboards.OnlyOfFaults {
		assert.True(t, known[name], "no query is %s", name)
	}
	for name := range dashboards.NeverHere {
		assert.True(t, known[name], "no query is %s", name)
	}
	for _, a := range targetsOf(boards) {
		for _, name := range dashboards.OnlyOfFaults {
			if a.String() == name {
				t.Run(name, func(t *testing.T) { awaitValues(t, api, a, started) })
			}
		}
		if a.String() == dashboards.RemovedArtifacts {
			t.Run(a.String(), func(t *testing.T) { awaitAny(t, api, a, started) })
		}
	}
	t.Run("marks", func(t *testing.T) {
		for _, board := range boards {
			for _, mark := range board.Annotations.List {
				if mark.Expr != "" {
					_, err := dashboards.Ask(t.Context(), api, board, dashboards.Target{Expr: mark.Expr}, viewSince(started))
					assert.NoError(t, err, "%s: %s", board.Name, mark.Name)
				}
			}
		}
	})
}

// keepAsking sends again and again, to the end of the test, to where all but one
// request is refused, so that the counters of it go on rising.
func keepAsking(t *testing.T, endpoint string) {
	t.Helper()
	sender, err := harness.NewGRPCSender(endpoint)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	var asking sync.WaitGroup
	asking.Go(func() {
		for pause := time.NewTicker(200 * time.Millisecond); ; {
			select {
			case <-ctx.Done():
				pause.Stop()
				return
			case <-pause.C:
				_ = sender.Traces(ctx, badSpans())
				_ = sender.Metrics(ctx, badPoints())
				logs := plog.NewLogs()
				logs.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty().Body().SetStr("refused")
				_ = sender.Logs(ctx, logs)
			}
		}
	})
	t.Cleanup(func() {
		stop()
		asking.Wait()
		_ = sender.Close()
	})
}

// badSpans are a loss that is no number and an error that has a secret.
func badSpans() ptrace.Traces {
	traces := ptrace.NewTraces()
	resource := traces.ResourceSpans().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", "diverges")
	resource.Resource().Attributes().PutStr("ml.run.id", "diverges-1")
	span := resource.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.SetTraceID(pcommon.TraceID{1})
	span.SetSpanID(pcommon.SpanID{1})
	span.SetName("batch")
	now := time.Now()
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(now.Add(-time.Second)))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(now))
	span.Attributes().PutStr("ml.phase", "batch")
	span.Attributes().PutDouble("ml.loss", math.NaN())
	span.Attributes().PutStr("ml.loss.scope", "batch")
	// A failed attempt without output has no rate.
	span.Attributes().PutInt("gen_ai.usage.output_tokens", 0)
	// An id cannot have white space.
	span.Attributes().PutStr("session.id", "two words")
	span.Attributes().PutStr("password", "correct horse")
	span.Status().SetCode(ptrace.StatusCodeError)
	event := span.Events().AppendEmpty()
	event.SetName("exception")
	event.Attributes().PutStr("exception.type", "ValueError")
	event.Attributes().PutStr("exception.message", "loss is not finite")
	return traces
}

// badPoints have two labels that Prometheus cannot tell apart.
func badPoints() pmetric.Metrics {
	metrics := pmetric.NewMetrics()
	metric := metrics.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	metric.SetName("queue.length")
	point := metric.SetEmptyGauge().DataPoints().AppendEmpty()
	point.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	point.SetIntValue(1)
	point.Attributes().PutStr("a.b", "1")
	point.Attributes().PutStr("a_b", "2")
	return metrics
}

// exploreQuery reads the search for traces out of Explore's panes.
func exploreQuery(t *testing.T, panes string) (service, tags string, ok bool) {
	t.Helper()
	var decoded map[string]struct {
		Queries []struct{ Service, Tags string }
	}
	require.NoError(t, json.Unmarshal([]byte(panes), &decoded), panes)
	for _, pane := range decoded {
		for _, query := range pane.Queries {
			return query.Service, strings.TrimSpace(query.Tags), true
		}
	}
	return "", "", false
}
