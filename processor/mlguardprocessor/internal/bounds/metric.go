package bounds

import "go.opentelemetry.io/collector/pdata/pmetric"

func (c *cutter) metric(metric pmetric.Metric) {
	c.item()
	cutName(c, metric.Name(), metric.SetName)
	cutName(c, metric.Unit(), metric.SetUnit)
	if text := metric.Description(); len(text) > c.MaxValueBytes {
		metric.SetDescription(c.shorten(text, c.MaxValueBytes, ValueBytes))
	}
	c.attributes(metric.Metadata())
	switch metric.Type() {
	case pmetric.MetricTypeGauge:
		c.numbers(metric.Gauge().DataPoints())
	case pmetric.MetricTypeSum:
		c.numbers(metric.Sum().DataPoints())
	case pmetric.MetricTypeHistogram:
		points := metric.Histogram().DataPoints()
		admit(c, points, pmetric.NewHistogramDataPointSlice, c.MaxItems, Items)
		for _, point := range points.All() {
			c.histogram(point)
		}
	case pmetric.MetricTypeExponentialHistogram:
		c.exponential(metric.ExponentialHistogram().DataPoints())
	case pmetric.MetricTypeSummary:
		c.summaries(metric.Summary().DataPoints())
	}
}

func (c *cutter) numbers(points pmetric.NumberDataPointSlice) {
	admit(c, points, pmetric.NewNumberDataPointSlice, c.MaxItems, Items)
	for _, point := range points.All() {
		c.item()
		c.attributes(point.Attributes())
		c.exemplars(point.Exemplars())
	}
}

// histogram removes all buckets if there are too many: the remaining ones would
// not add up to the count.
func (c *cutter) histogram(point pmetric.HistogramDataPoint) {
	c.item()
	c.attributes(point.Attributes())
	c.exemplars(point.Exemplars())
	if max(point.BucketCounts().Len(), point.ExplicitBounds().Len()) > c.MaxElements {
		c.counts[Elements]++
		point.BucketCounts().FromRaw(nil)
		point.ExplicitBounds().FromRaw(nil)
	}
}

// exponential drops points with too many buckets: without buckets, a point
// would state that all its values are zero.
func (c *cutter) exponential(points pmetric.ExponentialHistogramDataPointSlice) {
	admit(c, points, pmetric.NewExponentialHistogramDataPointSlice, c.MaxItems, Items)
	n := points.Len()
	points.RemoveIf(func(point pmetric.ExponentialHistogramDataPoint) bool {
		return max(point.Positive().BucketCounts().Len(), point.Negative().BucketCounts().Len()) > c.MaxElements
	})
	c.counts[Elements] += int64(n - points.Len())
	for _, point := range points.All() {
		c.item()
		c.attributes(point.Attributes())
		c.exemplars(point.Exemplars())
	}
}

func (c *cutter) summaries(points pmetric.SummaryDataPointSlice) {
	admit(c, points, pmetric.NewSummaryDataPointSlice, c.MaxItems, Items)
	for _, point := range points.All() {
		c.item()
		c.attributes(point.Attributes())
		if quantiles := point.QuantileValues(); quantiles.Len() > c.MaxElements {
			c.counts[Elements]++
			keepFirst(quantiles, c.MaxElements, pmetric.NewSummaryDataPointValueAtQuantileSlice)
		}
	}
}

func (c *cutter) exemplars(exemplars pmetric.ExemplarSlice) {
	admit(c, exemplars, pmetric.NewExemplarSlice, c.MaxElements, Elements)
	for _, exemplar := range exemplars.All() {
		c.item()
		c.attributes(exemplar.FilteredAttributes())
	}
}
