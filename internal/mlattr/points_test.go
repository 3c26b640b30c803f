package mlattr_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// TestPoints: the points of each type of metric are seen, with their exemplars.
func TestPoints(t *testing.T) {
	for kind, fill := range map[pmetric.MetricType]func(m pmetric.Metric) (pcommon.Map, func() pmetric.Exemplar){
		pmetric.MetricTypeGauge: func(m pmetric.Metric) (pcommon.Map, func() pmetric.Exemplar) {
			p := m.SetEmptyGauge().DataPoints().AppendEmpty()
			return p.Attributes(), p.Exemplars().AppendEmpty
		},
		pmetric.MetricTypeSum: func(m pmetric.Metric) (pcommon.Map, func() pmetric.Exemplar) {
			p := m.SetEmptySum().DataPoints().AppendEmpty()
			return p.Attributes(), p.Exemplars().AppendEmpty
		},
		pmetric.MetricTypeHistogram: func(m pmetric.Metric) (pcommon.Map, func() pmetric.Exemplar) {
			p := m.SetEmptyHistogram().DataPoints().AppendEmpty()
			return p.Attributes(), p.Exemplars().AppendEmpty
		},
		pmetric.MetricTypeExponentialHistogram: func(m pmetric.Metric) (pcommon.Map, func() pmetric.Exemplar) {
			p := m.SetEmptyExponentialHistogram().DataPoints().AppendEmpty()
			return p.Attributes(), p.Exemplars().AppendEmpty
		},
		pmetric.MetricTypeSummary: func(m pmetric.Metric) (pcommon.Map, func() pmetric.Exemplar) {
			return m.SetEmptySummary().DataPoints().AppendEmpty().Attributes(), nil
		},
	} {
		m := pmetric.NewMetric()
		attributes, exemplar := fill(m)
		attributes.PutStr("run", "r")
		want := 0
		if exemplar != nil {
			exemplar()
			want = 1
		}
		seen := 0
		for p := range mlattr.Points(m) {
			seen++
			run, _ := p.Attributes.Get("run")
			assert.Equal(t, "r", run.Str(), kind)
			assert.Equal(t, want, p.Exemplars.Len(), kind)
		}
		assert.Equal(t, 1, seen, kind)
	}
	for range mlattr.Points(pmetric.NewMetric()) {
		t.Error("a metric without a type has no points")
	}
}
