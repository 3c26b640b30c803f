package mlenrichprocessor

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// pointOf is a metric of a kind with one point, taken at a distance from now.
func pointOf(kind pmetric.MetricType, distance time.Duration, attrs map[string]any) pmetric.Metrics {
	md := pmetric.NewMetrics()
	m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("anything")
	at := pcommon.NewTimestampFromTime(time.Now().Add(distance))
	fill := func(p interface {
		Attributes() pcommon.Map
		SetTimestamp(pcommon.Timestamp)
		SetFlags(pmetric.DataPointFlags)
	},
	) {
		p.SetTimestamp(at)
		if _, without := attrs["no value"]; without {
			p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
		}
		if err := p.Attributes().FromRaw(attrs); err != nil {
			panic(err)
		}
	}
	switch kind {
	case pmetric.MetricTypeSum:
		fill(m.SetEmptySum().DataPoints().AppendEmpty())
	case pmetric.MetricTypeHistogram:
		fill(m.SetEmptyHistogram().DataPoints().AppendEmpty())
	case pmetric.MetricTypeExponentialHistogram:
		fill(m.SetEmptyExponentialHistogram().DataPoints().AppendEmpty())
	case pmetric.MetricTypeSummary:
		fill(m.SetEmptySummary().DataPoints().AppendEmpty())
	default:
		fill(m.SetEmptyGauge().DataPoints().AppendEmpty())
	}
	return md
}

func TestPointsThatDoNotSurviveAreCounted(t *testing.T) {
	many := make(map[string]any)
	for i := range 64 {
		many["a"+strconv.Itoa(i)] = 1
	}
	for name, test := range map[string]struct {
		distance time.Duration
		resource map[string]any
		attrs    map[string]any
		want     map[string]int64
	}{
		"right":                       {attrs: map[string]any{"a.b": "größe", "a.c": 1, "ab": true}, want: map[string]int64{}},
		"a little ahead":              {distance: time.Minute, want: map[string]int64{}},
		"ahead":                       {distance: time.Minute + 1, want: map[string]int64{"clock_ahead": 1}},
		"a little behind":             {distance: -10 * time.Minute, want: map[string]int64{}},
		"behind":                      {distance: -10*time.Minute - 1, want: map[string]int64{"clock_behind": 1}},
		"no value":                    {attrs: map[string]any{"no value": true}, want: map[string]int64{"missing_value": 1}},
		"a text":                      {attrs: map[string]any{"a": "\xff"}, want: map[string]int64{"invalid_utf8": 1}},
		"a text of the resource":      {resource: map[string]any{"service.name": "x\xfe"}, want: map[string]int64{"invalid_utf8": 1}},
		"labels":                      {attrs: map[string]any{"a.b": 1, "c": 1, "a_b": 1}, want: map[string]int64{"label_collision": 1}},
		"several things":              {time.Hour, nil, map[string]any{"a.b": "\xff", "a-b": "\xff"}, map[string]int64{"clock_ahead": 1, "invalid_utf8": 1, "label_collision": 1}},
		"a label of the exporter's":   {attrs: map[string]any{"job": 1, "le": 1}, want: map[string]int64{"reserved_label": 1}},
		"a label of Prometheus'":      {attrs: map[string]any{"__name__": 1}, want: map[string]int64{"reserved_label": 1}},
		"no label":                    {attrs: map[string]any{"": 1}, want: map[string]int64{"reserved_label": 1}},
		"nothing that a label has":    {attrs: map[string]any{"_\u00e4": 1}, want: map[string]int64{"reserved_label": 1}},
		"more labels than are looked": {attrs: many, want: map[string]int64{}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for _, kind := range []pmetric.MetricType{
					pmetric.MetricTypeGauge, pmetric.MetricTypeSum, pmetric.MetricTypeHistogram,
					pmetric.MetricTypeExponentialHistogram, pmetric.MetricTypeSummary,
				} {
					p := startDefault(t)
					md := pointOf(kind, test.distance, test.attrs)
					require.NoError(t, md.ResourceMetrics().At(0).Resource().Attributes().FromRaw(test.resource))
					out := p.sendMetrics(t, md)
					_, marked := metricsMaps(out)[1].Get("ml.label.conflict")
					assert.Equal(t, test.want["label_collision"]+test.want["reserved_label"] > 0, marked)
					assert.Equal(t, test.want, p.counted(t, "otelcol_processor_ml_enrich_points_unsafe"), kind)
				}
			})
		})
	}
}

// TestWhatIsAddedCollidesWithNothing has a client's own attributes keep away the
// canonical ones of the same label: these alone are no collision.
func TestWhatIsAddedCollidesWithNothing(t *testing.T) {
	p := startDefault(t)
	md := pointOf(pmetric.MetricTypeGauge, 0, map[string]any{"ml_run_id": "mine"})
	md.ResourceMetrics().At(0).Resource().Attributes().PutStr("ml.run.id", "run")
	md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).SetTimestamp(0)
	out := p.sendMetrics(t, md)
	assert.Equal(t, map[string]any{"ml_run_id": "mine"},
		out.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).Attributes().AsRaw())
	assert.Equal(t, map[string]int64{"missing_time": 1}, p.counted(t, "otelcol_processor_ml_enrich_points_unsafe"))
}
