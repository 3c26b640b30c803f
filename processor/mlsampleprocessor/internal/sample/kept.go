package sample

import "github.com/otelcol-ml/otelcol-ml/processor/mlsampleprocessor/internal/blob"

// Kept is the spans of a unit that are kept and wait to be sent.
type Kept struct {
	Trace TraceID
	// Count is how many spans each of them stands for.
	Count int64
	// Spans is their number.
	Spans int64

	fragments []fragment
}

// Encoding returns the spans as OTLP's TracesData.
func (k *Kept) Encoding() []byte {
	size := 0
	for i := range k.fragments {
		f := &k.fragments[i]
		size += len(f.data) + len(f.header.Resource) + len(f.header.Scope) + fragmentBytes
	}
	data := make([]byte, 0, size)
	for i := range k.fragments {
		data = blob.Append(data, &k.fragments[i].header.Header, k.fragments[i].data)
	}
	return data
}

// Take returns what is to be sent. The memory counts until Sent.
func (s *Sampler) Take() []Kept {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.out
	s.out = nil
	return out
}

// Sent frees the memory of what was sent, or could not be.
func (s *Sampler) Sent(all []Kept) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range all {
		s.free(all[i].fragments)
	}
}

// PutBack returns what could not be sent, to be taken again before the rest.
func (s *Sampler) PutBack(all []Kept) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out = append(all, s.out...)
}

// Follow keeps spans of a trace that kept ones are below, when they arrive, and the
// traces that kept spans link to, while they wait.
func (s *Sampler) Follow(id TraceID, above []SpanID, links []TraceID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(above) > 0 {
		t := s.traceOf(id)
		for _, parent := range above {
			t.want(parent)
		}
	}
	for _, link := range links {
		t := s.young[link]
		if t == nil {
			t = s.old[link]
		}
		if t != nil && t.current != nil {
			t.current.linked = true
		}
	}
}
