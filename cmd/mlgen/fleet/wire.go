package fleet

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/scenario"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
)

// Attr is one attribute. Its value is a string, a bool, an int, an int64, a
// float64 or a list of strings.
type Attr struct {
	Key   string
	Value any
}

func put(to pcommon.Map, lists ...[]Attr) {
	for _, list := range lists {
		for _, a := range list {
			switch v := a.Value.(type) {
			case string:
				to.PutStr(a.Key, v)
			case bool:
				to.PutBool(a.Key, v)
			case int:
				to.PutInt(a.Key, int64(v))
			case int64:
				to.PutInt(a.Key, v)
			case float64:
				to.PutDouble(a.Key, v)
			case []string:
				items := to.PutEmptySlice(a.Key)
				for _, item := range v {
					items.AppendEmpty().SetStr(item)
				}
			default:
				panic(fmt.Sprintf("attribute %q has unsupported type %T", a.Key, a.Value))
			}
		}
	}
}

// source is a deterministic stream of random values.
type source struct{ *rand.Rand }

// newSource returns a stream for a name, so that one process does not influence
// the values of another.
func newSource(seed int64, name string) source {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(name))
	return source{rand.New(rand.NewPCG(uint64(seed), hash.Sum64()))} //nolint:gosec // Simulated data must repeat for a seed.
}

// between returns a value in [low, high).
func (s source) between(low, high float64) float64 { return low + (high-low)*s.Float64() }

// near varies a value by up to the given share.
func (s source) near(value, share float64) float64 { return value * s.between(1-share, 1+share) }

func (s source) uuid() string {
	var id [16]byte
	binary.BigEndian.PutUint64(id[:8], s.Uint64())
	binary.BigEndian.PutUint64(id[8:], s.Uint64())
	h := hex.EncodeToString(id[:])
	return h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-a" + h[17:20] + "-" + h[20:]
}

// ref identifies a span.
type ref struct {
	trace pcommon.TraceID
	span  pcommon.SpanID
}

func (s source) root() (r ref) {
	// A zero id is invalid, however unlikely.
	binary.BigEndian.PutUint64(r.trace[:8], s.Uint64()|1)
	binary.BigEndian.PutUint64(r.trace[8:], s.Uint64())
	binary.BigEndian.PutUint64(r.span[:], s.Uint64()|1)
	return r
}

func (s source) below(parent ref) ref {
	child := ref{trace: parent.trace}
	binary.BigEndian.PutUint64(child.span[:], s.Uint64()|1)
	return child
}

// process is a program that sends spans. Those that have ended wait until the
// site sends them.
type process struct {
	source
	resource []Attr
	pending  ptrace.SpanSlice
	started  time.Time
}

func newProcess(seed int64, name string, resource []Attr) *process {
	return &process{source: newSource(seed, name), resource: resource, pending: ptrace.NewSpanSlice()}
}

// end appends a span that has ended.
func (p *process) end(r ref, parent pcommon.SpanID, name string, kind ptrace.SpanKind, start, end time.Time, attrs ...Attr) ptrace.Span {
	span := p.pending.AppendEmpty()
	span.SetTraceID(r.trace)
	span.SetSpanID(r.span)
	span.SetParentSpanID(parent)
	span.SetName(name)
	span.SetKind(kind)
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(start))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(end))
	put(span.Attributes(), attrs)
	return span
}

// fail makes a span one that failed with an exception.
func fail(span ptrace.Span, class, message string) {
	span.Status().SetCode(ptrace.StatusCodeError)
	span.Status().SetMessage(class + ": " + message)
	span.Attributes().PutStr("error.type", class)
	event := span.Events().AppendEmpty()
	event.SetName("exception")
	event.SetTimestamp(span.EndTimestamp())
	put(event.Attributes(), []Attr{{"exception.type", class}, {"exception.message", message}})
}

const (
	// scope is that of all spans and of the processes' own metrics.
	scope = "mlgen.fleet"
	// maxSpans is about how many spans a request has at most.
	maxSpans = 2000
)

// takeSpans returns the requests for the spans that have ended.
func takeSpans(name string, processes []*process) (out []scenario.Batch) {
	var batch *scenario.Batch
	for _, p := range processes {
		n := p.pending.Len()
		if n == 0 {
			continue
		}
		if batch == nil || batch.Traces.SpanCount()+n > maxSpans {
			out = append(out, scenario.Batch{Scenario: name, Signal: sentlog.SignalTraces, Traces: ptrace.NewTraces()})
			batch = &out[len(out)-1]
		}
		rs := batch.Traces.ResourceSpans().AppendEmpty()
		put(rs.Resource().Attributes(), p.resource)
		ss := rs.ScopeSpans().AppendEmpty()
		ss.Scope().SetName(scope)
		p.pending.MoveAndAppendTo(ss.Spans())
	}
	return out
}

// takeMemory returns a request with the memory of the processes, which is all
// that they measure themselves.
func takeMemory(name string, processes []*process, at time.Time) scenario.Batch {
	md := pmetric.NewMetrics()
	for _, p := range processes {
		rm := md.ResourceMetrics().AppendEmpty()
		put(rm.Resource().Attributes(), p.resource)
		sm := rm.ScopeMetrics().AppendEmpty()
		sm.Scope().SetName(scope)
		points{sm: sm, start: p.started, at: at}.count("process.memory.usage", "By", false, float64(9<<30))
	}
	return scenario.Batch{Scenario: name, Signal: sentlog.SignalMetrics, Metrics: md}
}

// points appends metrics with points of one resource.
type points struct {
	sm        pmetric.ScopeMetrics
	common    []Attr
	start, at time.Time
}

// find returns the metric, which is new if its first point is written.
func (p points) find(name, unit string) (pmetric.Metric, bool) {
	for _, m := range p.sm.Metrics().All() {
		if m.Name() == name {
			return m, false
		}
	}
	m := p.sm.Metrics().AppendEmpty()
	m.SetName(name)
	m.SetUnit(unit)
	return m, true
}

// gauge appends a point of a gauge with a double.
func (p points) gauge(name, unit string, value float64, attrs ...Attr) {
	m, isNew := p.find(name, unit)
	if isNew {
		m.SetEmptyGauge()
	}
	point := m.Gauge().DataPoints().AppendEmpty()
	point.SetTimestamp(pcommon.NewTimestampFromTime(p.at))
	point.SetDoubleValue(value)
	put(point.Attributes(), p.common, attrs)
}

// count appends a point of a cumulative sum: seconds are doubles, other numbers
// integers, as the gpu receiver sends them.
func (p points) count(name, unit string, monotonic bool, value float64, attrs ...Attr) {
	m, isNew := p.find(name, unit)
	if isNew {
		sum := m.SetEmptySum()
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		sum.SetIsMonotonic(monotonic)
	}
	point := m.Sum().DataPoints().AppendEmpty()
	point.SetStartTimestamp(pcommon.NewTimestampFromTime(p.start))
	point.SetTimestamp(pcommon.NewTimestampFromTime(p.at))
	if unit == "s" {
		point.SetDoubleValue(value)
	} else {
		point.SetIntValue(int64(value))
	}
	put(point.Attributes(), p.common, attrs)
}
