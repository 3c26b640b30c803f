package smoke

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// agentCollector is a collector with the shipped default configuration.
type agentCollector struct {
	*harness.Collector
	sender *harness.GRPCSender
}

func startAgent(t *testing.T, overrides map[string]any) *agentCollector {
	t.Helper()
	if overrides == nil {
		overrides = map[string]any{}
	}
	sink := harness.StartSink(t)
	overrides["connectors::ml_metrics::flush_interval"] = "1s"
	overrides["connectors::ml_metrics::initial_zero"] = "1s"
	collector := harness.StartCollector(t, harness.CollectorOptions{
		Config:    harness.Path("distribution", "config", "agent.yaml"),
		Overrides: overrides,
		Env:       []string{"JAEGER_ENDPOINT=" + sink.Endpoint},
		Dir:       t.TempDir(),
	})
	sender, err := harness.NewGRPCSender(collector.Address(t, "receivers::otlp::protocols::grpc"))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, sender.Close()) })
	return &agentCollector{Collector: collector, sender: sender}
}

func (a *agentCollector) send(t *testing.T, md pmetric.Metrics) {
	t.Helper()
	require.NoError(t, a.sender.Metrics(t.Context(), md))
}

// awaitValue waits until a metric is one series with this value.
func (a *agentCollector) awaitValue(t *testing.T, name string, want float64) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		samples, err := harness.Scrape(t.Context(), a.Address(t, "exporters::prometheus"))
		require.NoError(c, err)
		found := harness.Select(samples, name, nil)
		if assert.Len(c, found, 1, name) {
			assert.InDelta(c, want, found[0].Value, 0, name)
		}
	}, arrival, poll)
}

// gaugeOf is one point of a gauge, taken at a distance from now.
func gaugeOf(name string, value int64, distance time.Duration) (pmetric.Metrics, pcommon.Map) {
	md := pmetric.NewMetrics()
	_, attributes := gauge(md, "anyone", name)
	point := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0)
	point.SetIntValue(value)
	point.SetTimestamp(pcommon.NewTimestampFromTime(time.Now().Add(distance)))
	return md, attributes
}

// The shipped configurations treat metrics alike on their way to Prometheus.
func TestShippedConfigurationsAgreeAboutPrometheus(t *testing.T) {
	treatment := func(name string) map[string]any {
		text, err := os.ReadFile(harness.Path("distribution", "config", name))
		require.NoError(t, err)
		var config struct {
			Processors map[string]any `yaml:"processors"`
			Service    struct {
				Pipelines map[string]map[string]any `yaml:"pipelines"`
			} `yaml:"service"`
		}
		require.NoError(t, yaml.Unmarshal(text, &config))
		found := map[string]any{
			"metrics": config.Service.Pipelines["metrics"]["processors"],
			"derived": config.Service.Pipelines["metrics/derived"]["processors"],
		}
		for _, processor := range []string{"ml_guard/identities", "delta_to_cumulative", "transform/prometheus"} {
			require.Contains(t, config.Processors, processor, name)
			found[processor] = config.Processors[processor]
		}
		return found
	}
	assert.Equal(t, treatment("agent.yaml"), treatment("demo.yaml"))
}

// Eight ranks under torchrun, whose client names neither instance nor job, are
// eight series of each of TorchTel's metrics, and no value hides another.
func TestRanksOfTorchTelAreSeriesOfTheirOwn(t *testing.T) {
	t.Parallel()
	a := startAgent(t, nil)
	now := pcommon.NewTimestampFromTime(time.Now())
	md := pmetric.NewMetrics()
	for rank := range int64(8) {
		rm := md.ResourceMetrics().AppendEmpty()
		resource := rm.Resource().Attributes()
		resource.PutStr("service.name", "torchtel")
		resource.PutStr("host", "n1")
		resource.PutStr("job_name", "local")
		resource.PutInt("job_id", 0)
		resource.PutInt("local_rank", rank)
		resource.PutInt("global_rank", rank)
		resource.PutInt("world_size", 8)
		metrics := rm.ScopeMetrics().AppendEmpty().Metrics()
		steps := metrics.AppendEmpty()
		steps.SetName("train.step.count")
		steps.SetUnit("1")
		sum := steps.SetEmptySum()
		sum.SetIsMonotonic(true)
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		point := sum.DataPoints().AppendEmpty()
		point.SetTimestamp(now)
		point.SetIntValue(100 + rank)
		memory := metrics.AppendEmpty()
		memory.SetName("gpu.memory.bytes")
		memory.SetUnit("By")
		points := memory.SetEmptyGauge().DataPoints()
		for i, kind := range []string{"allocated", "reserved"} {
			p := points.AppendEmpty()
			p.SetTimestamp(now)
			p.SetIntValue(1000*int64(i+1) + rank)
			p.Attributes().PutStr("kind", kind)
		}
	}
	a.send(t, md)

	values := func(samples []harness.Sample) map[string]float64 {
		byRank := map[string]float64{}
		for _, sample := range samples {
			byRank[sample.Labels["kind"]+sample.Labels["ml_rank_global"]] = sample.Value
		}
		return byRank
	}
	steps := values(awaitSeries(t, a.Collector, "train_step_count_total", 8))
	memory := values(awaitSeries(t, a.Collector, "gpu_memory_bytes", 16))
	for rank := range 8 {
		assert.InDelta(t, 100+rank, steps[strconv.Itoa(rank)], 0)
		assert.InDelta(t, 1000+rank, memory[fmt.Sprint("allocated", rank)], 0)
		assert.InDelta(t, 2000+rank, memory[fmt.Sprint("reserved", rank)], 0)
	}
	stopDropIn(t, a.Collector)
}

