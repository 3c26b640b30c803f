package streams

import (
	"strconv"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Metrics removes what has expired and returns all live streams as metrics
// with the time stamp now, and the number of expired streams. prepare is
// called for the scope of each resource.
func (s *Store) Metrics(now time.Time, prepare func(pcommon.InstrumentationScope)) (_ pmetric.Metrics, expired int64) {
	b := builder{
		metrics:   pmetric.NewMetrics(),
		resources: make(map[Resource]*resourceBuilder),
		now:       pcommon.NewTimestampFromTime(now),
		prepare:   prepare,
	}
	var buffer []snapshot
	for i := range s.shards {
		var gone int64
		buffer, gone = s.collect(&s.shards[i], buffer[:0], now)
		expired += gone
		for j := range buffer {
			b.add(&buffer[j])
		}
	}
	s.runs.expire(s.limits.Expiration, now)
	return b.metrics, expired
}

type builder struct {
	metrics   pmetric.Metrics
	resources map[Resource]*resourceBuilder
	now       pcommon.Timestamp
	prepare   func(pcommon.InstrumentationScope)
}

// resourceBuilder holds the metrics of one resource, by series.
type resourceBuilder struct {
	scope   pmetric.ScopeMetrics
	present [series.Count]bool
	metric  [series.Count]pmetric.Metric
}

func (b *builder) add(snap *snapshot) {
	metric := b.resource(snap.key.Resource).of(snap.key.Series)
	start := pcommon.NewTimestampFromTime(snap.stream.start)
	switch s := &series.All[snap.key.Series]; s.Kind {
	case series.Counter:
		point := metric.Sum().DataPoints().AppendEmpty()
		point.SetStartTimestamp(start)
		point.SetTimestamp(b.now)
		point.SetIntValue(snap.stream.count)
		snap.key.putLabels(point.Attributes())
	case series.Total, series.State:
		point := metric.Sum().DataPoints().AppendEmpty()
		point.SetStartTimestamp(start)
		point.SetTimestamp(b.now)
		if s.Kind == series.State {
			point.SetIntValue(int64(snap.stream.value))
		} else {
			point.SetDoubleValue(snap.stream.value)
		}
		snap.key.putLabels(point.Attributes())
	case series.Gauge:
		point := metric.Gauge().DataPoints().AppendEmpty()
		point.SetTimestamp(b.now)
		point.SetDoubleValue(snap.stream.value)
		snap.key.putLabels(point.Attributes())
	case series.Histogram:
		point := metric.Histogram().DataPoints().AppendEmpty()
		point.SetStartTimestamp(start)
		point.SetTimestamp(b.now)
		point.SetCount(uint64(snap.stream.count)) // #nosec G115 -- counts observations
		point.SetSum(snap.stream.value)
		point.ExplicitBounds().FromRaw(s.Buckets)
		point.BucketCounts().FromRaw(snap.stream.buckets)
		snap.key.putLabels(point.Attributes())
	}
}

func (b *builder) resource(r Resource) *resourceBuilder {
	if rb, ok := b.resources[r]; ok {
		return rb
	}
	rm := b.metrics.ResourceMetrics().AppendEmpty()
	putNonEmpty(rm.Resource().Attributes(), mlattr.ServiceNamespace, r.Namespace)
	putNonEmpty(rm.Resource().Attributes(), mlattr.ServiceName, r.Service)
	rb := &resourceBuilder{scope: rm.ScopeMetrics().AppendEmpty()}
	b.prepare(rb.scope.Scope())
	b.resources[r] = rb
	return rb
}

// of returns the metric of a series, created by the table when it is new.
func (rb *resourceBuilder) of(id series.ID) pmetric.Metric {
	if rb.present[id] {
		return rb.metric[id]
	}
	s := &series.All[id]
	m := rb.scope.Metrics().AppendEmpty()
	m.SetName(s.Name)
	m.SetUnit(s.Unit)
	m.SetDescription(s.Description)
	switch s.Kind {
	case series.Counter, series.Total, series.State:
		sum := m.SetEmptySum()
		sum.SetIsMonotonic(s.Kind != series.State)
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	case series.Gauge:
		m.SetEmptyGauge()
	case series.Histogram:
		m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	}
	rb.present[id], rb.metric[id] = true, m
	return m
}

func (k *Key) putLabels(attrs pcommon.Map) {
	attrs.EnsureCapacity(len(series.RunLabels) + series.MaxLabels)
	for i, name := range series.All[k.Series].Labels {
		putNonEmpty(attrs, name, k.Labels[i])
	}
	putNonEmpty(attrs, mlattr.RunID, k.Run.ID)
	putNonEmpty(attrs, mlattr.JobID, k.Run.Job)
	if rank, err := strconv.ParseInt(k.Run.Rank, 10, 64); err == nil {
		attrs.PutInt(mlattr.RankGlobal, rank)
	} else {
		putNonEmpty(attrs, mlattr.RankGlobal, k.Run.Rank)
	}
	putNonEmpty(attrs, mlattr.HostName, k.Run.Host)
	if k.overflow {
		attrs.PutBool(series.Overflow, true)
	}
}

func putNonEmpty(attrs pcommon.Map, name, value string) {
	if value != "" {
		attrs.PutStr(name, value)
	}
}
