package mlattr

import (
	"iter"

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

// Point is what points of all types of metrics have. Those of a summary have no exemplars.
type Point struct {
	Attributes pcommon.Map
	Exemplars  pmetric.ExemplarSlice
	// At is its time.
	At pcommon.Timestamp
	// NoValue reports whether it only says that there is no value.
	NoValue bool
}

// Points are the points of a metric, whatever its type.
func Points(m pmetric.Metric) iter.Seq[Point] {
	return func(yield func(Point) bool) {
		switch m.Type() {
		case pmetric.MetricTypeGauge:
			yieldPoints(m.Gauge().DataPoints().All(), yield)
		case pmetric.MetricTypeSum:
			yieldPoints(m.Sum().DataPoints().All(), yield)
		case pmetric.MetricTypeHistogram:
			yieldPoints(m.Histogram().DataPoints().All(), yield)
		case pmetric.MetricTypeExponentialHistogram:
			yieldPoints(m.ExponentialHistogram().DataPoints().All(), yield)
		case pmetric.MetricTypeSummary:
			none := pmetric.NewExemplarSlice()
			for _, p := range m.Summary().DataPoints().All() {
				if !yield(Point{p.Attributes(), none, p.Timestamp(), p.Flags().NoRecordedValue()}) {
					return
				}
			}
		case pmetric.MetricTypeEmpty: // it has no points
		}
	}
}

// point is what points have that can have exemplars.
type point interface {
	Attributes() pcommon.Map
	Exemplars() pmetric.ExemplarSlice
	Timestamp() pcommon.Timestamp
	Flags() pmetric.DataPointFlags
}

func yieldPoints[P point](all iter.Seq2[int, P], yield func(Point) bool) {
	for _, p := range all {
		if !yield(Point{p.Attributes(), p.Exemplars(), p.Timestamp(), p.Flags().NoRecordedValue()}) {
			return
		}
	}
}