// What an operator lists becomes a label, and nothing else of the resource.
func TestResourceLabelsAreOnPoints(t *testing.T) {
	t.Parallel()
	a := startAgent(t, map[string]any{
		"processors::ml_enrich::resource_labels": []string{"deployment.environment.name", "team"},
	})
	md, _ := gaugeOf("anything", 1, 0)
	resource := md.ResourceMetrics().At(0).Resource().Attributes()
	resource.PutStr("deployment.environment.name", "staging")
	resource.PutStr("team", "vision")
	resource.PutStr("build", "4711")
	a.send(t, md)
	labels := awaitSeries(t, a.Collector, "anything", 1)[0].Labels
	assert.Equal(t, "staging", labels["deployment_environment_name"])
	assert.Equal(t, "vision", labels["team"])
	assert.NotContains(t, labels, "build")
	stopDropIn(t, a.Collector)
}

// Text that is not UTF-8 costs the characters, not the series.
func TestTextThatIsNotUTF8KeepsItsSeries(t *testing.T) {
	t.Parallel()
	a := startAgent(t, nil)
	value, attributes := gaugeOf("in.value", 1, 0)
	attributes.PutStr("stage", "lo\xffad")
	attributes.PutStr("whole", "gr\u00f6\u00dfe")
	a.send(t, value)
	key, attributes := gaugeOf("in.key", 1, 0)
	attributes.PutStr("st\xffage", "load")
	a.send(t, key)
	service, _ := gaugeOf("in.service", 1, 0)
	service.ResourceMetrics().At(0).Resource().Attributes().PutStr("service.name", "train\xfe")
	service.ResourceMetrics().At(0).Resource().Attributes().PutStr("service.instance.id", "\xff1")
	a.send(t, service)
	name, _ := gaugeOf("in.name\xff", 1, 0)
	a.send(t, name)

	labels := awaitSeries(t, a.Collector, "in_value", 1)[0].Labels
	assert.Equal(t, "lo\ufffdad", labels["stage"])
	assert.Equal(t, "gr\u00f6\u00dfe", labels["whole"])
	assert.Equal(t, "load", awaitSeries(t, a.Collector, "in_key", 1)[0].Labels["st_age"])
	labels = awaitSeries(t, a.Collector, "in_service", 1)[0].Labels
	assert.Equal(t, "train\ufffd", labels["job"])
	assert.Equal(t, "\ufffd1", labels["instance"])
	awaitSeries(t, a.Collector, "in_name", 1)
	assert.InDelta(t, 2, a.selfCount(t, unsafePoints, "invalid_utf8"), 0, "the values are counted; names lose nothing")
	stopDropIn(t, a.Collector)
}

// Spans of a service whose name is not UTF-8 are counted by both connectors.
func TestSpansThatAreNotUTF8AreCounted(t *testing.T) {
	t.Parallel()
	a := startAgent(t, nil)
	require.NoError(t, a.sender.Traces(t.Context(), oneSpan("chat\xff", "ask\xfe", func(attributes pcommon.Map) {
		attributes.PutStr("gen_ai.operation.name", "chat")
		attributes.PutStr("gen_ai.request.model", "tiny\xfd")
		attributes.PutInt("gen_ai.usage.output_tokens", 5)
	})))
	assert.Equal(t, "chat\ufffd", awaitSeries(t, a.Collector, "traces_span_metrics_calls_total", 1)[0].Labels["job"])
	assert.Equal(t, "chat\ufffd", awaitSeries(t, a.Collector, "ml_tokens_total", 1)[0].Labels["job"])
	stopDropIn(t, a.Collector)
}

