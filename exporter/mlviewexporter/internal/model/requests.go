package model

// noteRequests remembers the spans above requests to a model: of a chain of spans
// that report one request, the lowest counts.
func (s *Store) noteRequests(spans []SpanInput) {
	for i := range spans {
		if in := &spans[i]; (in.Request || in.Usage) && in.Parent != ([8]byte{}) {
			s.requestParents.Put(spanRef{in.Trace, in.Parent}, true)
		}
	}
}

// isRequest reports whether a span is a request that no span below reports.
func (s *Store) isRequest(in *SpanInput) bool {
	below, _ := s.requestParents.Get(spanRef{in.Trace, in.ID})
	return (in.Request || in.Usage) && !below
}
