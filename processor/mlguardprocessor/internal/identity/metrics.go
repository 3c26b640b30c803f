package identity

import (
	"context"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// Metrics removes from md, in place, points without a value, the points of services,
// instances and streams that are not admitted, and labels whose values never end, and
// replaces label values that are not admitted. If several streams become equal by that,
// only the first stays: values of different writers cannot be one series. It repairs
// times and texts that Prometheus would not show, and cuts long texts.
func (f *Filter) Metrics(ctx context.Context, md pmetric.Metrics) {
	p := metricsPass{pass: f.begin(ctx), clock: clockAt(f.now())}
	md.ResourceMetrics().RemoveIf(p.drops)
	f.report(ctx, f.telemetry.ProcessorMlGuardPointsOverflowed, &p.counts)
}

// metricsPass is the state of one call.
type metricsPass struct {
	pass
	clock clock
	// program is the hash of the service and the instance, metric that of the
	// program and the metric.
	program, metric uint64
	// line is the size of the labels of each series of the program, name that of the
	// metric's name and unit, once that of its description. lines are how many lines
	// the point's series has.
	line, name, once, lines int
	// unbounded are the labels of the metric that are left out.
	unbounded []string
}

// drops reports whether the whole resource is removed.
func (p *metricsPass) drops(rm pmetric.ResourceMetrics) bool {
	if resource := rm.Resource().Attributes(); !fitsResource(resource) {
		fitResource(resource)
	}
	s := p.readSource(rm.Resource().Attributes())
	refused, program := p.admitProgram(&s)
	if refused != kindCount {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				for range mlattr.Points(m) {
					p.counts[refused]++
				}
			}
		}
		return true
	}
	p.program = program
	p.line = lineOf(rm.Resource().Attributes(), isProgram)
	for _, sm := range rm.ScopeMetrics().All() {
		sm.Metrics().RemoveIf(func(m pmetric.Metric) bool {
			p.metric = mix(mix(p.program, p.hasher.text(m.Name())), uint64(m.Type()))
			p.unbounded = vocabulary.Unbounded(m.Name())
			if len(m.Description()) > maxDescriptionBytes {
				m.SetDescription(strings.ToValidUTF8(m.Description()[:maxDescriptionBytes], ""))
			}
			p.name, p.once = len(m.Name())+len(m.Unit()), len(m.Description())
			return p.empties(m)
		})
	}
	return false
}

// empties drops points, and reports whether a metric lost all of them.
func (p *metricsPass) empties(m pmetric.Metric) bool {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return filterPoints(p, m.Gauge().DataPoints(), oneLine, pmetric.AggregationTemporalityUnspecified)
	case pmetric.MetricTypeSum:
		return filterPoints(p, m.Sum().DataPoints(), oneLine, m.Sum().AggregationTemporality())
	case pmetric.MetricTypeHistogram:
		return filterPoints(p, m.Histogram().DataPoints(), linesOfHistogram, m.Histogram().AggregationTemporality())
	case pmetric.MetricTypeExponentialHistogram:
		return filterPoints(p, m.ExponentialHistogram().DataPoints(), linesOfExponential, m.ExponentialHistogram().AggregationTemporality())
	case pmetric.MetricTypeSummary:
		return filterPoints(p, m.Summary().DataPoints(), linesOfSummary, pmetric.AggregationTemporalityUnspecified)
	}
	return false // it has none
}

type points[P any] interface {
	Len() int
	RemoveIf(func(P) bool)
}

// The numbers of lines that points have in a scrape. Besides buckets and quantiles, these
// are the sum, the count, the infinite bucket and the time of creation.
func oneLine[P any](P) int                                         { return 1 }
func linesOfHistogram(p pmetric.HistogramDataPoint) int            { return p.ExplicitBounds().Len() + 4 }
func linesOfExponential(pmetric.ExponentialHistogramDataPoint) int { return 4 }
func linesOfSummary(p pmetric.SummaryDataPoint) int                { return p.QuantileValues().Len() + 3 }

func filterPoints[P point](p *metricsPass, all points[P], lines func(P) int, of pmetric.AggregationTemporality) bool {
	had := all.Len() > 0
	all.RemoveIf(func(point P) bool {
		p.lines = lines(point)
		if point.Flags().NoRecordedValue() || !p.keeps(point.Attributes()) {
			return true
		}
		p.clock.repair(point, of)
		return false
	})
	return had && all.Len() == 0
}

// keeps reports whether the stream of a point is admitted, after its labels.
func (p *metricsPass) keeps(attrs pcommon.Map) bool {
	if p.unbounded != nil {
		attrs.RemoveIf(func(key string, _ pcommon.Value) bool { return slices.Contains(p.unbounded, key) })
	}
	stream := p.stream(attrs)
	streams := p.tables[kindStream]
	if streams.fresh(stream, p.now, p.age) {
		return true // so its labels fit
	}
	if fitAll(attrs) {
		if stream = p.stream(attrs); streams.fresh(stream, p.now, p.age) {
			return true
		}
	}
	r := request{id: stream, group: p.program, sender: p.from}
	if p.checkLabels(attrs) {
		// Only the first stream with these labels may use it.
		r.id, r.owner = p.stream(attrs), stream
	}
	r.bytes = sizeOf(p.lines*(lineBytes+p.name+p.line+lineOf(attrs, nil)) + p.once)
	if streams.admit(r, p.now) {
		return true
	}
	p.counts[kindStream]++
	return false
}

// stream returns the hash of a point's series. More buckets are another one, because
// they are more lines.
func (p *metricsPass) stream(attrs pcommon.Map) uint64 {
	sum := mix(p.metric, uint64(p.lines))
	for key, v := range attrs.All() {
		sum += mix(p.hasher.text(key), p.hasher.value(v))
	}
	return sum
}

// checkLabels replaces label values that are not admitted, and reports whether
// there were any.
func (p *metricsPass) checkLabels(attrs pcommon.Map) (replaced bool) {
	for key, v := range attrs.All() {
		if v.Type() != pcommon.ValueTypeBool && !p.admitLabel(key, v) {
			v.SetStr(mlattr.Other)
			p.counts[kindOf(key)]++
			replaced = true
		}
	}
	if replaced {
		attrs.PutBool(mlattr.Overflow, true)
	}
	return replaced
}

// clock has the times that points may have.
type clock struct{ now, first, last pcommon.Timestamp }

func clockAt(now time.Time) clock {
	return clock{
		now:   pcommon.NewTimestampFromTime(now),
		first: pcommon.NewTimestampFromTime(now.Add(-mlattr.ClockBehind)),
		last:  pcommon.NewTimestampFromTime(now.Add(mlattr.ClockAhead)),
	}
}

// point is what points of all types have.
type point interface {
	Attributes() pcommon.Map
	Timestamp() pcommon.Timestamp
	SetTimestamp(pcommon.Timestamp)
	SetStartTimestamp(pcommon.Timestamp)
	Flags() pmetric.DataPointFlags
}

// repair gives a point the collector's time if its own is missing or wrong: Prometheus'
// exporter ignores points that are older than the one before.
func (c *clock) repair(p point, of pmetric.AggregationTemporality) {
	if at := p.Timestamp(); at >= c.first && at <= c.last {
		return
	}
	p.SetTimestamp(c.now)
	if of == pmetric.AggregationTemporalityDelta {
		p.SetStartTimestamp(c.now)
	}
	c.now++ // of deltas of a series with equal times, only the first would count
}