// A clock that is set by an hour, either way, freezes no series.
func TestClocksThatAreSetFreezeNoSeries(t *testing.T) {
	t.Parallel()
	a := startAgent(t, nil)
	for name, distances := range map[string][3]time.Duration{
		"set.back":    {0, -time.Hour, -time.Hour},
		"set.forward": {0, time.Hour, time.Hour},
		"was.ahead":   {time.Hour, 0, 0},
		"was.behind":  {-time.Hour, 0, 0},
	} {
		prometheus := strings.ReplaceAll(name, ".", "_")
		for i, distance := range distances {
			md, _ := gaugeOf(name, int64(i+1), distance)
			at := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).Timestamp()
			counter := oneCounter("anyone", name+".counted", int64(10*(i+1)), nil)
			counter.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().At(0).SetTimestamp(at)
			a.send(t, md)
			a.send(t, counter)
			a.awaitValue(t, prometheus, float64(i+1))
			a.awaitValue(t, prometheus+"_counted_total", float64(10*(i+1)))
		}
	}
	// Of each clock a gauge and a counter, once or twice.
	assert.InDelta(t, 2*(2+1), a.selfCount(t, unsafePoints, "clock_behind"), 0)
	assert.InDelta(t, 2*(2+1), a.selfCount(t, unsafePoints, "clock_ahead"), 0)
	stopDropIn(t, a.Collector)
}

// Spans of such clocks are counted like others.
func TestSpansOfClocksThatAreSetAreCounted(t *testing.T) {
	t.Parallel()
	a := startAgent(t, nil)
	for i, distance := range []time.Duration{time.Hour, 0, -time.Hour} {
		traces := oneSpan("anyone", "chat", func(attributes pcommon.Map) {
			attributes.PutStr("gen_ai.operation.name", "chat")
			attributes.PutInt("gen_ai.usage.output_tokens", 5)
		})
		span := traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
		span.SetSpanID(pcommon.SpanID{0x5b, byte(i + 1)})
		span.SetTraceID(pcommon.TraceID{0x5b, byte(i + 1)})
		span.SetKind(ptrace.SpanKindClient)
		span.SetStartTimestamp(pcommon.NewTimestampFromTime(span.StartTimestamp().AsTime().Add(distance)))
		span.SetEndTimestamp(pcommon.NewTimestampFromTime(span.EndTimestamp().AsTime().Add(distance)))
		require.NoError(t, a.sender.Traces(t.Context(), traces))
		a.awaitValue(t, "ml_tokens_total", float64(5*(i+1)))
		a.awaitValue(t, "traces_span_metrics_calls_total", float64(i+1))
	}
	stopDropIn(t, a.Collector)
}

// Deltas add up, also where there is a gap between them.
func TestDeltasWithAGapAddUp(t *testing.T) {
	t.Parallel()
	a := startAgent(t, nil)
	begin := time.Now().Add(-time.Minute)
	for i, value := range []int64{5, 7} {
		md := oneCounter("anyone", "answers", value, nil)
		sum := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Sum()
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
		sum.DataPoints().At(0).SetStartTimestamp(pcommon.NewTimestampFromTime(begin.Add(time.Duration(i) * 10 * time.Second)))
		sum.DataPoints().At(0).SetTimestamp(pcommon.NewTimestampFromTime(begin.Add(time.Duration(i)*10*time.Second + 9*time.Second)))
		a.send(t, md)
	}
	a.awaitValue(t, "answers_total", 12)
	stopDropIn(t, a.Collector)
}

// Deltas of a clock that is set by an hour go on adding up.
func TestDeltasOfClocksThatAreSetAddUp(t *testing.T) {
	t.Parallel()
	for name, distances := range map[string][3]time.Duration{
		"back":  {0, -time.Hour, -time.Hour},
		"ahead": {0, time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := startAgent(t, nil)
			for i, distance := range distances {
				end := time.Now().Add(distance)
				md := oneCounter("anyone", "answers", 5, nil)
				sum := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Sum()
				sum.SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
				sum.DataPoints().At(0).SetStartTimestamp(pcommon.NewTimestampFromTime(end.Add(-time.Millisecond)))
				sum.DataPoints().At(0).SetTimestamp(pcommon.NewTimestampFromTime(end))
				a.send(t, md)
				a.awaitValue(t, "answers_total", float64(5*(i+1)))
			}
			stopDropIn(t, a.Collector)
		})
	}
}

