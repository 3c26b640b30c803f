package mlsampleprocessor

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/mlsampleprocessor/internal/blob"
	"github.com/otelcol-ml/otelcol-ml/processor/mlsampleprocessor/internal/sample"
)

// maxReused is the largest request, in spans, whose memory is used again.
const maxReused = 1 << 14

// request is the spans of a request and what becomes of them.
type request struct {
	reader
	// order has the indexes of the spans in the order of their ends, inOrder the
	// spans in this order and decided their units.
	order   []int32
	inOrder []sample.Span
	decided []*sample.Unit
	// units has the unit of each span, encoded its bytes and part the index of the
	// part that it belongs to.
	units   []*sample.Unit
	encoded [][]byte
	part    []int32
	parts   []part
	partOf  map[*sample.Unit]int32
}

// part is the spans of a unit that have a header in common.
type part struct {
	unit   *sample.Unit
	header *blob.Header
	size   int
	spans  int64
	data   []byte
}

func newRequest() *request {
	return &request{reader: reader{vocabulary: mlattr.Default()}, partOf: make(map[*sample.Unit]int32)}
}

// free clears the request, so that it holds nothing that was received, and returns
// its memory.
func (r *request) free(to *sync.Pool) {
	if len(r.spans) > maxReused {
		return
	}
	r.facts.Reset()
	clear(r.units)
	clear(r.decided)
	clear(r.encoded)
	clear(r.parts)
	clear(r.partOf)
	r.encoded, r.part, r.parts = r.encoded[:0], r.part[:0], r.parts[:0]
	to.Put(r)
}

// assign reads the spans and finds their units.
func (r *request) assign(sampler *sample.Sampler, td ptrace.Traces, now time.Time) {
	spans := r.read(td, now)
	n := len(spans)
	r.order = slices.Grow(r.order[:0], n)[:n]
	r.decided = slices.Grow(r.decided[:0], n)[:n]
	r.units = slices.Grow(r.units[:0], n)[:n]
	sorted := true
	for i := range spans {
		r.order[i] = int32(i) // #nosec G115 -- a request has fewer spans
		sorted = sorted && (i == 0 || spans[i-1].End <= spans[i].End)
	}
	if sorted {
		sampler.Assign(spans, now, r.units)
		return
	}
	slices.SortStableFunc(r.order, func(a, b int32) int { return cmp.Compare(spans[a].End, spans[b].End) })
	r.inOrder = slices.Grow(r.inOrder[:0], n)[:n]
	for i, at := range r.order {
		r.inOrder[i] = spans[at]
	}
	sampler.Assign(r.inOrder, now, r.decided)
	for i, at := range r.order {
		r.units[at] = r.decided[i]
	}
}

// addCounts adds the numbers of spans to their units.
func (r *request) addCounts(sampler *sample.Sampler) {
	for _, u := range r.units {
		if u != nil {
			sampler.Add(u, nil, nil, 1)
		}
	}
}

// addEncoded adds copies of the spans to their units.
func (r *request) addEncoded(sampler *sample.Sampler, td ptrace.Traces) error {
	if !slices.ContainsFunc(r.units, func(u *sample.Unit) bool { return u != nil }) {
		return nil
	}
	data, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	if err != nil {
		return err
	}
	if err := blob.Spans(data, r.divide); err != nil {
		return err
	}
	for i := range r.parts {
		r.parts[i].data = make([]byte, 0, r.parts[i].size)
	}
	for i, at := range r.part {
		if at >= 0 {
			r.parts[at].data = append(r.parts[at].data, r.encoded[i]...)
		}
	}
	for i := range r.parts {
		p := &r.parts[i]
		sampler.Add(p.unit, p.header, p.data, p.spans)
	}
	return nil
}

// divide adds the next span to the part that it belongs to.
func (r *request) divide(header *blob.Header, span []byte) {
	i := len(r.encoded)
	r.encoded = append(r.encoded, span)
	u := r.units[i]
	if u == nil {
		r.part = append(r.part, -1)
		return
	}
	var at int32
	if last := len(r.parts) - 1; last >= 0 && r.parts[last].unit == u {
		at = int32(last) // #nosec G115 -- below the number of spans
	} else if known, ok := r.partOf[u]; ok {
		at = known
	} else {
		at = int32(len(r.parts)) // #nosec G115 -- below the number of spans
	}
	if int(at) == len(r.parts) || r.parts[at].header != header {
		at = int32(len(r.parts)) // #nosec G115 -- below the number of spans
		r.parts = append(r.parts, part{unit: u, header: header})
		r.partOf[u] = at
	}
	r.parts[at].size += len(span)
	r.parts[at].spans++
	r.part = append(r.part, at)
}
