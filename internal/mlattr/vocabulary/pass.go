package vocabulary

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

// reading has the facts of the spans of one request, for the components that get it from the
// same fan-out: whichever comes first reads a span, and the others use what it has read.
type reading struct {
	// mu is held by the component that passes over the spans. Another one that does so at
	// the same time reads them itself.
	mu    sync.Mutex
	spans []spanReading
	ended bool
}

// spanReading is what a span says where the clients in known are recognised.
type spanReading struct {
	span  ptrace.Span
	known System
	facts Facts
}

// maxShared limits the spans of a request that are read only once.
const maxShared = 2048

// memories has lists of spanReading without content.
var memories = sync.Pool{New: func() any { return new([]spanReading) }}

type enrichedKey struct{}

// WithEnriched marks the context of a request whose spans ml_enrich has read
// and written canonical names to. A component that gets the request in the same
// call can read the spans by a Pass. A queue or a batch processor in
// between loses the mark, and then components read the spans themselves. The caller calls
// end when the call is over.
func WithEnriched(ctx context.Context) (marked context.Context, end func()) {
	of := new(reading)
	return context.WithValue(ctx, enrichedKey{}, of), of.end
}

// end gives the memory back, unless a component still uses it.
func (r *reading) end() {
	if !r.mu.TryLock() {
		return
	}
	defer r.mu.Unlock()
	r.ended = true
	if r.spans == nil {
		return
	}
	for i := range r.spans {
		r.spans[i].span = ptrace.Span{}
		r.spans[i].facts.forget()
	}
	memory := r.spans
	memories.Put(&memory)
	r.spans = nil
}

// Pass reads the spans of one request after another, each request from its first span to
// its last. Spans that ml_enrich has read are not read again if another component has
// read them and nothing can have changed them since. The zero value is ready for Begin.
type Pass struct {
	reader   *Reader
	enriched bool
	shared   *reading
	at       int
	own      Facts
}

// Begin begins with a request. Call End after its last span.
func (p *Pass) Begin(ctx context.Context, r *Reader, td ptrace.Traces) {
	var of *reading
	p.reader, p.at = r, 0
	of, p.enriched = ctx.Value(enrichedKey{}).(*reading)
	// What may be changed is not what was read before.
	if !p.enriched || !td.IsReadOnly() || !of.mu.TryLock() {
		return
	}
	if of.spans == nil && !of.ended {
		n := td.SpanCount()
		if n > maxShared {
			n = 0
		}
		of.spans = *memories.Get().(*[]spanReading)
		if cap(of.spans) < n {
			of.spans = make([]spanReading, n)
		}
		of.spans = of.spans[:n]
	}
	p.shared = of
}

// Next returns the facts of the next span of the request, or, if it differs, of what
// stands for it. known is as for Reader.Span. They are valid until the next call, and must
// not be changed.
func (p *Pass) Next(known System, span, instead ptrace.Span) *Facts {
	at := p.at
	p.at++
	if p.shared != nil && at < len(p.shared.spans) && instead == span {
		one := &p.shared.spans[at]
		if one.span == span && one.known == known {
			return &one.facts
		}
		if one.span == (ptrace.Span{}) {
			one.span, one.known = span, known
			p.reader.enriched(known, span, &one.facts)
			return &one.facts
		}
	}
	if p.enriched {
		p.reader.enriched(known, instead, &p.own)
	} else {
		p.reader.Span(known, instead, &p.own)
	}
	return &p.own
}

// End ends the request, and keeps no reference to it.
func (p *Pass) End() {
	if p.shared != nil {
		p.shared.mu.Unlock()
		p.shared = nil
	}
	p.own.Reset()
}
