package mlattr

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// NumberPoints returns the points of a gauge or sum, none of another metric.
func NumberPoints(m pmetric.Metric) pmetric.NumberDataPointSlice {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return m.Gauge().DataPoints()
	case pmetric.MetricTypeSum:
		return m.Sum().DataPoints()
	default:
		return pmetric.NewNumberDataPointSlice()
	}
}

// Number returns the value of a point, and false if it has none.
func Number(point pmetric.NumberDataPoint) (number float64, ok bool) {
	if point.Flags().NoRecordedValue() {
		return 0, false
	}
	switch point.ValueType() {
	case pmetric.NumberDataPointValueTypeInt:
		return float64(point.IntValue()), true
	case pmetric.NumberDataPointValueTypeDouble:
		return point.DoubleValue(), true
	default:
		return 0, false
	}
}

// EachPoint calls see with the attributes and the exemplars of each point of a metric,
// whatever its type. Points of a summary have no exemplars.
func EachPoint(m pmetric.Metric, see func(attributes pcommon.Map, exemplars pmetric.ExemplarSlice)) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		eachPoint(m.Gauge().DataPoints(), see)
	case pmetric.MetricTypeSum:
		eachPoint(m.Sum().DataPoints(), see)
	case pmetric.MetricTypeHistogram:
		eachPoint(m.Histogram().DataPoints(), see)
	case pmetric.MetricTypeExponentialHistogram:
		eachPoint(m.ExponentialHistogram().DataPoints(), see)
	case pmetric.MetricTypeSummary:
		none := pmetric.NewExemplarSlice()
		for _, p := range m.Summary().DataPoints().All() {
			see(p.Attributes(), none)
		}
	case pmetric.MetricTypeEmpty: // it has no points
	}
}

// point is what points have that can have exemplars, points what their slices have.
type (
	point interface {
		Attributes() pcommon.Map
		Exemplars() pmetric.ExemplarSlice
	}
	points[P point] interface {
		Len() int
		At(i int) P
	}
)

func eachPoint[P point, S points[P]](all S, see func(pcommon.Map, pmetric.ExemplarSlice)) {
	for i := range all.Len() {
		p := all.At(i)
		see(p.Attributes(), p.Exemplars())
	}
}
