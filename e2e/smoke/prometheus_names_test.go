package smoke

import (
	"cmp"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// attributeItem is an item of the list of canonical attributes in
// docs/vocabulary.md: the attribute, its type, if it is no string, and its meaning.
var attributeItem = regexp.MustCompile("(?m)^- `([a-z._0-9*]+)`(?: \\((int|double|boolean)(?: `[^`]+`)?\\))?: (.*)$")

// committedLabels reads that list: by the page, a label has underscores in place of dots.
func committedLabels(t *testing.T) (labels, types map[string]string) {
	t.Helper()
	page, err := os.ReadFile(harness.Path("docs", "vocabulary.md"))
	require.NoError(t, err)
	labels, types = make(map[string]string), make(map[string]string)
	list, _, _ := strings.Cut(string(page), "\n## What metrics are about\n")
	for _, row := range attributeItem.FindAllStringSubmatch(list, -1) {
		key := strings.ReplaceAll(row[1], "*", "up")
		if !strings.HasSuffix(row[3], "Only read.") {
			labels[key], types[key] = strings.ReplaceAll(key, ".", "_"), cmp.Or(row[2], "string")
		}
	}
	require.Greater(t, len(labels), 50, "docs/vocabulary.md has no list of attributes")
	return labels, types
}

func startPrometheusNames(t *testing.T) (*harness.Collector, *harness.GRPCSender) {
	t.Helper()
	config, err := filepath.Abs(filepath.Join("testdata", "prometheus-names.yaml"))
	require.NoError(t, err)
	collector := harness.StartCollector(t, harness.CollectorOptions{Config: config})
	sender, err := harness.NewGRPCSender(collector.Address(t, "receivers::otlp::protocols::grpc"))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, sender.Close()) })
	return collector, sender
}

// awaitSeries waits until the exporter shows n series of a metric.
func awaitSeries(t *testing.T, collector *harness.Collector, name string, n int) []harness.Sample {
	t.Helper()
	var found []harness.Sample
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		samples, err := harness.Scrape(t.Context(), collector.Address(t, "exporters::prometheus"))
		require.NoError(c, err)
		found = harness.Select(samples, name, nil)
		assert.Len(c, found, n, name)
	}, arrival, poll)
	return found
}

// gauge adds a resource with one point of a metric.
func gauge(md pmetric.Metrics, service, name string) (resource, point pcommon.Map) {
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", service)
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName(name)
	p := m.SetEmptyGauge().DataPoints().AppendEmpty()
	p.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	p.SetIntValue(1)
	return rm.Resource().Attributes(), p.Attributes()
}

// Every canonical attribute on one point is a label of its own, by the name
// that the documentation gives.
func TestLabelsAreThoseOfTheDocumentation(t *testing.T) {
	t.Parallel()
	labels, types := committedLabels(t)
	collector, sender := startPrometheusNames(t)
	md := pmetric.NewMetrics()
	_, attrs := gauge(md, "anyone", "anything")
	for key, kind := range types {
		switch kind {
		case "string":
			attrs.PutStr(key, "is "+key)
		case "boolean":
			attrs.PutBool(key, true)
		case "int":
			attrs.PutInt(key, 1)
		default:
			attrs.PutDouble(key, 0.5)
		}
	}
	require.NoError(t, sender.Metrics(t.Context(), md))
	series := awaitSeries(t, collector, "anything", 1)[0]
	for key, label := range labels {
		if assert.Contains(t, series.Labels, label, key) && types[key] == "string" {
			assert.Equal(t, "is "+key, series.Labels[label], "two attributes became one label")
		}
	}
	stopDropIn(t, collector)
}

// Ranks that share everything but their number are a series each, although
// their client names no instance.
func TestRanksAreSeriesOfTheirOwn(t *testing.T) {
	t.Parallel()
	collector, sender := startPrometheusNames(t)
	md := pmetric.NewMetrics()
	for rank := range int64(8) {
		resource, _ := gauge(md, "torchtel", "model.parameters")
		resource.PutStr("host", "n1")
		resource.PutStr("job_name", "pretrain")
		resource.PutInt("job_id", 4711)
		resource.PutInt("local_rank", rank)
		resource.PutInt("global_rank", rank)
		resource.PutInt("world_size", 8)
	}
	require.NoError(t, sender.Metrics(t.Context(), md))
	ranks := map[string]bool{}
	for _, series := range awaitSeries(t, collector, "model_parameters", 8) {
		assert.Equal(t, "4711", series.Labels["ml_run_id"])
		ranks[series.Labels["ml_rank_global"]] = true
	}
	assert.Len(t, ranks, 8)
	stopDropIn(t, collector)
}

// The rate of a client's counter has the name that dashboards rely on.
func TestThroughputIsNamedBySecond(t *testing.T) {
	t.Parallel()
	collector, sender := startPrometheusNames(t)
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "vllm")
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("vllm:generation_tokens_total")
	sum := m.SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	now := time.Now()
	for i, value := range []float64{1000, 4000} {
		p := sum.DataPoints().AppendEmpty()
		p.SetStartTimestamp(pcommon.NewTimestampFromTime(now.Add(-time.Hour)))
		p.SetTimestamp(pcommon.NewTimestampFromTime(now.Add(time.Duration(i-1) * time.Minute)))
		p.SetDoubleValue(value)
	}
	require.NoError(t, sender.Metrics(t.Context(), md))
	series := awaitSeries(t, collector, "ml_token_throughput_per_second", 1)[0]
	assert.InDelta(t, 50, series.Value, 1e-6)
	stopDropIn(t, collector)
}
