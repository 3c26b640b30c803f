package streams

import (
	"cmp"
	"errors"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

const (
	// chunk is the number of streams whose points are built under one lock.
	// BenchmarkHold shows the time: a fraction of a millisecond.
	chunk = 16
	// maxPoints is the number of points of one Pass. A histogram's point has
	// some 600 bytes as OTLP, so this is less than the 4 MiB that gRPC servers
	// accept.
	maxPoints = 4096
)

// Flusher sends the streams of a Store. A store has one. It is not safe for
// concurrent use.
type Flusher struct {
	// Store holds the streams.
	Store *Store
	// InitialZero is how long a new counter or histogram is emitted as zero
	// before its value is emitted.
	InitialZero time.Duration
	// Prepare is called for the scope of each resource.
	Prepare func(pcommon.InstrumentationScope)
	// Pass is called with at most maxPoints points at a time. Flush returns its
	// errors.
	Pass func(pmetric.Metrics) error
	// Ahead, if it is not nil, is called before all that Pass is called with, and saves at
	// least that: a counter that went back over a restart would be added up again.
	Ahead func()

	// Writer is an attribute that every point gets. Without a name there is none.
	Writer Label

	// Last sends all streams with their values, including those that are sent
	// for the first time.
	Last bool
}

// Label is an attribute with text.
type Label struct{ Name, Value string }

// Flush sends all live streams with the time stamp now. A stream that has
// expired, or whose run is in evicted, is sent once more as a point without a
// value, and removed when that was accepted. Flush returns the number of
// removed streams, and all errors of Pass.
func (f *Flusher) Flush(now time.Time, evicted Evicted) (removed int64, err error) {
	expiration := f.Store.limits.Expiration
	is := ends{now, expiration, f.Store.silences.all(expiration, now), evicted, f.Store.runs.held()}
	var parts []*builder
	f.Store.each(func(st *stream) {
		if !st.Expired && is.over(st) {
			st.Expired = true
			st.reset()
		}
		st.Shown = cmp.Or(st.Shown, now)
		if n := len(parts); n == 0 || parts[n-1].points >= maxPoints {
			parts = append(parts, f.newBuilder(now))
		}
		b := parts[len(parts)-1]
		if !f.Last && st.addsUp() && now.Sub(st.Shown) < f.InitialZero {
			b.add(st.zero())
		} else {
			b.add(st)
			st.exemplars = st.exemplars[:0]
		}
		if st.Expired {
			b.expired = append(b.expired, st)
		}
	})
	if len(parts) > 0 && f.Ahead != nil {
		f.Ahead()
	}
	for _, b := range parts {
		if passed := f.Pass(b.metrics); passed != nil {
			err = errors.Join(err, passed)
		} else {
			removed += f.Store.removeExpired(b.expired)
		}
	}
	f.Store.runs.expire(expiration, now)
	return removed, err
}

// removeExpired removes streams, unless they have restarted.
func (s *Store) removeExpired(streams []*stream) (removed int64) {
	s.walk.Lock()
	defer s.walk.Unlock()
	for _, st := range streams {
		sh := s.shardOf(st.hash)
		sh.mu.Lock()
		if st.Expired {
			s.remove(sh, st)
			removed++
		}
		sh.mu.Unlock()
	}
	return removed
}

// ends says which streams have ended.
type ends struct {
	now        time.Time
	expiration time.Duration
	silences   map[Resource]Set
	evicted    Evicted
	// held are the runs whose streams do not expire.
	held map[RunKey]bool
}

// over reports whether a stream has ended: it has expired, or its program now sends it itself.
func (e *ends) over(st *stream) bool {
	held := false
	if st.Run.ID != "" && len(e.evicted)+len(e.held) > 0 {
		key := RunKey{st.Resource, st.Run.ID}
		if at, is := e.evicted[key]; is && !st.Updated.After(at) {
			return true
		}
		held = e.held[key]
	}
	old := e.expiration > 0 && !held && e.now.Sub(st.Updated) > e.expiration
	return old || series.All[st.series].Momentary && st.at != e.now.UnixNano() ||
		!st.OfAll && len(e.silences) > 0 && e.silences[st.Resource][st.series]
}

// builder builds metrics from streams. Who adds a stream holds the lock of its shard.
type builder struct {
	*Flusher
	metrics   pmetric.Metrics
	resources map[Resource]*resourceBuilder
	now       pcommon.Timestamp
	points    int
	// expired are the streams that end with the points.
	expired []*stream
}

func (f *Flusher) newBuilder(now time.Time) *builder {
	return &builder{
		Flusher: f, metrics: pmetric.NewMetrics(), resources: make(map[Resource]*resourceBuilder), now: pcommon.NewTimestampFromTime(now),
	}
}

// resourceBuilder holds the metrics of one resource, by series.
type resourceBuilder struct {
	scope  pmetric.ScopeMetrics
	metric map[series.ID]pmetric.Metric
}

func (b *builder) add(st *stream) {
	b.points++
	rb := b.resource(st.Resource)
	metric := rb.of(st.series, st.Expired)
	kind := series.All[st.series].Kind
	if kind == series.Histogram {
		if series.All[st.series].Counted {
			point := begin(b, rb.of(st.series-1, st.Expired).Sum().DataPoints().AppendEmpty(), st)
			if b.points++; !st.Expired {
				point.SetIntValue(st.Count)
			}
		}
		point := begin(b, metric.Histogram().DataPoints().AppendEmpty(), st)
		if !st.Expired {
			point.SetCount(uint64(st.Count)) // #nosec G115 -- counts observations
			point.SetSum(st.Value)
			point.ExplicitBounds().FromRaw(st.bounds)
			point.BucketCounts().FromRaw(st.Buckets)
			st.putExemplars(point.Exemplars())
		}
		return
	}
	point := begin(b, mlattr.NumberPoints(metric).AppendEmpty(), st)
	switch {
	case st.Expired:
	case kind == series.Counter, kind == series.Balance:
		point.SetIntValue(st.Count)
		st.putExemplars(point.Exemplars())
	case kind == series.State:
		point.SetIntValue(int64(st.Value))
	default:
		point.SetDoubleValue(st.Value)
	}
}

// dataPoint is what points have in common.
type dataPoint interface {
	SetStartTimestamp(pcommon.Timestamp)
	SetTimestamp(pcommon.Timestamp)
	SetFlags(pmetric.DataPointFlags)
	Attributes() pcommon.Map
}

// begin sets all of a point but its value.
func begin[P dataPoint](b *builder, point P, st *stream) P {
	if series.All[st.series].Kind != series.Gauge {
		point.SetStartTimestamp(pcommon.NewTimestampFromTime(st.Start))
	}
	point.SetTimestamp(b.now)
	point.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(st.Expired))
	b.putLabels(point.Attributes(), st)
	return point
}

