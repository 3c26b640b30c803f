package correlate

import (
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// An exemplar is one measurement that a client keeps with a metric's point, and
// the span that it was made in. A session or a request would be a label without
// bound on the point; on the exemplar it costs no series.

// maxExemplarText is how many characters the labels of an exemplar may have
// together in OpenMetrics, names included. An exporter drops all attributes of
// one that has more, the client's own as well.
const maxExemplarText = 128

// exemplarKeys are the keys that an exemplar gets, in this order while there is
// room. The run comes last: nearly always the point has it.
var exemplarKeys = [...]int{keySession, keyRequest, keyRun}

// Exemplars are those of one request. The zero value is ready for use, and can
// be used again after Reset.
type Exemplars struct{ list []exemplar }

// exemplar is an exemplar that names a trace.
type exemplar struct {
	attrs pcommon.Map
	span  spanKey
	// point marks the keys that its point has, which are not repeated.
	point [keyCount]bool
}

// Reset forgets the exemplars and keeps their memory. It returns false if the
// memory is too much to be kept.
func (x *Exemplars) Reset() bool {
	if cap(x.list) > maxKept {
		return false
	}
	clear(x.list)
	x.list = x.list[:0]
	return true
}

// Read adds the exemplars of a metric whose points have been enriched.
func (x *Exemplars) Read(m pmetric.Metric) { mlattr.EachPoint(m, x.add) }

func (x *Exemplars) add(point pcommon.Map, exemplars pmetric.ExemplarSlice) {
	if exemplars.Len() == 0 {
		return
	}
	var has [keyCount]bool
	for _, k := range exemplarKeys {
		_, has[k] = point.Get(keyNames[k])
	}
	for _, e := range exemplars.All() {
		if !e.TraceID().IsEmpty() {
			x.list = append(x.list, exemplar{e.FilteredAttributes(), spanKey{e.TraceID(), e.SpanID()}, has})
		}
	}
}

// Correlate adds to the exemplars what their spans hand down, or else what their
// traces agree about. It waits for neither.
func (x *Exemplars) Correlate(s *Store) {
	if len(x.list) == 0 {
		return
	}
	k := s.lookup(func(yield func(spanKey) bool) {
		for i := range x.list {
			if !yield(x.list[i].span) {
				return
			}
		}
	})
	for i := range x.list {
		e := &x.list[i]
		e.write(k[e.span])
	}
}

// write adds the keys for which there is room.
func (e *exemplar) write(of known) {
	if of == (known{}) {
		return
	}
	left := maxExemplarText - e.textLength()
	for _, k := range exemplarKeys {
		if _, has := e.attrs.Get(keyNames[k]); has || e.point[k] {
			continue
		}
		value, from := of.key(k)
		if value == "" {
			continue
		}
		needs := labelLength(keyNames[k], value)
		inferred := k == keyRun && of.inferredRun(from)
		if inferred {
			if _, has := e.attrs.Get(mlattr.RunInferred); has {
				continue // the client says it of another run
			}
			needs += labelLength(mlattr.RunInferred, textTrue)
		}
		if needs > left {
			continue
		}
		left -= needs
		e.attrs.PutStr(keyNames[k], value)
		if inferred {
			e.attrs.PutBool(mlattr.RunInferred, true)
		}
	}
}

// textLength returns how much the exemplar has of what maxExemplarText bounds.
func (e *exemplar) textLength() int {
	const trace, span = "trace_id", "span_id"
	n := len(trace) + 2*len(e.span.trace)
	if !e.span.id.IsEmpty() {
		n += len(span) + 2*len(e.span.id)
	}
	for key, value := range e.attrs.All() {
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
