package mlattr

import "go.opentelemetry.io/collector/pdata/pmetric"

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
