package route

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// divideMetrics gives every resource one route.
func divideMetrics(md pmetric.Metrics, gpus *GPUs) {
	gpus.read(md)
	p := partition{budget: newBudget(), gpus: gpus}
	divide(md.ResourceMetrics(), &p, pmetric.ResourceMetrics.ScopeMetrics, pmetric.ScopeMetrics.Metrics, signal[pmetric.ResourceMetrics, pmetric.ScopeMetrics, pmetric.Metric]{
		size: sizeOfMetrics,
		see: func(m pmetric.Metric) {
			p.ofGPU = ofGPU(m)
			for point := range mlattr.Points(m) {
				p.see(point.Attributes)
			}
		},
		run: func(m pmetric.Metric) string {
			p.ofGPU = ofGPU(m)
			for point := range mlattr.Points(m) {
				return p.of(point.Attributes) // of all its points
			}
			return p.stays()
		},
		apart: p.apart,
	})
}

// apart gives the points of each run that does not stay a metric of their own, at the end of
// the scope.
func (p *partition) apart(scope pmetric.ScopeMetrics, stays string) {
	others := pmetric.NewMetricSlice()
	scope.Metrics().RemoveIf(func(m pmetric.Metric) bool {
		p.ofGPU = ofGPU(m)
		switch m.Type() {
		case pmetric.MetricTypeGauge, pmetric.MetricTypeSum:
			return movePoints(p, m, stays, others, mlattr.NumberPoints)
		case pmetric.MetricTypeHistogram:
			return movePoints(p, m, stays, others, func(m pmetric.Metric) pmetric.HistogramDataPointSlice { return m.Histogram().DataPoints() })
		case pmetric.MetricTypeExponentialHistogram:
			return movePoints(p, m, stays, others, func(m pmetric.Metric) pmetric.ExponentialHistogramDataPointSlice {
				return m.ExponentialHistogram().DataPoints()
			})
		case pmetric.MetricTypeSummary:
			return movePoints(p, m, stays, others, func(m pmetric.Metric) pmetric.SummaryDataPointSlice { return m.Summary().DataPoints() })
		}
		return false // it has no points
	})
	others.MoveAndAppendTo(scope.Metrics())
}

// movePoints moves the points of other runs than the one that stays to metrics of their own,
// and reports whether none is left.
func movePoints[P point[P], S slice[P]](p *partition, m pmetric.Metric, stays string, others pmetric.MetricSlice, points func(pmetric.Metric) S) bool {
	had, byRun := points(m).Len() > 0, make(map[string]S)
	points(m).RemoveIf(func(one P) bool {
		run := p.of(one.Attributes())
		if run == stays {
			return false
		}
		to, known := byRun[run]
		if !known {
			other := others.AppendEmpty()
			copyHead(m, other)
			to = points(other)
			byRun[run] = to
		}
		one.MoveTo(to.AppendEmpty())
		return true
	})
	return had && points(m).Len() == 0
}

// point is what points of all types have.
type point[P any] interface {
	Attributes() pcommon.Map
	item[P]
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
	}
}
