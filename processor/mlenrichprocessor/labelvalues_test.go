package mlenrichprocessor

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatatest/pmetrictest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/metadatatest"
)

// futures has one point of TuFT's for each training run.
func futures(runs ...string) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "tuft")
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("tuft.futures.created")
	sum := m.SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	for _, run := range runs {
		p := sum.DataPoints().AppendEmpty()
		p.Attributes().PutStr("model_id", run)
		p.Attributes().PutStr("operation_type", "sample")
		p.SetIntValue(1)
	}
	return md
}

// runsOf lists each point's run, or "overflow" where the point has that mark.
func runsOf(t *testing.T, md pmetric.Metrics) []string {
	t.Helper()
	var runs []string
	for _, p := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().All() {
		_, ok := p.Attributes().Get("model_id")
		assert.True(t, ok, "the client's own stays")
		run, ok := p.Attributes().Get("ml.run.id")
		if !ok {
			run = pcommon.NewValueStr("none")
		}
		if mark, ok := p.Attributes().Get("otel.metric.overflow"); ok && mark.Bool() {
			run = pcommon.NewValueStr("overflow")
		}
		runs = append(runs, run.Str())
	}
	return runs
}

func TestLabelsHaveBoundedValues(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.MaxValues = 2
	p := start(t, cfg)
	out := p.sendMetrics(t, futures("a", "b", "c", "a", "d"))
	assert.Equal(t, []string{"a", "b", "overflow", "a", "overflow"}, runsOf(t, out))
	operation, ok := out.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().At(2).Attributes().Get("ml.operation")
	assert.True(t, ok && operation.Str() == "sample", "other labels stay")
	assert.Equal(t, []string{"b", "overflow"}, runsOf(t, p.sendMetrics(t, futures("b", "c"))), "the next batch")
	require.NoError(t, pmetrictest.CompareMetrics(out, p.sendMetrics(t, out)), "a second pass")

	metadatatest.AssertEqualProcessorMlEnrichLabelsOverflowed(t, p.telemetry, []metricdata.DataPoint[int64]{{Value: 3,
		Attributes: attribute.NewSet(attribute.String("processor", "ml_enrich"), attribute.String("label", "ml.run.id"))}},
		metricdatatest.IgnoreTimestamp())
}

// TestOverflowStaysOverflow shows that a point which one ml_enrich marked has
// no such label from the next, which has seen other values.
func TestOverflowStaysOverflow(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.MaxValues = 1
	out := start(t, cfg).sendMetrics(t, futures("a", "b"))
	assert.Equal(t, []string{"a", "overflow"}, runsOf(t, startDefault(t).sendMetrics(t, out)))
}

// TestResourceLabelsHaveBoundedValues shows the same for labels that come from
// the resource.
func TestResourceLabelsHaveBoundedValues(t *testing.T) {
	cfg := createDefaultConfig().(*Config)
	cfg.MaxValues, cfg.ResourceLabels = 1, []string{"team"}
	p := start(t, cfg)
	assert.Equal(t, "a", teamOf(p.sendMetrics(t, teamMetrics("a"))))
	assert.Empty(t, teamOf(p.sendMetrics(t, teamMetrics("b"))))
	assert.Equal(t, "a", teamOf(p.sendMetrics(t, teamMetrics("a"))))
}

func teamMetrics(team string) pmetric.Metrics {
	md := futures("run")
	md.ResourceMetrics().At(0).Resource().Attributes().PutStr("team", team)
	return md
}

func teamOf(md pmetric.Metrics) string {
	attrs := md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Sum().DataPoints().At(0).Attributes()
	if team, ok := attrs.Get("team"); ok {
		return team.Str()
	}
	return ""
}

func TestLabelValuesAreForgotten(t *testing.T) {
	values, now := newLabelValues(), time.Unix(1e9, 0)
	assert.True(t, values.admit("k", "a", 2, now))
	assert.True(t, values.admit("k", "b", 2, now.Add(keyAge/2)))
	assert.False(t, values.admit("k", "c", 2, now.Add(keyAge)))
	assert.True(t, values.admit("other", "c", 2, now.Add(keyAge)), "each key has its own")
	assert.True(t, values.admit("k", "c", 2, now.Add(keyAge+1)), "a is forgotten")
	assert.True(t, values.admit("k", "b", 2, now.Add(keyAge+1)))
	assert.False(t, values.admit("k", "a", 2, now.Add(keyAge+1)))
}

func TestLabelValuesTakeBoundedMemory(t *testing.T) {
	values, now := newLabelValues(), time.Unix(1e9, 0)
	for i := range 100_000 {
		values.admit("k", strings.Repeat("x", 100)+strconv.Itoa(i), 1000, now)
	}
	assert.Equal(t, 1000, values.keys["k"].len())
}
