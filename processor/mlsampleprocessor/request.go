package mlsampleprocessor

import (
	"bytes"
	"cmp"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
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
	// units has the unit of each span.
	units []*sample.Unit
	parts []sample.Part
	// divided is the number of spans that were added to parts or dropped, ended that
	// at the end of the last part.
	divided, ended int
}

func newRequest() *request {
	return &request{reader: reader{vocabulary: vocabulary.Default()}}
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
	clear(r.parts)
	r.parts, r.divided, r.ended = r.parts[:0], 0, 0
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
	for range r.units {
		r.divide(nil, nil)
	}
	sampler.Add(r.parts)
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
		r.parts[i].Data = bytes.Clone(r.parts[i].Data)
	}
	sampler.Add(r.parts)
	return nil
}

// divide adds the next span to the last part, if it follows the spans of its unit
// there, or to a new one.
func (r *request) divide(header *blob.Header, span []byte) {
	u := r.units[r.divided]
	follows := r.ended == r.divided
	r.divided++
	if u == nil {
		return
	}
	r.ended = r.divided
	if n := len(r.parts); follows && n > 0 && r.parts[n-1].Unit == u && r.parts[n-1].Header == header {
		last := &r.parts[n-1]
		last.Data = last.Data[:len(last.Data)+len(span)] // they follow each other in the encoding
		last.Spans++
		return
	}
	r.parts = append(r.parts, sample.Part{Unit: u, Header: header, Data: span, Spans: 1})
}
