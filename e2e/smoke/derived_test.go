package smoke

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// chats are requests of a service to models, each a trace of its own.
func chats(service string, models ...string) ptrace.Traces {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", service)
	spans := rs.ScopeSpans().AppendEmpty().Spans()
	now := time.Now()
	for i, model := range models {
		span := spans.AppendEmpty()
		id := uint64(now.UnixNano()) + uint64(i) // #nosec G115 -- not negative
		var trace pcommon.TraceID
		var self pcommon.SpanID
		for b := range 8 {
			trace[b], self[b] = byte(id>>(8*b)), byte(id>>(8*b))
		}
		span.SetTraceID(trace)
		span.SetSpanID(self)
		span.SetKind(ptrace.SpanKindClient)
		span.SetName("chat " + model)
		span.SetStartTimestamp(pcommon.NewTimestampFromTime(now.Add(-time.Second)))
		span.SetEndTimestamp(pcommon.NewTimestampFromTime(now))
		span.Attributes().PutStr("gen_ai.operation.name", "chat")
		span.Attributes().PutStr("gen_ai.provider.name", "openai")
		span.Attributes().PutStr("gen_ai.request.model", model)
		span.Attributes().PutInt("gen_ai.usage.input_tokens", 7)
		span.Attributes().PutInt("gen_ai.usage.output_tokens", 5)
	}
	return td
}

func (a *agentCollector) sendTraces(t *testing.T, td ptrace.Traces) {
	t.Helper()
	require.NoError(t, a.sender.Traces(t.Context(), td))
}

func (a *agentCollector) scrape(c *assert.CollectT, t *testing.T) []harness.Sample {
	samples, err := harness.Scrape(t.Context(), a.Address(t, "exporters::prometheus"))
	assert.NoError(c, err)
	return samples
}

// TestSeriesThatExpireAreGone has several series of one metric expire at once
// while others go on. The exporter would show them for five minutes more.
func TestSeriesThatExpireAreGone(t *testing.T) {
	t.Parallel()
	a := startAgent(t, map[string]any{"connectors::ml_metrics::metrics_expiration": "3s"})
	a.sendTraces(t, chats("brief", "m1", "m2", "m3", "m4", "m5"))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		a.sendTraces(t, chats("lasting", "m1"))
		assert.Len(c, harness.Select(a.scrape(c, t), "ml_requests_total", harness.Labels{"job": "brief"}), 5)
	}, arrival, poll)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		a.sendTraces(t, chats("lasting", "m1"))
		samples := a.scrape(c, t)
		for _, sample := range samples {
			assert.False(c, strings.HasPrefix(sample.Labels["__name__"], "ml_") && sample.Labels["job"] == "brief", "%v", sample.Labels)
		}
		assert.Len(c, harness.Select(samples, "ml_requests_total", harness.Labels{"job": "lasting"}), 1)
	}, arrival, poll)
	a.sendTraces(t, chats("brief", "m1"))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		a.sendTraces(t, chats("lasting", "m1"))
		found := harness.Select(a.scrape(c, t), "ml_requests_total", harness.Labels{"job": "brief"})
		if assert.Len(c, found, 1) {
			assert.InDelta(c, 1, found[0].Value, 0, "it begins anew")
		}
	}, arrival, poll)
}

// TestConventionsHaveOneWriter has two services, one of which sends a metric of
// the GenAI conventions itself.
func TestConventionsHaveOneWriter(t *testing.T) {
	t.Parallel()
	a := startAgent(t, map[string]any{
		"connectors::ml_metrics::genai_metrics": true,
		"service::pipelines::metrics::exporters": []string{
			"prometheus", "ml_metrics",
		},
	})
	const sent = 3
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "instrumented")
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("gen_ai.client.token.usage")
	m.SetUnit("{token}")
	histogram := m.SetEmptyHistogram()
	histogram.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	point := histogram.DataPoints().AppendEmpty()
	point.SetCount(sent)
	point.SetSum(21)
	point.ExplicitBounds().FromRaw([]float64{1, 4})
	point.BucketCounts().FromRaw([]uint64{0, 0, sent})
	point.Attributes().PutStr("gen_ai.token.type", "input")

	a.sendTraces(t, chats("instrumented", "m1"))
	a.sendTraces(t, chats("plain", "m1"))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		point.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
		a.send(t, md)
		samples := a.scrape(c, t)
		usage := harness.Select(samples, "gen_ai_client_token_usage_count", harness.Labels{"job": "instrumented"})
		if assert.Len(c, usage, 1, "the client's own alone") {
			assert.InDelta(c, sent, usage[0].Value, 0)
		}
		assert.Len(c, harness.Select(samples, "gen_ai_client_token_usage_count", harness.Labels{"job": "plain"}), 2, "input and output")
		for _, service := range []string{"instrumented", "plain"} {
			assert.Len(c, harness.Select(samples, "gen_ai_client_operation_duration_seconds_count", harness.Labels{"job": service}), 1, service)
		}
	}, arrival, poll)
}