// A point without a value takes none of its metric's others with it.
func TestMissingValuesHideNoOthers(t *testing.T) {
	t.Parallel()
	a := startAgent(t, nil)
	md, attributes := gaugeOf("queue", 0, 0)
	attributes.PutStr("shard", "a")
	points := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints()
	points.At(0).SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	second := points.AppendEmpty()
	second.Attributes().PutStr("shard", "b")
	second.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	second.SetIntValue(2)
	a.send(t, md)
	a.awaitValue(t, "queue", 2)
	stopDropIn(t, a.Collector)
}

// selfCount is one of the collector's own counters, by reason.
func (a *agentCollector) selfCount(t *testing.T, name, reason string) float64 {
	t.Helper()
	samples, err := harness.Scrape(t.Context(), a.Address(t, harness.TelemetryPath))
	require.NoError(t, err)
	n := 0.0
	for _, sample := range harness.Select(samples, name, harness.Labels{"reason": reason}) {
		n += sample.Value
	}
	return n
}

const unsafePoints = "otelcol_processor_ml_enrich_points_unsafe"

// Two attributes of a client that become one label cost neither the series nor
// another one, and are counted.
func TestAttributesThatCollideKeepTheirSeries(t *testing.T) {
	t.Parallel()
	a := startAgent(t, nil)
	confused, attributes := gaugeOf("confused", 1, 0)
	attributes.PutStr("a.b", "1")
	attributes.PutStr("a_b", "2")
	attributes.PutStr("c", "3")
	a.send(t, confused)
	labels := awaitSeries(t, a.Collector, "confused", 1)[0].Labels
	assert.Equal(t, "2", labels["a_b"], "the last of the two")
	assert.Equal(t, "3", labels["c"])
	assert.Equal(t, "true", labels["ml_label_conflict"], "the series says that it lacks something")
	assert.InDelta(t, 1, a.selfCount(t, unsafePoints, "label_collision"), 0)
	stopDropIn(t, a.Collector)
}

// Attributes of the names that Prometheus or the exporter keep for themselves
// cost neither the series nor the scrape, and are counted.
func TestReservedLabelsKeepTheirSeries(t *testing.T) {
	t.Parallel()
	a := startAgent(t, nil)
	reserved := []string{"job", "instance", "quantile", "le", "__name__", "__meta", "_", "", "\u00e4"}
	for i, key := range reserved {
		md, attributes := gaugeOf("reserved"+strconv.Itoa(i), 1, 0)
		md.ResourceMetrics().At(0).Resource().Attributes().PutStr("service.instance.id", "i-1")
		attributes.PutStr(key, "mine")
		a.send(t, md)
	}
	md := pmetric.NewMetrics()
	metric := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	metric.SetName("bucketed")
	fill(t, metric, "histogram")
	metric.Histogram().DataPoints().At(0).Attributes().PutStr("le", "mine")
	a.send(t, md)

	for i, key := range reserved {
		labels := awaitSeries(t, a.Collector, "reserved"+strconv.Itoa(i), 1)[0].Labels
		assert.Equal(t, "anyone", labels["job"], key)
		assert.Equal(t, "i-1", labels["instance"], key)
		found := 0
		for label, value := range labels {
			if value == "mine" {
				assert.True(t, strings.HasPrefix(label, "exported_"), "%q became %q", key, label)
				found++
			}
		}
		assert.Equal(t, 1, found, key)
	}
	assert.Equal(t, "mine", awaitSeries(t, a.Collector, "bucketed_count", 1)[0].Labels["exported_le"])
	assert.InDelta(t, len(reserved)+1, a.selfCount(t, unsafePoints, "reserved_label"), 0)
	stopDropIn(t, a.Collector)
}

// Of two metrics of a client that have one name in Prometheus, and nothing else
// to tell them apart, one is shown, as the exporter says in the log. Nothing else
// is lost with the other.
func TestMetricsOfOneNameCostNoOthers(t *testing.T) {
	t.Parallel()
	a := startAgent(t, nil)
	dotted, _ := gaugeOf("dup.name", 1, 0)
	a.send(t, dotted)
	underscored, _ := gaugeOf("dup_name", 2, 0)
	a.send(t, underscored)
	other, _ := gaugeOf("clear", 3, 0)
	a.send(t, other)

	a.awaitValue(t, "clear", 3)
	samples, err := harness.Scrape(t.Context(), a.Address(t, "exporters::prometheus"))
	require.NoError(t, err)
	assert.Len(t, harness.Select(samples, "dup_name", nil), 1)
	assert.Contains(t, a.Output(), `collected metric "dup_name"`)
	assert.Zero(t, a.Stop(t))
}

