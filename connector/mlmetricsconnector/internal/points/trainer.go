package points

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/training"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// trainingPoints are the points of a resource that show the progress of a trainer
// whose steps may have no spans.
type trainingPoints []training.Point

// read adds the points of a metric. known are the clients that its resource and its
// scope identify.
func (p *trainingPoints) read(known vocabulary.System, m pmetric.Metric) {
	reader := vocabulary.Default()
	meaning, ok := reader.MetricMeaning(known|reader.Metric(m.Name()), m.Name(), m.Unit())
	if !ok || !meaning.System.Has(table.StepsInMetrics) || !training.Shows(&meaning.Metric) {
		return
	}
	point := training.Point{Metric: m.Name(), Measure: meaning.Measure, Instrument: meaning.Instrument}
	sent := false
	add := func(flags pmetric.DataPointFlags, at pcommon.Timestamp, value float64, count uint64) {
		if !flags.NoRecordedValue() {
			sent = true
			point.Value += value * meaning.Factor
			point.Count += count
			point.At = max(point.At, int64(min(at, maxTime))) // #nosec G115 -- not above maxTime
		}
	}
	switch {
	case meaning.Instrument != table.Histogram:
		point.Delta = m.Type() == pmetric.MetricTypeSum && m.Sum().AggregationTemporality() == pmetric.AggregationTemporalityDelta
		for _, one := range mlattr.NumberPoints(m).All() {
			add(one.Flags(), one.Timestamp(), Number(one), 0)
			if meaning.Instrument == table.Gauge {
				break // the others are of other things
			}
		}
	case m.Type() == pmetric.MetricTypeHistogram:
		point.Delta = m.Histogram().AggregationTemporality() == pmetric.AggregationTemporalityDelta
		for _, one := range m.Histogram().DataPoints().All() {
			add(one.Flags(), one.Timestamp(), one.Sum(), one.Count())
		}
	case m.Type() == pmetric.MetricTypeExponentialHistogram:
		point.Delta = m.ExponentialHistogram().AggregationTemporality() == pmetric.AggregationTemporalityDelta
		for _, one := range m.ExponentialHistogram().DataPoints().All() {
			add(one.Flags(), one.Timestamp(), one.Sum(), one.Count())
		}
	}
	if sent {
		*p = append(*p, point)
	}
}

// maxTime is the largest time of a point that is read, in the year 2262.
const maxTime = pcommon.Timestamp(1<<63 - 1)