// TestEqualResponseIDsCount has a mock that states one response id for all answers and
// fails at times, and one of its requests reported by two instrumentations: Prometheus
// has each request once, and the page says what it did not count.
func TestEqualResponseIDsCount(t *testing.T) {
	t.Parallel()
	a := startAgent(t, nil)
	const answers, failures = 101, 11
	td := chats("mocked", slices.Repeat([]string{"m1"}, answers+failures)...)
	first := td.ResourceSpans().At(0).ScopeSpans().At(0)
	first.Scope().SetName("client")
	for i, span := range first.Spans().All() {
		if i < answers {
			span.Attributes().PutStr("gen_ai.response.id", "chatcmpl-1")
		} else {
			span.Attributes().Remove("gen_ai.usage.output_tokens")
			span.Attributes().Remove("gen_ai.usage.input_tokens")
			span.Status().SetCode(ptrace.StatusCodeError)
		}
	}
	second := chats("mocked", "m1").ResourceSpans().At(0).ScopeSpans().At(0)
	second.Scope().SetName("framework")
	second.Spans().At(0).Attributes().PutStr("gen_ai.response.id", "chatcmpl-1")
	a.sendTraces(t, td)
	again := ptrace.NewTraces()
	td.ResourceSpans().At(0).Resource().CopyTo(again.ResourceSpans().AppendEmpty().Resource())
	second.CopyTo(again.ResourceSpans().At(0).ScopeSpans().AppendEmpty())
	a.sendTraces(t, again)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		samples := a.scrape(c, t)
		for name, want := range map[string]float64{"ml_requests_total": answers + failures, "ml_errors_total": failures} {
			sum := 0.0
			for _, sample := range harness.Select(samples, name, harness.Labels{"job": "mocked"}) {
				sum += sample.Value
			}
			assert.InDelta(c, want, sum, 0, name)
		}
		response, err := http.Get("http://" + a.Address(t, "exporters::ml_view") + "/api/v1/state") //nolint:noctx // it ends with the test
		if !assert.NoError(c, err) {
			return
		}
		defer func() { _ = response.Body.Close() }()
		state, err := io.ReadAll(response.Body)
		assert.NoError(c, err)
		assert.Contains(c, string(state), "Requests to models that were reported twice, and count once")
	}, arrival, poll)
}

// TestExemplarsReachPrometheus reads what a Prometheus with exemplar storage
// would.
func TestExemplarsReachPrometheus(t *testing.T) {
	t.Parallel()
	a := startAgent(t, nil)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		td := chats("exemplary", "m1")
		trace := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).TraceID().String()
		a.sendTraces(t, td)
		assert.EventuallyWithT(c, func(c *assert.CollectT) {
			exposition := openMetrics(c, t, a.Address(t, "exporters::prometheus"))
			for _, metric := range []string{"ml_tokens_total", "ml_request_token_throughput_per_second_bucket"} {
				assert.Regexp(c, `(?m)^`+metric+`\{.*exemplary.*# \{.*trace_id="`+trace, exposition)
			}
		}, 5*time.Second, poll)
	}, arrival, poll)
}

// TestARunThatHangsBeforeItsFirstStep has a rank that sends metrics, holds a GPU and
// makes no step, behind everything that the shipped configuration does to metrics.
func TestARunThatHangsBeforeItsFirstStep(t *testing.T) {
	t.Parallel()
	a := startAgent(t, map[string]any{"connectors::ml_metrics::first_step_timeout": "2s", "connectors::ml_metrics::stall_timeout": "1s"})
	md, _ := gaugeOf("train.loss.scale", 1, 0)
	resource := md.ResourceMetrics().At(0).Resource().Attributes()
	resource.PutStr("service.name", "trainer")
	resource.PutStr("ml.run.id", "hung")
	resource.PutInt("ml.rank.global", 0)
	gpu := md.ResourceMetrics().AppendEmpty()
	gpu.Resource().Attributes().PutStr("host.name", "gpu-node-1")
	held := gpu.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	held.SetName("nvidia.gpu.workload.memory.usage")
	held.SetUnit("By")
	held.SetEmptySum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	point := held.Sum().DataPoints().AppendEmpty()
	point.SetIntValue(1 << 30)
	point.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	point.Attributes().PutStr("ml.run.id", "hung")
	point.Attributes().PutStr("hw.id", "GPU-1")
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		a.send(t, md)
		found := harness.Select(a.scrape(c, t), "ml_run_state", harness.Labels{
			"job": "trainer", "ml_run_id": "hung", "ml_run_state": "stalled",
		})
		if assert.Len(c, found, 1) {
			assert.InDelta(c, 1, found[0].Value, 0)
		}
	}, arrival, poll)
}

