package intake

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/model"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Attributes of GPUs that mlattr has no name for.
const attrHardwareName = "hw.name"

// pointReader reads the points that the page shows. It keeps its memory.
type pointReader struct {
	store *model.Store
	// resource has what the resource says of all its points.
	resource   model.Labels
	device     *model.Device
	simulated  bool
	points     []model.Point
	devices    []*model.Device
	used       int
	overflowed bool
}

// maxKeptDevices limits the devices whose memory is kept between requests.
const maxKeptDevices = 4096

func (r *pointReader) read(md pmetric.Metrics) {
	for _, rm := range md.ResourceMetrics().All() {
		r.readResource(rm.Resource().Attributes())
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if series, ok := model.SeriesOf(m.Name()); ok {
					r.readMetric(series, m)
				}
			}
		}
	}
	r.flush()
	if r.overflowed {
		r.store.Overflowed()
	}
}

func (r *pointReader) flush() {
	r.store.ApplyPoints(r.points)
	clear(r.points)
	r.points = r.points[:0]
}

// reset clears all fields and keeps the memory.
func (r *pointReader) reset() {
	for _, d := range r.devices[:r.used] {
		*d = model.Device{}
	}
	if len(r.devices) > maxKeptDevices {
		r.devices = r.devices[:maxKeptDevices:maxKeptDevices]
	}
	*r = pointReader{points: r.points, devices: r.devices}
}

// newDevice returns a device, which is another one than before.
func (r *pointReader) newDevice() *model.Device {
	if r.used == len(r.devices) {
		r.devices = append(r.devices, new(model.Device))
	}
	r.used++
	return r.devices[r.used-1]
}

func (r *pointReader) readResource(attrs pcommon.Map) {
	r.resource, r.device, r.simulated = model.Labels{}, nil, false
	var device model.Device
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
		case mlattr.NVIDIAIndex:
			device.Index = text(v)
		case attrHardwareName:
			device.Name = text(v)
		case mlattr.HardwareParent:
			device.Parent = text(v)
		case mlattr.GPUSource:
			device.Source = text(v)
			r.simulated = r.simulated || device.Source != ""
		case attrSimulated:
			r.simulated = r.simulated || isTrue(v)
		}
	}
	if r.resource.GPU != "" {
		r.device = r.newDevice()
		*r.device = device
	}
}

func (r *pointReader) readMetric(series model.Series, m pmetric.Metric) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		r.readNumbers(series, m.Gauge().DataPoints(), false)
	case pmetric.MetricTypeSum:
		r.readNumbers(series, m.Sum().DataPoints(), m.Sum().AggregationTemporality() == pmetric.AggregationTemporalityDelta)
	case pmetric.MetricTypeHistogram:
		delta := m.Histogram().AggregationTemporality() == pmetric.AggregationTemporalityDelta
		for _, point := range m.Histogram().DataPoints().All() {
			if !point.HasSum() && !point.Flags().NoRecordedValue() {
				continue
			}
			p := model.Point{Delta: delta, Gone: point.Flags().NoRecordedValue(), Value: point.Sum(), Count: float64(point.Count()), Time: int64(point.Timestamp())}
			r.add(series, point.Attributes(), p)
		}
	case pmetric.MetricTypeExponentialHistogram:
		delta := m.ExponentialHistogram().AggregationTemporality() == pmetric.AggregationTemporalityDelta
		for _, point := range m.ExponentialHistogram().DataPoints().All() {
			if !point.HasSum() && !point.Flags().NoRecordedValue() {
				continue
			}
			p := model.Point{Delta: delta, Gone: point.Flags().NoRecordedValue(), Value: point.Sum(), Count: float64(point.Count()), Time: int64(point.Timestamp())}
			r.add(series, point.Attributes(), p)
		}
	}
}

func (r *pointReader) readNumbers(series model.Series, points pmetric.NumberDataPointSlice, delta bool) {
	for _, point := range points.All() {
		p := model.Point{Delta: delta, Gone: point.Flags().NoRecordedValue(), Time: int64(point.Timestamp())}
		switch point.ValueType() {
		case pmetric.NumberDataPointValueTypeInt:
			p.Value = float64(point.IntValue())
		case pmetric.NumberDataPointValueTypeDouble:
			p.Value = point.DoubleValue()
		case pmetric.NumberDataPointValueTypeEmpty:
			p.Gone = true
		}
		r.add(series, point.Attributes(), p)
	}
}

// add adds a point with the labels that its resource and its attributes have.
func (r *pointReader) add(series model.Series, attrs pcommon.Map, p model.Point) {
	p.Series, p.Simulated, p.GPU = series, r.simulated, r.device
	l := &p.Labels
	l.Namespace, l.Service, l.GPU = r.resource.Namespace, r.resource.Service, r.resource.GPU
	ofHardware := series.OfHardware()
	if ofHardware {
		l.Namespace, l.Service, l.Host = "", "", r.resource.Host
	}
	own, overflow := series.Own(), false
	var device model.Device
	for key, v := range attrs.All() {
		switch key {
		case mlattr.RunID:
			l.Run = text(v)
			continue
		case mlattr.JobID:
			l.Job = text(v)
			continue
		case mlattr.RankGlobal:
			l.Rank = text(v)
			continue
		case mlattr.HostName:
			l.Host = text(v)
			continue
		case mlattr.HardwareID:
			l.GPU = text(v)
			continue
		case mlattr.NVIDIAIndex:
			device.Index = text(v)
		case mlattr.HardwareParent:
			device.Parent = text(v)
		case mlattr.GPUSource:
			device.Source = text(v)
			p.Simulated = p.Simulated || device.Source != ""
		case mlattr.Overflow:
			overflow = overflow || isTrue(v)
		}
		for i, name := range own {
			if name == key {
				l.Own[i] = text(v)
			}
		}
	}
	if !series.Wants(l.Own[0]) {
		return
	}
	if overflow {
		r.overflowed = true
		if !ofHardware {
			l.Own[model.MaxOwn-1] = mlattr.Other
		}
	}
	if !ofHardware {
		p.GPU = nil
	} else if r.device == nil && device != (model.Device{}) {
		p.GPU = r.newDevice()
		*p.GPU = device
	}
	if r.points = append(r.points, p); len(r.points) >= maxBatch {
		r.flush()
	}
}
