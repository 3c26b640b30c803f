package rate

import (
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
	// Instance is a number from Streams.AddInstance.
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
	r := reader{ps: ps, from: from, metric: m.Name(), meaning: meaning, mean: meaning.Measure == table.MeasureTokenThroughput}
	if r.reported = r.mean && meaning.Instrument == table.Gauge; r.reported {
		if m.Type() != pmetric.MetricTypeGauge {
			return
		}
		r.mean = false
	}
	r.basis = r.basisOf(m.Type())
	r.stream = pdatautil.Hash(
		pdatautil.WithString(string(from.Attributes[:])),
		pdatautil.WithString(from.Scope.Name()), pdatautil.WithString(from.Scope.Version()), pdatautil.WithMap(from.Scope.Attributes()),
		pdatautil.WithString(m.Name()), pdatautil.WithString(m.Type().String()))
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		// A counter, after a format that has none, or the client's own rate.
		if meaning.Instrument == table.Counter || r.reported {
			r.numbers(m.Gauge().DataPoints(), false)
		}
	case pmetric.MetricTypeSum:
		if !r.mean {
			r.numbers(m.Sum().DataPoints(), isDelta(m.Sum().AggregationTemporality()))
		}
	case pmetric.MetricTypeHistogram:
		delta := isDelta(m.Histogram().AggregationTemporality())
		for _, p := range m.Histogram().DataPoints().All() {
			if p.HasSum() {
				add(&r, p, reading{sum: p.Sum(), count: p.Count(), delta: delta})
			}
		}
	case pmetric.MetricTypeExponentialHistogram:
		delta := isDelta(m.ExponentialHistogram().AggregationTemporality())
		for _, p := range m.ExponentialHistogram().DataPoints().All() {
			if p.HasSum() {
				add(&r, p, reading{sum: p.Sum(), count: p.Count(), delta: delta})
			}
		}
	case pmetric.MetricTypeSummary:
		for _, p := range m.Summary().DataPoints().All() {
			add(&r, p, reading{sum: p.Sum(), count: p.Count()})
		}
	}
}

// reader adds the points of one metric.
type reader struct {
	ps      *Points
	from    *Source
	metric  string
	meaning *vocabulary.Meaning
	mean    bool
	// reported is true for a rate that the client computed.
	reported bool
	basis    string
	stream   [16]byte
}

// dataPoint is what points of all types have.
type dataPoint interface {
	Attributes() pcommon.Map
	Flags() pmetric.DataPointFlags
	StartTimestamp() pcommon.Timestamp
	Timestamp() pcommon.Timestamp
}

// add adds a point, of whose value the times are not set.
func add[P dataPoint](r *reader, p P, value reading) {
	attrs := p.Attributes()
	if p.Flags().NoRecordedValue() || isReplica(attrs, r.meaning.Replicas) || !r.mean && r.meaning.TokenType == "" && !countsTokens(attrs) {
		return
	}
	value.start, value.at, value.mean = uint64(p.StartTimestamp()), uint64(p.Timestamp()), r.mean
	value.reported = r.reported
	value.sum *= r.meaning.Factor
	hash := pdatautil.Hash(pdatautil.WithString(string(r.stream[:])), pdatautil.WithMap(attrs))
	r.ps.list = append(r.ps.list, point{reading: value, key: streamKey{r.from.Instance, hash}, from: r.from.Attributes, attrs: attrs,
		resource: r.from.Resource, metric: r.metric, meaning: r.meaning, basis: r.basis})
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

func (r *reader) numbers(points pmetric.NumberDataPointSlice, delta bool) {
	for _, p := range points.All() {
		value := reading{delta: delta}
		switch p.ValueType() {
		case pmetric.NumberDataPointValueTypeInt:
			value.sum = float64(p.IntValue())
		case pmetric.NumberDataPointValueTypeDouble:
			value.sum = p.DoubleValue()
		default:
			value.sum = math.NaN() // no value at all
		}
		add(r, p, value)
	}
}

// basisOf returns the basis of the rates of a metric.
func (r *reader) basisOf(t pmetric.MetricType) string {
	switch {
	case r.reported:
		return mlattr.BasisReported
	case r.mean:
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
