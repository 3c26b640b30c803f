package smoke

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// arrival is how long data may take through a collector, batching included;
// poll is how often a test looks.
const (
	arrival = 30 * time.Second
	poll    = 50 * time.Millisecond
)

// A user's configuration of the stock collector is the first of two files; the
// second moves its ports and points its exporters at the test's own back end,
// so the file itself is loaded as the user has it. The path is below e2e.
func startDropIn(t *testing.T, overrides map[string]any, path ...string) *harness.Collector {
	t.Helper()
	config := harness.Path(append([]string{"e2e"}, path...)...)
	code, output := harness.Validate(t, nil, config)
	require.Zero(t, code, "%s does not validate unchanged:\n%s", config, output)
	return harness.StartCollector(t, harness.CollectorOptions{Config: config, Overrides: overrides})
}

// stopDropIn ends the collector and expects it to have been healthy.
func stopDropIn(t *testing.T, collector *harness.Collector) {
	t.Helper()
	assert.Zero(t, collector.Stop(t), "exit code after SIGTERM")
	assert.Empty(t, harness.LogErrors(collector.Output()), "errors in the log")
}

func TestDropInTaskWeaver(t *testing.T) {
	t.Parallel()
	sink := harness.StartSink(t)
	collector := startDropIn(t, map[string]any{
		"exporters::otlp::endpoint": sink.Endpoint,
	}, "stacks", "testdata", "taskweaver", "collector.yaml")
	sender, err := harness.NewGRPCSender(collector.Address(t, "receivers::otlp::protocols::grpc"))
	require.NoError(t, err)
	defer func() { assert.NoError(t, sender.Close()) }()

	const service = "taskweaver.otlp.tracer"
	require.NoError(t, sender.Traces(t.Context(), oneSpan(service, "Planner.reply", func(attributes pcommon.Map) {
		attributes.PutInt("prompt_size", 1200)
		attributes.PutInt("output_size", 80)
	})))
	require.NoError(t, sender.Metrics(t.Context(), oneCounter(service, "prompt_size", 1200, map[string]string{"direction": "input"})))
	require.NoError(t, sender.Logs(t.Context(), oneLog(service, "the plan has three steps")))

	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.Equal(c, []string{"Planner.reply"}, spanNames(sink))
		samples, err := harness.Scrape(t.Context(), collector.Address(t, "exporters::prometheus"))
		if !assert.NoError(c, err) {
			return
		}
		counters := harness.Select(samples, "prompt_size_total", harness.Labels{"direction": "input"})
		if assert.Len(c, counters, 1) {
			assert.InDelta(c, 1200, counters[0].Value, 0)
		}
		assert.Contains(c, collector.Output(), "Body: Str(the plan has three steps)")
	}, arrival, poll)

	span := sink.Spans()[0]
	assert.Equal(t, map[string]any{"prompt_size": int64(1200), "output_size": int64(80)}, span.Attributes().AsRaw(),
		"a stock configuration passes spans on as they came")
	stopDropIn(t, collector)
}

func TestDropInTorchTel(t *testing.T) {
	t.Parallel()
	sink := harness.StartSink(t)
	collector := startDropIn(t, map[string]any{
		"exporters::otlp/jaeger::endpoint": sink.Endpoint,
	}, "stacks", "testdata", "torchtel", "collector.yaml")
	url := "http://" + collector.Address(t, "receivers::otlp::protocols::http")

	require.NoError(t, harness.PostTraces(t.Context(), url+"/v1/traces", oneSpan("torchtel", "SimpleModel.forward", nil)))
	require.NoError(t, harness.PostMetrics(t.Context(), url+"/v1/metrics", oneCounter("torchtel", "train.step.count", 42, nil)))

	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.Equal(c, []string{"SimpleModel.forward"}, spanNames(sink))
		samples, err := harness.Scrape(t.Context(), collector.Address(t, "exporters::prometheus"))
		if !assert.NoError(c, err) {
			return
		}
		counters := harness.Select(samples, "train_step_count_total", harness.Labels{"job": "torchtel"})
		if assert.Len(c, counters, 1) {
			assert.InDelta(c, 42, counters[0].Value, 0)
		}
	}, arrival, poll)
	stopDropIn(t, collector)
}

func TestDropInFX(t *testing.T) {
	t.Parallel()
	sink := harness.StartSink(t)
	collector := startDropIn(t, map[string]any{
		"exporters::otlp::endpoint": sink.Endpoint,
	}, "smoke", "testdata", "dropin", "fx.yaml")
	standard := "http://" + collector.Address(t, "receivers::otlp::protocols::http")
	fx := "http://" + collector.Address(t, "receivers::otlp/fx::protocols::http")

	require.NoError(t, harness.PostTraces(t.Context(), fx+"/", oneSpan("unknown_service", "epoch_1", nil)))
	require.NoError(t, harness.PostTraces(t.Context(), standard+"/v1/traces", oneSpan("torchtel", "SGD.step", nil)))
	require.NoError(t, harness.PostMetrics(t.Context(), fx+"/v1/metrics", oneCounter("unknown_service", "batches", 7, nil)))
	require.NoError(t, harness.PostLogs(t.Context(), fx+"/v1/logs", oneLog("unknown_service", "epoch 1 done")))

	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.ElementsMatch(c, []string{"epoch_1", "SGD.step"}, spanNames(sink))
		samples, err := harness.Scrape(t.Context(), collector.Address(t, "exporters::prometheus"))
		if !assert.NoError(c, err) {
			return
		}
		assert.Len(c, harness.Select(samples, "batches_total", nil), 1)
		assert.Contains(c, collector.Output(), `"log records": 1`, "the debug exporter has not seen the log record")
	}, arrival, poll)
	stopDropIn(t, collector)
}

func spanNames(sink *harness.Sink) []string {
	var names []string
	for _, span := range sink.Spans() {
		names = append(names, span.Name())
	}
	return names
}

// oneSpan returns a span of a tenth of a second that ends now.
func oneSpan(service, name string, attributes func(pcommon.Map)) ptrace.Traces {
	traces := ptrace.NewTraces()
	resource := traces.ResourceSpans().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", service)
	span := resource.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.SetName(name)
	span.SetTraceID(pcommon.TraceID{0x5a, 1})
	span.SetSpanID(pcommon.SpanID{0x5a, 2})
	now := time.Now()
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(now.Add(-100 * time.Millisecond)))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(now))
	if attributes != nil {
		attributes(span.Attributes())
	}
	return traces
}

// oneCounter returns one point of a cumulative counter of unit "1".
func oneCounter(service, name string, value int64, attributes map[string]string) pmetric.Metrics {
	metrics := pmetric.NewMetrics()
	resource := metrics.ResourceMetrics().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", service)
	metric := resource.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	metric.SetName(name)
	metric.SetUnit("1")
	sum := metric.SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	point := sum.DataPoints().AppendEmpty()
	point.SetIntValue(value)
	now := time.Now()
	point.SetStartTimestamp(pcommon.NewTimestampFromTime(now.Add(-time.Minute)))
	point.SetTimestamp(pcommon.NewTimestampFromTime(now))
	for key, value := range attributes {
		point.Attributes().PutStr(key, value)
	}
	return metrics
}

// oneLog returns a log record of severity INFO.
func oneLog(service, body string) plog.Logs {
	logs := plog.NewLogs()
	resource := logs.ResourceLogs().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", service)
	record := resource.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	record.Body().SetStr(body)
	record.SetSeverityNumber(plog.SeverityNumberInfo)
	record.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	return logs
}
