package intake

import (
	"hash/maphash"
	"math/bits"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/fleet"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/model"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

// pointReader reads the points that the page shows. It keeps its memory.
//
// Most points repeat a stream that the model knows. Of these only the value is read;
// labels are read of the others.
type pointReader struct {
	store   *model.Store
	sender  share.Sender
	hash    hash
	updates []series.Update
	// from has where each update comes from, and resources their resources.
	from      []pointSource
	resources []pcommon.Map
	unknown   []int

	// connection is the collector of a fleet that has sent the request, collector the
	// one that the resource names, or else that.
	connection, collector fleet.Connection
	// resource has what a resource says of all its points.
	resource  series.Labels
	device    *series.Device
	simulated bool
	points    []series.Point
}

// pointSource is what labels are read from.
type pointSource struct {
	series   series.Series
	resource int
	attrs    pcommon.Map
}

func (r *pointReader) read(md pmetric.Metrics) {
	sender := uint64(0)
	if name := r.connection.Name(); name != "" {
		sender = maphash.String(r.hash.seed, name)
	}
	for _, rm := range md.ResourceMetrics().All() {
		attrs := rm.Resource().Attributes()
		r.resources = append(r.resources, attrs)
		origin := r.hash.attributes(sender, attrs)
		others := false
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if metric, ok := series.ByName[m.Name()]; ok {
					r.readMetric(metric, r.hash.number(origin, uint64(metric)), m)
				} else {
					others = others || !mlattr.IsDerived(m.Name())
				}
			}
		}
		if others {
			r.store.SeeHost(mlattr.TextAt(attrs, mlattr.HostName))
		}
	}
	r.flush()
}

// flush adds the points to the model.
func (r *pointReader) flush() {
	r.unknown = r.store.ApplyUpdates(r.updates, r.unknown[:0])
	resource := -1
	for _, i := range r.unknown {
		if from := &r.from[i]; from.resource != resource {
			resource = from.resource
			r.readResource(r.resources[resource])
		}
		r.readLabels(&r.from[i], &r.updates[i])
	}
	r.store.ApplyPoints(r.points)
	clear(r.points)
	clear(r.from)
	r.updates, r.from, r.points = r.updates[:0], r.from[:0], r.points[:0]
}

// reset clears all fields and keeps the memory.
func (r *pointReader) reset() {
	clear(r.resources)
	*r = pointReader{updates: r.updates, from: r.from, resources: r.resources[:0], unknown: r.unknown, points: r.points}
}

func (r *pointReader) readResource(attrs pcommon.Map) {
	r.resource, r.device, r.simulated, r.collector = series.Labels{}, nil, false, r.connection
	var device series.Device
	for key, v := range attrs.All() {
		switch key {
		case mlattr.ServiceName:
			r.resource.Service = text(v)
		case mlattr.ServiceNamespace:
			r.resource.Namespace = text(v)
		case mlattr.HostName:
			r.resource.Host = text(v)
		case mlattr.HardwareID:
			r.resource.GPU = text(v)
		case attrCollector, labelCollector:
			r.collector = name(r.connection, v)
		case attrSimulated:
			r.simulated = r.simulated || isTrue(v)
		default:
			device.Read(key, v)
		}
	}
	r.simulated = r.simulated || device.Source != ""
	if r.resource.GPU != "" {
		r.device = &device
	}
}

func (r *pointReader) readMetric(metric series.Series, origin uint64, m pmetric.Metric) {
	switch m.Type() {
	case pmetric.MetricTypeGauge, pmetric.MetricTypeSum:
		delta := m.Type() == pmetric.MetricTypeSum && m.Sum().AggregationTemporality() == pmetric.AggregationTemporalityDelta
		for _, point := range mlattr.NumberPoints(m).All() {
			value, ok := mlattr.Number(point)
			r.add(metric, origin, point.Attributes(), series.Update{Delta: delta, Gone: !ok, Value: value, Time: int64(point.Timestamp())})
		}
	case pmetric.MetricTypeHistogram:
		delta := m.Histogram().AggregationTemporality() == pmetric.AggregationTemporalityDelta
		for _, point := range m.Histogram().DataPoints().All() {
			if !point.HasSum() && !point.Flags().NoRecordedValue() {
				continue
			}
			u := series.Update{Delta: delta, Gone: point.Flags().NoRecordedValue(), Value: point.Sum(), Count: float64(point.Count()), Time: int64(point.Timestamp())}
			r.add(metric, origin, point.Attributes(), u)
		}
	}
}

