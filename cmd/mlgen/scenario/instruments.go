package scenario

import (
	"fmt"
	"sort"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// sdkBounds are the SDKs' default histogram bounds.
var sdkBounds = []float64{0, 5, 10, 25, 50, 75, 100, 250, 500, 750, 1000, 2500, 5000, 7500, 10000}

// meter is a client's meter: instruments under one scope. Sums and histograms
// are cumulative since the process started, as the SDKs send them.
type meter struct {
	scope       string
	instruments []*instrument
}

type instrumentKind int

const (
	counter instrumentKind = iota
	upDownCounter
	gauge
	histogram
)

// instrument is one metric with its streams, kept in the order of first use.
type instrument struct {
	name        string
	description string
	unit        string
	kind        instrumentKind
	// double selects points of doubles instead of integers.
	double  bool
	bounds  []float64
	streams []*stream
	byAttrs map[string]*stream
}

type stream struct {
	attrs    []attr
	value    float64
	count    uint64
	min, max float64
	buckets  []uint64
}

// add creates an instrument with integer points, unless double is set on the
// result.
func (m *meter) add(kind instrumentKind, name, unit, description string) *instrument {
	i := &instrument{
		name: name, unit: unit, description: description, kind: kind,
		bounds:  sdkBounds,
		byAttrs: make(map[string]*stream),
	}
	m.instruments = append(m.instruments, i)
	return i
}

func (i *instrument) doubles() *instrument {
	i.double = true
	return i
}

// record adds to a counter, sets a gauge or records in a histogram.
func (i *instrument) record(value float64, attrs ...attr) {
	s := i.stream(attrs)
	switch i.kind {
	case gauge:
		s.value = value
	case histogram:
		if s.count == 0 || value < s.min {
			s.min = value
		}
		if s.count == 0 || value > s.max {
			s.max = value
		}
		s.value += value
		s.count++
		// Upper bounds are inclusive.
		s.buckets[sort.SearchFloat64s(i.bounds, value)]++
	default:
		s.value += value
	}
}

func (i *instrument) stream(attrs []attr) *stream {
	var key strings.Builder
	for _, a := range attrs {
		fmt.Fprintf(&key, "%s\x00%v\x00", a.key, a.value)
	}
	s, ok := i.byAttrs[key.String()]
	if !ok {
		s = &stream{attrs: attrs}
		if i.kind == histogram {
			s.buckets = make([]uint64, len(i.bounds)+1)
		}
		i.byAttrs[key.String()] = s
		i.streams = append(i.streams, s)
	}
	return s
}

// collect writes the instruments that have data.
func (m *meter) collect(to pmetric.ScopeMetrics, start, at time.Time) {
	to.Scope().SetName(m.scope)
	for _, i := range m.instruments {
		if len(i.streams) > 0 {
			i.collect(to.Metrics().AppendEmpty(), pcommon.NewTimestampFromTime(start), pcommon.NewTimestampFromTime(at))
		}
	}
}

func (i *instrument) collect(metric pmetric.Metric, start, at pcommon.Timestamp) {
	metric.SetName(i.name)
	metric.SetUnit(i.unit)
	metric.SetDescription(i.description)
	switch i.kind {
	case histogram:
		h := metric.SetEmptyHistogram()
		h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		for _, s := range i.streams {
			point := h.DataPoints().AppendEmpty()
			put(point.Attributes(), s.attrs)
			point.SetStartTimestamp(start)
			point.SetTimestamp(at)
			point.SetCount(s.count)
			point.SetSum(s.value)
			point.SetMin(s.min)
			point.SetMax(s.max)
			point.ExplicitBounds().FromRaw(i.bounds)
			point.BucketCounts().FromRaw(s.buckets)
		}
	case gauge:
		points := metric.SetEmptyGauge().DataPoints()
		for _, s := range i.streams {
			i.number(points.AppendEmpty(), s, at)
		}
	default:
		sum := metric.SetEmptySum()
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		sum.SetIsMonotonic(i.kind == counter)
		for _, s := range i.streams {
			point := sum.DataPoints().AppendEmpty()
			point.SetStartTimestamp(start)
			i.number(point, s, at)
		}
	}
}

func (i *instrument) number(point pmetric.NumberDataPoint, s *stream, at pcommon.Timestamp) {
	put(point.Attributes(), s.attrs)
	point.SetTimestamp(at)
	if i.double {
		point.SetDoubleValue(s.value)
		return
	}
	point.SetIntValue(int64(s.value))
}
