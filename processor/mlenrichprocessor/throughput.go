package mlenrichprocessor

import (
	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatautil"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/metadata"
)

// tokenPoint is a point of a client's metric of which a rate can be made.
type tokenPoint struct {
	reading
	key streamKey
	// from is the hash of the resource's attributes.
	from [16]byte
	// attrs are the point's, to which what the enricher adds comes too.
	attrs    pcommon.Map
	resource int32
	metric   string
	meaning  *mlattr.Meaning
	basis    string
	// rate holds where rated.
	rate  float64
	rated bool
}

// streamKey identifies a stream: the metric of a scope of a resource with its
// attributes, as it came. An instance of the processor has its own streams:
// two pipelines may both get what one receiver sends.
type streamKey struct {
	instance uint32
	hash     [16]byte
}

// source is where the points of a metric come from.
type source struct {
	instance uint32
	resource int32
	// attrs are the resource's, and scope the scope's name and version.
	attrs [16]byte
	scope pcommon.InstrumentationScope
}

// rates says whether a rate can be made of a metric: it counts tokens, or has
// rates of them, of which a histogram says the mean.
func rates(meaning *mlattr.Meaning) bool {
	switch meaning.Measure {
	case mlattr.MeasureTokens:
		return meaning.Instrument != mlattr.Gauge
	case mlattr.MeasureTokenThroughput:
		return meaning.Instrument != mlattr.Gauge && meaning.Instrument != mlattr.Counter
	default:
		return false
	}
}

// readTokens collects the points of a metric that rates says yes to.
func (b *batch) readTokens(from source, m pmetric.Metric, meaning *mlattr.Meaning) {
	stream := pdatautil.Hash(
		pdatautil.WithString(string(from.attrs[:])),
		pdatautil.WithString(from.scope.Name()), pdatautil.WithString(from.scope.Version()), pdatautil.WithMap(from.scope.Attributes()),
		pdatautil.WithString(m.Name()), pdatautil.WithString(m.Type().String()))
	mean := meaning.Measure == mlattr.MeasureTokenThroughput
	add := func(attrs pcommon.Map, flags pmetric.DataPointFlags, r reading) {
		if flags.NoRecordedValue() {
			return
		}
		r.mean = mean
		r.sum *= meaning.Factor
		hash := pdatautil.Hash(pdatautil.WithString(string(stream[:])), pdatautil.WithMap(attrs))
		b.tokens = append(b.tokens, tokenPoint{reading: r, key: streamKey{from.instance, hash}, from: from.attrs, attrs: attrs,
			resource: from.resource, metric: m.Name(), meaning: meaning, basis: basisOf(m.Type(), mean)})
	}
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		// A counter, after a format that has none.
		if meaning.Instrument == mlattr.Counter {
			for _, p := range m.Gauge().DataPoints().All() {
				add(p.Attributes(), p.Flags(), numberReading(p, false))
			}
		}
	case pmetric.MetricTypeSum:
		if !mean {
			delta := isDelta(m.Sum().AggregationTemporality())
			for _, p := range m.Sum().DataPoints().All() {
				add(p.Attributes(), p.Flags(), numberReading(p, delta))
			}
		}
	case pmetric.MetricTypeHistogram:
		delta := isDelta(m.Histogram().AggregationTemporality())
		for _, p := range m.Histogram().DataPoints().All() {
			if p.HasSum() {
				add(p.Attributes(), p.Flags(), reading{start: uint64(p.StartTimestamp()), at: uint64(p.Timestamp()),
					sum: p.Sum(), count: p.Count(), delta: delta})
			}
		}
	case pmetric.MetricTypeExponentialHistogram:
		delta := isDelta(m.ExponentialHistogram().AggregationTemporality())
		for _, p := range m.ExponentialHistogram().DataPoints().All() {
			if p.HasSum() {
				add(p.Attributes(), p.Flags(), reading{start: uint64(p.StartTimestamp()), at: uint64(p.Timestamp()),
					sum: p.Sum(), count: p.Count(), delta: delta})
			}
		}
	case pmetric.MetricTypeSummary:
		for _, p := range m.Summary().DataPoints().All() {
			add(p.Attributes(), p.Flags(), reading{start: uint64(p.StartTimestamp()), at: uint64(p.Timestamp()),
				sum: p.Sum(), count: p.Count()})
		}
	}
}

// basisOf says how the rate of such a metric comes about.
func basisOf(t pmetric.MetricType, mean bool) string {
	switch {
	case mean:
		return mlattr.BasisMean
	case t == pmetric.MetricTypeSum || t == pmetric.MetricTypeGauge:
		return mlattr.BasisCounter
	default:
		return mlattr.BasisHistogram
	}
}

func isDelta(t pmetric.AggregationTemporality) bool {
	return t == pmetric.AggregationTemporalityDelta
}

func numberReading(p pmetric.NumberDataPoint, delta bool) reading {
	r := reading{start: uint64(p.StartTimestamp()), at: uint64(p.Timestamp()), delta: delta}
	switch p.ValueType() {
	case pmetric.NumberDataPointValueTypeInt:
		r.sum = float64(p.IntValue())
	case pmetric.NumberDataPointValueTypeDouble:
		r.sum = p.DoubleValue()
	default:
		r.at = 0 // no value at all
	}
	return r
}

// hasThroughput says whether a resource's rates are there already: from an
// ml_enrich before this one, or from the client itself.
func hasThroughput(rm pmetric.ResourceMetrics) bool {
	for _, sm := range rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			if m.Name() == mlattr.MeasureTokenThroughput {
				return true
			}
		}
	}
	return false
}

// addThroughput adds to each resource the rates of its metrics, in a scope of
// the processor's own. The client's metrics stay as they are.
func (e *enricher) addThroughput(md pmetric.Metrics, b *batch) {
	b.tokens = e.store.withoutRepeats(b.tokens)
	e.store.advance(b.tokens, e.minDuration, b.left)
	var points pmetric.NumberDataPointSlice
	resource := nowhere
	for i := range b.tokens {
		t := &b.tokens[i]
		if !t.rated {
			continue
		}
		if t.resource != resource {
			resource = t.resource
			sm := md.ResourceMetrics().At(int(resource)).ScopeMetrics().AppendEmpty()
			sm.Scope().SetName(metadata.ScopeName)
			m := sm.Metrics().AppendEmpty()
			m.SetName(mlattr.MeasureTokenThroughput)
			m.SetDescription("Tokens per second, by the counters and histograms of the client.")
			m.SetUnit("{token}/s")
			points = m.SetEmptyGauge().DataPoints()
		}
		t.write(points.AppendEmpty())
	}
}

// write fills a point with the rate.
func (t *tokenPoint) write(p pmetric.NumberDataPoint) {
	p.SetTimestamp(pcommon.Timestamp(t.at))
	p.SetDoubleValue(t.rate)
	attrs := p.Attributes()
	attrs.EnsureCapacity(t.attrs.Len() + 4)
	t.attrs.CopyTo(attrs)
	put := func(key, value string) {
		if value != "" && !labelTaken(attrs, key) {
			attrs.PutStr(key, value)
		}
	}
	put(mlattr.GenAITokenType, t.meaning.TokenType)
	put(mlattr.ThroughputBasis, t.basis)
	put(mlattr.ThroughputMetric, t.metric)
	if t.meaning.PerDevice {
		put(mlattr.ThroughputScope, mlattr.ScopeDevice)
	}
}