func openMetrics(c *assert.CollectT, t *testing.T, address string) string {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", http.NoBody)
	require.NoError(c, err)
	request.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	response, err := http.DefaultClient.Do(request)
	require.NoError(c, err)
	defer func() { assert.NoError(c, response.Body.Close()) }()
	body, err := io.ReadAll(response.Body)
	require.NoError(c, err)
	return string(body)
}

// TestSameSeriesWithAndWithoutAQueue sends what real clients sent. One
// ml_metrics gets it from ml_enrich in the same call and reads canonical names
// alone; the other gets it by way of a batch and reads everything.
func TestSameSeriesWithAndWithoutAQueue(t *testing.T) {
	t.Parallel()
	direct, queued := harness.StartSink(t), harness.StartSink(t)
	config := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `
receivers:
  otlp: {protocols: {grpc: {endpoint: "127.0.0.1:4317"}}}
processors:
  ml_enrich:
  batch:
connectors:
  forward:
  ml_metrics/direct: {genai_metrics: true}
  ml_metrics/queued: {genai_metrics: true}
exporters:
  otlp_grpc/direct: {endpoint: "%s", tls: {insecure: true}}
  otlp_grpc/queued: {endpoint: "%s", tls: {insecure: true}}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], processors: [ml_enrich], exporters: [ml_metrics/direct, forward]}
    traces/queued: {receivers: [forward], processors: [batch], exporters: [ml_metrics/queued]}
    metrics/direct: {receivers: [ml_metrics/direct], exporters: [otlp_grpc/direct]}
    metrics/queued: {receivers: [ml_metrics/queued], exporters: [otlp_grpc/queued]}
`, direct.Endpoint, queued.Endpoint), 0o600))
	collector := harness.StartCollector(t, harness.CollectorOptions{Config: config})
	sender, err := harness.NewGRPCSender(collector.Address(t, "receivers::otlp::protocols::grpc"))
	require.NoError(t, err)
	files, err := filepath.Glob(harness.Path("examples", "*", "recording", "traces.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for line := range bytes.Lines(text) {
			td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(line)
			require.NoError(t, err)
			require.NoError(t, sender.Traces(t.Context(), td))
		}
	}
	require.NoError(t, sender.Close())
	stopDropIn(t, collector) // which emits what is left
	want, got := derived(queued.MetricRequests()), derived(direct.MetricRequests())
	require.Greater(t, len(want), 50)
	assert.Equal(t, want, got)
}

// derived is the newest value of each series. What a run spends its time with, and when
// a host last sent, depend on when spans come in.
func derived(all []pmetric.Metrics) map[string]string {
	values := map[string]string{}
	for _, md := range all {
		for _, rm := range md.ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					if strings.HasPrefix(m.Name(), "ml.run.") || strings.HasPrefix(m.Name(), "ml.step.") || m.Name() == "ml.host.last_data.timestamp" {
						continue
					}
					add := func(attrs pcommon.Map, value any) {
						values[fmt.Sprint(rm.Resource().Attributes().AsRaw(), m.Name(), attrs.AsRaw())] = fmt.Sprint(value)
					}
					switch m.Type() {
					case pmetric.MetricTypeSum:
						for _, p := range m.Sum().DataPoints().All() {
							add(p.Attributes(), p.IntValue())
						}
					case pmetric.MetricTypeGauge:
						for _, p := range m.Gauge().DataPoints().All() {
							add(p.Attributes(), p.DoubleValue())
						}
					case pmetric.MetricTypeHistogram:
						for _, p := range m.Histogram().DataPoints().All() {
							add(p.Attributes(), fmt.Sprintf("%d %.9g", p.Count(), p.Sum()))
						}
					}
				}
			}
		}
	}
	return values
}
