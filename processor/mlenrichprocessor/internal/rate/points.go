package rate

import (
	"iter"
	"math"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/pdatautil"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/label"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/metadata"
)

// prometheusTokenType is mlattr.GenAITokenType as Prometheus spells it.
const prometheusTokenType = "gen_ai_token_type" //nolint:gosec // a name, no credential

// Points are the points of one request from which rates can be made. The zero
// value is ready for use, and can be used again after Reset.
type Points struct{ list []point }

// Reset forgets the points and keeps their memory.
func (ps *Points) Reset() {
	clear(ps.list)
	ps.list = ps.list[:0]
}

// point is a point of a client's metric.
type point struct {
	reading
	key streamKey
	// from is the hash of the resource's attributes.
	from [16]byte
	// attrs are the point's, including what is added to it later.
	attrs    pcommon.Map
	resource int
	metric   string
	meaning  *vocabulary.Meaning
	basis    string
	// rate is valid if rated.
	rate  float64
	rated bool
}

// Source is where the points of a metric come from.
type Source struct {
	// Instance is a number from Streams.Instances.
	Instance uint32
	// Resource is the index of the resource in its request, and Attributes the
	// hash of its attributes.
	Resource   int
	Attributes [16]byte
	Scope      pcommon.InstrumentationScope
}

// Usable reports whether rates can be made from a metric: it counts tokens, is a
// histogram of rates, or is the rate of all ranks of a job.
func Usable(meaning *vocabulary.Meaning) bool {
	switch meaning.Measure {
	case table.MeasureTokens:
		return meaning.Instrument != table.Gauge
	case table.MeasureTokenThroughput:
		return meaning.Instrument == table.Histogram || meaning.Instrument == table.Gauge && meaning.OfJob
	default:
		return false
	}
}

// Read adds the points of a metric that is Usable. It must be called before
// attributes are added to the points: these may change while the stream stays
// the same.
func (ps *Points) Read(from *Source, m pmetric.Metric, meaning *vocabulary.Meaning) {
	rated := meaning.Measure == table.MeasureTokenThroughput
	of := point{from: from.Attributes, resource: from.Resource, metric: m.Name(), meaning: meaning}
	of.reported = rated && meaning.Instrument == table.Gauge
	if of.reported && m.Type() != pmetric.MetricTypeGauge {
		return
	}
	of.mean = rated && !of.reported
	of.basis = of.basisOf(m.Type())
	of.key = streamKey{from.Instance, pdatautil.Hash(
		pdatautil.WithString(string(from.Attributes[:])),
		pdatautil.WithString(from.Scope.Name()), pdatautil.WithString(from.Scope.Version()), pdatautil.WithMap(from.Scope.Attributes()),
		pdatautil.WithString(m.Name()), pdatautil.WithString(m.Type().String()))}
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		// A counter, after a format that has none, or the client's own rate.
		if meaning.Instrument == table.Counter || of.reported {
			addNumbers(ps, of, m.Gauge().DataPoints(), 0)
		}
	case pmetric.MetricTypeSum:
		if !rated {
			addNumbers(ps, of, m.Sum().DataPoints(), m.Sum().AggregationTemporality())
		}
	case pmetric.MetricTypeHistogram:
		addSums(ps, of, m.Histogram().DataPoints().All(), m.Histogram().AggregationTemporality())
	case pmetric.MetricTypeExponentialHistogram:
		addSums(ps, of, m.ExponentialHistogram().DataPoints().All(), m.ExponentialHistogram().AggregationTemporality())
	case pmetric.MetricTypeSummary:
		for _, p := range m.Summary().DataPoints().All() {
			add(ps, of, p, p.Sum(), p.Count())
		}
	}
}

// addNumbers adds points of numbers. A temporality of 0 is none.
func addNumbers(ps *Points, of point, points pmetric.NumberDataPointSlice, t pmetric.AggregationTemporality) {
	of.delta = t == pmetric.AggregationTemporalityDelta
	for _, p := range points.All() {
		value, ok := mlattr.Number(p)
		if !ok {
			value = math.NaN()
		}
		add(ps, of, p, value, 0)
	}
}

// histogramPoint is what points of both kinds of histograms have.
type histogramPoint interface {
	dataPoint
	HasSum() bool
	Sum() float64
	Count() uint64
}

// addSums adds points of histograms that have a sum.
func addSums[P histogramPoint](ps *Points, of point, points iter.Seq2[int, P], t pmetric.AggregationTemporality) {
	of.delta = t == pmetric.AggregationTemporalityDelta
	for _, p := range points {
		if p.HasSum() {
			add(ps, of, p, p.Sum(), p.Count())
		}
	}
}