// seriesRow is an item of the connector's list of names: the metric, its name in
// Prometheus, its kind and its unit. The receiver's list has the names, seriesItem, and
// documentation.md kind and unit, metricKind.
var (
	seriesRow  = regexp.MustCompile("(?m)^- \\[`([^`]+)`\\]\\([^)]*\\): `([^`]+)`, ([^,;]+)(?:, `([^`]+)`)?;")
	seriesItem = regexp.MustCompile("(?m)^- \\[`([^`]+)`\\]\\([^)]*\\): `([^`]+)`$")
	metricKind = regexp.MustCompile("(?ms)^### (\\S+)$.*?^(Gauge|Counter|Up-down counter)(?:, `([^`]+)`)?\\.")
)

// connectorSeries returns the metric, the name, the kind and the unit of each item.
func connectorSeries(t *testing.T) [][]string {
	t.Helper()
	text, err := os.ReadFile(harness.Path("connector", "mlmetricsconnector", "series.md"))
	require.NoError(t, err)
	rows := seriesRow.FindAllStringSubmatch(string(text), -1)
	require.Len(t, rows, strings.Count(string(text), "\n- [`"), "items that are not understood")
	return rows
}

// receiverSeries returns the same of each item.
func receiverSeries(t *testing.T) (rows [][]string) {
	t.Helper()
	text, err := os.ReadFile(harness.Path("receiver", "gpureceiver", "series.md"))
	require.NoError(t, err)
	documentation, err := os.ReadFile(harness.Path("receiver", "gpureceiver", "documentation.md"))
	require.NoError(t, err)
	kinds := make(map[string][]string)
	for _, match := range metricKind.FindAllStringSubmatch(string(documentation), -1) {
		kinds[match[1]] = []string{strings.ToLower(match[2]), match[3]}
	}
	items := seriesItem.FindAllStringSubmatch(string(text), -1)
	require.Len(t, items, strings.Count(string(text), "\n- [`"), "items that are not understood")
	for _, item := range items {
		require.Contains(t, kinds, item[1])
		rows = append(rows, append(item, kinds[item[1]]...))
	}
	return rows
}

// The committed names are those that the exporter gives, and no two metrics of
// this project share one.
func TestMetricsAreNamedAsTheTablesSay(t *testing.T) {
	t.Parallel()
	a := startAgent(t, nil)
	names := map[string]string{}
	md := pmetric.NewMetrics()
	for page, rows := range map[string][][]string{"the receiver": receiverSeries(t), "the connector": connectorSeries(t)} {
		require.Greater(t, len(rows), 10, "%s has no series", page)
		for _, row := range rows {
			name := row[2]
			if row[3] == "histogram" {
				name += "_count"
			}
			require.NotContains(t, names, name, "two metrics have one name")
			names[name] = row[1]
			metric := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
			metric.SetName(row[1])
			metric.SetUnit(row[4])
			fill(t, metric, row[3])
		}
	}
	a.send(t, md)
	for name, metric := range names {
		awaitSome(t, a.Collector, name, metric)
	}
	stopDropIn(t, a.Collector)
}

func fill(t *testing.T, metric pmetric.Metric, kind string) {
	t.Helper()
	now := pcommon.NewTimestampFromTime(time.Now())
	switch kind {
	case "gauge":
		point := metric.SetEmptyGauge().DataPoints().AppendEmpty()
		point.SetTimestamp(now)
		point.SetDoubleValue(1)
	case "counter", "up-down counter":
		sum := metric.SetEmptySum()
		sum.SetIsMonotonic(kind == "counter")
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		point := sum.DataPoints().AppendEmpty()
		point.SetTimestamp(now)
		point.SetDoubleValue(1)
	case "histogram":
		histogram := metric.SetEmptyHistogram()
		histogram.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		point := histogram.DataPoints().AppendEmpty()
		point.SetTimestamp(now)
		point.SetCount(1)
		point.SetSum(1)
	default:
		require.Fail(t, "a kind that this test does not know", kind)
	}
}

// awaitSome waits until the exporter shows a metric under a name.
func awaitSome(t *testing.T, collector *harness.Collector, name, metric string) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		samples, err := harness.Scrape(t.Context(), collector.Address(t, "exporters::prometheus"))
		require.NoError(c, err)
		assert.NotEmpty(c, harness.Select(samples, name, nil), "%s is not %s in Prometheus", metric, name)
	}, arrival, poll)
}