func (b *builder) resource(r Resource) *resourceBuilder {
	return shared.Entry(b.resources, r, func() *resourceBuilder {
		rm := b.metrics.ResourceMetrics().AppendEmpty()
		mlattr.PutText(rm.Resource().Attributes(), mlattr.ServiceNamespace, r.Namespace)
		mlattr.PutText(rm.Resource().Attributes(), mlattr.ServiceName, r.Service)
		rb := &resourceBuilder{scope: rm.ScopeMetrics().AppendEmpty(), metric: make(map[series.ID]pmetric.Metric)}
		b.Prepare(rb.scope.Scope())
		return rb
	})
}

// of returns the metric of a series for the next point. One without a value has its own,
// because the prometheus exporter ignores what follows such a point in the same metric.
func (rb *resourceBuilder) of(id series.ID, expired bool) pmetric.Metric {
	if expired {
		return rb.create(id)
	}
	return shared.Entry(rb.metric, id, func() pmetric.Metric { return rb.create(id) })
}

// create creates a metric as the table describes it.
func (rb *resourceBuilder) create(id series.ID) pmetric.Metric {
	s := &series.All[id]
	m := rb.scope.Metrics().AppendEmpty()
	m.SetName(s.Name)
	m.SetUnit(s.Unit)
	m.SetDescription(s.Description)
	switch s.Kind {
	case series.Gauge:
		m.SetEmptyGauge()
	case series.Histogram:
		m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	default:
		sum := m.SetEmptySum()
		sum.SetIsMonotonic(s.Kind == series.Counter || s.Kind == series.Total)
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	}
	return m
}

func (b *builder) putLabels(attrs pcommon.Map, st *stream) {
	attrs.EnsureCapacity(len(series.RunLabels) + len(st.Labels) + 2)
	for i, value := range st.Labels {
		PutLabel(attrs, series.All[st.series].Labels[i], value)
	}
	mlattr.PutText(attrs, mlattr.RunID, st.Run.ID)
	mlattr.PutText(attrs, mlattr.JobID, st.Run.Job)
	PutLabel(attrs, mlattr.RankGlobal, st.Run.Rank)
	mlattr.PutText(attrs, mlattr.HostName, st.Run.Host)
	if st.Overflow {
		attrs.PutBool(series.Overflow, true)
	}
	if b.Writer.Name != "" {
		attrs.PutStr(b.Writer.Name, b.Writer.Value)
	}
}

// putExemplars adds the ids of spans. It adds no attributes of the spans, which
// may contain content.
func (st *stream) putExemplars(to pmetric.ExemplarSlice) {
	to.EnsureCapacity(len(st.exemplars))
	for i := range st.exemplars {
		e := to.AppendEmpty()
		e.SetTraceID(st.exemplars[i].trace)
		e.SetSpanID(st.exemplars[i].span)
		e.SetTimestamp(pcommon.Timestamp(st.exemplars[i].at)) // #nosec G115 -- clamped to the collector's clock
		e.SetDoubleValue(st.exemplars[i].value)
	}
}

// PutLabel adds a label that is not empty. A rank and a port are whole numbers.
func PutLabel(attrs pcommon.Map, name, value string) {
	if name == mlattr.RankGlobal || name == series.ServerPort || name == mlattr.NVIDIAIndex {
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			attrs.PutInt(name, n)
			return
		}
	}
	mlattr.PutText(attrs, name, value)
}