// dataPoint is what points of all types have.
type dataPoint interface {
	Attributes() pcommon.Map
	Flags() pmetric.DataPointFlags
	StartTimestamp() pcommon.Timestamp
	Timestamp() pcommon.Timestamp
}

// add adds a point to those of a metric, which of has the rest of.
func add[P dataPoint](ps *Points, of point, p P, sum float64, count uint64) {
	of.attrs = p.Attributes()
	if p.Flags().NoRecordedValue() || isReplica(of.attrs, of.meaning.Replicas) || !of.mean && of.meaning.TokenType == "" && !countsTokens(of.attrs) {
		return
	}
	of.start, of.at = uint64(p.StartTimestamp()), uint64(p.Timestamp())
	of.sum, of.count = sum*of.meaning.Factor, count
	of.key.hash = pdatautil.Hash(pdatautil.WithString(string(of.key.hash[:])), pdatautil.WithMap(of.attrs))
	ps.list = append(ps.list, of)
}

// isReplica reports whether a point repeats that of process 0 of its server.
// keys number the server's processes.
func isReplica(attrs pcommon.Map, keys []string) bool {
	for _, key := range keys {
		if v, ok := attrs.Get(key); ok {
			if process, ok := mlattr.ReadInt(v); ok && process != 0 {
				return true
			}
		}
	}
	return false
}

// countsTokens reports whether a point of a metric of any tokens counts input or output
// tokens, or does not state it. Tokens of any other type are among these: a total,
// or what a cache gave.
func countsTokens(attrs pcommon.Map) bool {
	kind, ok := attrs.Get(mlattr.GenAITokenType)
	if !ok {
		if kind, ok = attrs.Get(prometheusTokenType); !ok {
			return true
		}
	}
	switch kind.Str() {
	case mlattr.TokenTypeInput, mlattr.TokenTypeOutput, "prompt", "completion":
		return true
	default:
		return false
	}
}

// basisOf returns the basis of the rates of a metric.
func (p *point) basisOf(t pmetric.MetricType) string {
	switch {
	case p.reported:
		return mlattr.BasisReported
	case p.mean:
		return mlattr.BasisMean
	case t == pmetric.MetricTypeSum || t == pmetric.MetricTypeGauge:
		return mlattr.BasisCounter
	default:
		return mlattr.BasisHistogram
	}
}

// HasThroughput reports whether a resource has its rates already: from an
// ml_enrich before this one, or from the client itself.
func HasThroughput(rm pmetric.ResourceMetrics) bool {
	for _, sm := range rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			if m.Name() == table.MeasureTokenThroughput {
				return true
			}
		}
	}
	return false
}

// AddTo adds to each resource the rates of its points, as a metric in a scope
// of the processor's own.
func (ps *Points) AddTo(md pmetric.Metrics, streams *Streams, skipped Skipped) {
	ps.list = streams.withoutRepeats(ps.list)
	streams.advance(ps.list, skipped)
	var points pmetric.NumberDataPointSlice
	resource := -1
	for i := range ps.list {
		p := &ps.list[i]
		if !p.rated {
			continue
		}
		if p.resource != resource {
			resource = p.resource
			sm := md.ResourceMetrics().At(resource).ScopeMetrics().AppendEmpty()
			sm.Scope().SetName(metadata.ScopeName)
			m := sm.Metrics().AppendEmpty()
			m.SetName(table.MeasureTokenThroughput)
			m.SetDescription("Tokens per second, by the counters and histograms of the client.")
			m.SetUnit("{token}/s")
			points = m.SetEmptyGauge().DataPoints()
		}
		p.write(points.AppendEmpty())
	}
}

// write fills a new point with the rate.
func (p *point) write(to pmetric.NumberDataPoint) {
	to.SetTimestamp(pcommon.Timestamp(p.at))
	to.SetDoubleValue(p.rate)
	attrs := to.Attributes()
	attrs.EnsureCapacity(p.attrs.Len() + 5)
	p.attrs.CopyTo(attrs)
	put := func(key, value string) {
		if value != "" && !label.Taken(attrs, key) {
			attrs.PutStr(key, value)
		}
	}
	put(mlattr.GenAITokenType, p.meaning.TokenType)
	put(mlattr.ThroughputBasis, p.basis)
	put(mlattr.ThroughputMetric, p.metric)
	put(mlattr.Side, p.meaning.Side)
	switch {
	case p.meaning.PerDevice:
		put(mlattr.ThroughputScope, mlattr.ScopeDevice)
	case p.meaning.OfJob:
		put(mlattr.ThroughputScope, mlattr.ScopeGlobal)
	}
}
