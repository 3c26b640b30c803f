package route

import (
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// divideMetrics gives every resource one route.
func divideMetrics(md pmetric.Metrics, gpus *GPUs) {
	gpus.read(md)
	p := partition{budget: newBudget(), gpus: gpus}
	see := func(rm pmetric.ResourceMetrics) {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				p.ofGPU = ofGPU(m)
				for point := range mlattr.Points(m) {
					p.see(point.Attributes)
				}
			}
		}
	}
	divide(md.ResourceMetrics(), &p, sizeOfMetrics, see, func(rm pmetric.ResourceMetrics, stays string) {
		to := newCopies(rm, &p, md.ResourceMetrics().AppendEmpty, func(to pmetric.ResourceMetrics) pmetric.ScopeMetrics { return to.ScopeMetrics().AppendEmpty() })
		mover := pointMover{from: rm, partition: &p, stays: stays, copies: to, metrics: make(map[string]metricCopy)}
		mover.move()
	})
}

// sizeOfMetrics returns the encoded size of a resource, its scopes and metrics in
// bytes, without the points.
func sizeOfMetrics(rm pmetric.ResourceMetrics) int {
	shell := pmetric.NewResourceMetrics()
	rm.Resource().CopyTo(shell.Resource())
	for _, sm := range rm.ScopeMetrics().All() {
		to := shell.ScopeMetrics().AppendEmpty()
		sm.Scope().CopyTo(to.Scope())
		for _, m := range sm.Metrics().All() {
			copyHead(m, to.Metrics().AppendEmpty())
		}
	}
	return (&pmetric.ProtoMarshaler{}).ResourceMetricsSize(shell)
}

// copyHead copies what a metric is, without its points.
func copyHead(from, to pmetric.Metric) {
	to.SetName(from.Name())
	to.SetDescription(from.Description())
	to.SetUnit(from.Unit())
	from.Metadata().CopyTo(to.Metadata())
	switch from.Type() {
	case pmetric.MetricTypeGauge:
		to.SetEmptyGauge()
	case pmetric.MetricTypeSum:
		to.SetEmptySum().SetIsMonotonic(from.Sum().IsMonotonic())
		to.Sum().SetAggregationTemporality(from.Sum().AggregationTemporality())
	case pmetric.MetricTypeHistogram:
		to.SetEmptyHistogram().SetAggregationTemporality(from.Histogram().AggregationTemporality())
	case pmetric.MetricTypeExponentialHistogram:
		to.SetEmptyExponentialHistogram().SetAggregationTemporality(from.ExponentialHistogram().AggregationTemporality())
	case pmetric.MetricTypeSummary:
		to.SetEmptySummary()
	case pmetric.MetricTypeEmpty: // it has no points
	}
}

// pointMover moves the points of other runs than the one that stays to copies of
// their resource at the end of the list.
type pointMover struct {
	from      pmetric.ResourceMetrics
	partition *partition
	stays     string
	copies    *copies[pmetric.ResourceMetrics, pmetric.ScopeMetrics]
	// metrics are the last metrics of the copies by run.
	metrics map[string]metricCopy
	// scope and metric count those that were visited.
	scope, metric int
}

// metricCopy is a copy of the metric with a number, from 1.
type metricCopy struct {
	of     int
	metric pmetric.Metric
}

func (v *pointMover) move() {
	v.from.ScopeMetrics().RemoveIf(func(sm pmetric.ScopeMetrics) bool {
		v.scope++
		before := sm.Metrics().Len()
		sm.Metrics().RemoveIf(func(m pmetric.Metric) bool {
			v.metric++
			return v.moveMetric(sm, m)
		})
		return before > 0 && sm.Metrics().Len() == 0
	})
}

// moveMetric moves the points of one metric and reports whether none is left.
func (v *pointMover) moveMetric(sm pmetric.ScopeMetrics, m pmetric.Metric) bool {
	v.partition.ofGPU = ofGPU(m)
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return movePoints(v, sm, m, func(m pmetric.Metric) pmetric.NumberDataPointSlice { return m.Gauge().DataPoints() })
	case pmetric.MetricTypeSum:
		return movePoints(v, sm, m, func(m pmetric.Metric) pmetric.NumberDataPointSlice { return m.Sum().DataPoints() })
	case pmetric.MetricTypeHistogram:
		return movePoints(v, sm, m, func(m pmetric.Metric) pmetric.HistogramDataPointSlice { return m.Histogram().DataPoints() })
	case pmetric.MetricTypeExponentialHistogram:
		return movePoints(v, sm, m, func(m pmetric.Metric) pmetric.ExponentialHistogramDataPointSlice {
			return m.ExponentialHistogram().DataPoints()
		})
	case pmetric.MetricTypeSummary:
		return movePoints(v, sm, m, func(m pmetric.Metric) pmetric.SummaryDataPointSlice { return m.Summary().DataPoints() })
	case pmetric.MetricTypeEmpty: // it has no points
	}
	return false
}

func movePoints[P item[P], S slice[P]](v *pointMover, sm pmetric.ScopeMetrics, m pmetric.Metric, of func(pmetric.Metric) S) bool {
	points := of(m)
	before := points.Len()
	points.RemoveIf(func(one P) bool {
		run := v.partition.of(one.Attributes())
		if run == v.stays {
			return false
		}
		one.MoveTo(of(v.target(run, sm, m)).AppendEmpty())
		return true
	})
	return before > 0 && points.Len() == 0
}

// target returns the copy of a metric that has the points of a run.
func (v *pointMover) target(run string, sm pmetric.ScopeMetrics, m pmetric.Metric) pmetric.Metric {
	to := v.metrics[run]
	if to.of != v.metric {
		to = metricCopy{v.metric, v.copies.of(run, sm, v.scope).scope.Metrics().AppendEmpty()}
		copyHead(m, to.metric)
		v.metrics[run] = to
	}
	return to.metric
}
