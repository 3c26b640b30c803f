package mlenrichprocessor

import (
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// An exemplar is one measurement that a client keeps beside a metric's point,
// with the span that it was made in. A session or a request would be a label
// without bound on the point; on the exemplar it costs no series.

// maxExemplarText is how many characters the labels of an exemplar may have
// together in OpenMetrics, the names counted too. An exporter leaves out all
// attributes of one that has more, the client's own as well.
const maxExemplarText = 128

// exemplarKeys are the keys that an exemplar gets, in this order while there
// is room. The run comes last: nearly always the point has it.
var exemplarKeys = [...]int{keySession, keyRequest, keyRun}

// exemplarState is an exemplar between its reading and its correlation.
type exemplarState struct {
	attrs pcommon.Map
	span  spanKey
	// point marks the keys that its point has. What a point has is not
	// repeated on its exemplars.
	point [keyCount]bool
}

// readExemplars notes the exemplars of a metric whose points have been enriched.
func (b *batch) readExemplars(m pmetric.Metric) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		for _, p := range m.Gauge().DataPoints().All() {
			b.exemplars = appendExemplars(b.exemplars, p.Attributes(), p.Exemplars())
		}
	case pmetric.MetricTypeSum:
		for _, p := range m.Sum().DataPoints().All() {
			b.exemplars = appendExemplars(b.exemplars, p.Attributes(), p.Exemplars())
		}
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			b.exemplars = appendExemplars(b.exemplars, p.Attributes(), p.Exemplars())
		}
	case pmetric.MetricTypeExponentialHistogram:
		for _, p := range m.ExponentialHistogram().DataPoints().All() {
			b.exemplars = appendExemplars(b.exemplars, p.Attributes(), p.Exemplars())
		}
	case pmetric.MetricTypeEmpty, pmetric.MetricTypeSummary: // these have none
	}
}

func appendExemplars(to []exemplarState, point pcommon.Map, exemplars pmetric.ExemplarSlice) []exemplarState {
	if exemplars.Len() == 0 {
		return to
	}
	var has [keyCount]bool
	for _, k := range exemplarKeys {
		_, has[k] = point.Get(keyNames[k])
	}
	for _, x := range exemplars.All() {
		if !x.TraceID().IsEmpty() {
			to = append(to, exemplarState{x.FilteredAttributes(), spanKey{x.TraceID(), x.SpanID()}, has})
		}
	}
	return to
}

// correlateExemplars gives the exemplars what their spans hand down, or else
// what their traces agree about. It waits for neither.
func (e *enricher) correlateExemplars(exemplars []exemplarState) {
	if len(exemplars) == 0 {
		return
	}
	spans := make(map[spanKey]*keySet)
	traces := make(map[[16]byte]*agreement)
	for i := range exemplars {
		x := &exemplars[i]
		traces[x.span.trace] = nil
		if x.span.span != ([8]byte{}) {
			spans[x.span] = nil
		}
	}
	e.store.lookup(spans, traces)
	for i := range exemplars {
		x := &exemplars[i]
		x.write(spans[x.span], traces[x.span.trace])
	}
}

// write adds the keys for which there is room. Span and trace may be unknown.
func (x *exemplarState) write(span *keySet, trace *agreement) {
	if span == nil && trace == nil {
		return
	}
	room := maxExemplarText - x.textLength()
	for _, k := range exemplarKeys {
		if _, has := x.attrs.Get(keyNames[k]); has || x.point[k] {
			continue
		}
		value, from := keyOf(k, span, trace)
		if value == "" {
			continue
		}
		needs := labelLength(keyNames[k], value)
		inferred := k == keyRun && inferredRun(span, trace, from)
		if inferred {
			if _, has := x.attrs.Get(mlattr.RunInferred); has {
				continue // the client says it of another run
			}
			needs += labelLength(mlattr.RunInferred, textTrue)
		}
		if needs > room {
			continue
		}
		room -= needs
		x.attrs.PutStr(keyNames[k], value)
		if inferred {
			x.attrs.PutBool(mlattr.RunInferred, true)
		}
	}
}

// textLength is how much the exemplar has of what maxExemplarText bounds.
func (x *exemplarState) textLength() int {
	const trace, span = "trace_id", "span_id"
	n := len(trace) + 2*len(x.span.trace)
	if x.span.span != ([8]byte{}) {
		n += len(span) + 2*len(x.span.span)
	}
	for key, value := range x.attrs.All() {
		// A value without room needs no exact length.
		text, whole := mlattr.Text(value, utf8.UTFMax*maxExemplarText)
		if !whole {
			return maxExemplarText
		}
		n += labelLength(key, text)
	}
	return n
}

func labelLength(key, value string) int {
	return utf8.RuneCountInString(key) + utf8.RuneCountInString(value)
}