// add adds a point of the resource that was read last.
func (r *pointReader) add(metric series.Series, origin uint64, attrs pcommon.Map, u series.Update) {
	u.Origin = max(1, r.hash.attributes(origin, attrs)) // 0 is none
	r.from = append(r.from, pointSource{metric, len(r.resources) - 1, attrs})
	if r.updates = append(r.updates, u); len(r.updates) >= maxBatch {
		r.flush()
	}
}

// readLabels adds a point with the labels that its resource and its attributes have.
func (r *pointReader) readLabels(from *pointSource, u *series.Update) {
	metric := from.series
	p := series.Point{Update: *u, Series: metric, Simulated: r.simulated, GPU: r.device, From: r.collector, Sender: r.sender}
	l := &p.Labels
	l.Namespace, l.Service, l.GPU = r.resource.Namespace, r.resource.Service, r.resource.GPU
	ofHardware := metric.OfHardware()
	if ofHardware {
		l.Namespace, l.Service, l.Host = "", "", r.resource.Host
	}
	var device series.Device
	for key, v := range from.attrs.All() {
		switch key {
		case mlattr.RunID:
			l.Run = text(v)
		case mlattr.JobID:
			l.Job = text(v)
		case mlattr.RankGlobal:
			l.Rank = text(v)
		case mlattr.HostName:
			l.Host = text(v)
		case mlattr.HardwareID:
			l.GPU = text(v)
		case attrCollector, labelCollector:
			p.From = name(r.connection, v)
		case mlattr.HardwareType:
			if ofHardware && text(v) != mlattr.HardwareTypeGPU {
				return // a fan, a disk
			}
		case mlattr.Overflow:
			p.Overflow = p.Overflow || isTrue(v)
		default:
			device.Read(key, v)
		}
		if i := slices.Index(metric.Own(), key); i >= 0 {
			l.Own[i] = text(v)
		}
	}
	if !metric.Wants(l.Own[0]) {
		return
	}
	p.Simulated = p.Simulated || device.Source != ""
	if p.Overflow && !ofHardware {
		l.Own[series.MaxOwn-1] = mlattr.Other
	}
	if !ofHardware {
		p.GPU = nil
	} else if r.device == nil && device != (series.Device{}) {
		p.GPU = new(device)
	}
	r.points = append(r.points, p)
}

// hash computes the Origin of points: a hash of all that their labels are read from,
// with a seed of this process. The probability that any two of 100,000 streams have the
// same one is below 1 in 100 million.
type hash struct {
	seed   maphash.Seed
	secret uint64
}

// number returns the hash of what h has, and of a number.
func (h *hash) number(of, n uint64) uint64 {
	high, low := bits.Mul64(of^n, h.secret)
	return high ^ low
}

// attributes returns the hash of what h has, and of attributes. Values that are no
// labels are told apart by their types alone.
func (h *hash) attributes(of uint64, attrs pcommon.Map) uint64 {
	for key, v := range attrs.All() {
		of = h.number(of, maphash.String(h.seed, key))
		switch kind := v.Type(); kind {
		case pcommon.ValueTypeStr:
			of = h.number(of, maphash.String(h.seed, v.Str()))
		case pcommon.ValueTypeInt:
			of = h.number(bits.RotateLeft64(of, int(kind)), uint64(v.Int()))
		case pcommon.ValueTypeBool:
			of = h.number(bits.RotateLeft64(of, int(kind)), uint64(len(text(v))))
		default:
			of = h.number(of, uint64(kind))
		}
	}
	return of
}
