package sample

import (
	"cmp"
	"slices"

	"github.com/otelcol-ml/otelcol-ml/processor/mlsampleprocessor/internal/blob"
)

// The memory, in bytes, that is counted for a unit and its trace, and for each
// fragment and header, besides their contents.
const (
	unitBytes     = 512
	fragmentBytes = 64
	headerBytes   = 128
)

// state is whether something is decided.
type state uint8

const (
	waiting state = iota
	kept
	dropped
)

// Unit is the spans of a trace that are decided together.
type Unit struct {
	trace *trace
	// step is the step that the unit is part of, nil for a call.
	step      *step
	state     state
	count     int64
	fragments []fragment
	// retained reports whether the fragments of a dropped unit stay in memory.
	retained bool
	spans    int64

	// arrived is when the first span arrived, due when a call is decided.
	arrived, due int64
	// start and end are the times of the first and last span, longest the
	// duration of the span that is like those that the unit is compared with.
	start, end, longest int64
	like, conversation  uint64
	tokens              int64
	failed, marked      bool
	rare, linked        bool
}

// fragment is the encoded spans of a unit that arrived together.
type fragment struct {
	header *header
	data   []byte
	spans  int64
}

// header is shared by the fragments of a process and scope.
type header struct {
	blob.Header
	used int
}

// headerSize returns the memory of a header, in bytes.
func headerSize(h *blob.Header) int64 { return int64(len(h.Resource) + len(h.Scope) + headerBytes) }

// size returns the memory of a fragment, in bytes; 0 if it has no data.
func (f *fragment) size() int64 {
	if f.header == nil {
		return 0
	}
	return int64(len(f.data) + fragmentBytes)
}

// trace is what is remembered about a trace.
type trace struct {
	id TraceID
	// current is the unit of its newest step, or its only one. next has spans that
	// began after that step, until it is known which step they belong to.
	current, next *Unit
	// first is the memory of the trace's first unit.
	first Unit
	// waits is the number of units that wait.
	waits int
	// wanted are spans that kept ones are below, alone those that were kept although
	// their unit may not be.
	wanted, alone []SpanID
}

// maxIDs limits the wanted spans of a trace, and those that were kept alone. The
// oldest are forgotten.
const maxIDs = 64

// remember adds an id to some of a trace.
func remember(ids []SpanID, id SpanID) []SpanID {
	if id == (SpanID{}) || slices.Contains(ids, id) {
		return ids
	}
	if len(ids) >= maxIDs {
		ids = slices.Delete(ids, 0, 1)
	}
	return append(ids, id)
}

// want remembers a span that is to be kept when it arrives.
func (t *trace) want(id SpanID) { t.wanted = remember(t.wanted, id) }

// observe adds what a span says about its unit.
func (u *Unit) observe(sp *Span) {
	if u.spans == 0 || sp.Start < u.start {
		u.start = sp.Start
	}
	u.end = max(u.end, sp.End)
	if length := sp.End - sp.Start; length >= u.longest {
		u.like, u.longest = sp.Like, length
	}
	if u.conversation == 0 {
		u.conversation = sp.Conversation
	}
	u.tokens = max(u.tokens, sp.Tokens)
	u.failed = u.failed || sp.Failed
	u.marked = u.marked || sp.Marked
	u.spans++
}

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
		if t := cmp.Or(s.young[link], s.old[link]); t != nil && t.current != nil {
			t.current.linked = true
		}
	}
}

// pop removes the oldest item of a queue, and returns it.
func pop[T any](queue *[]*T) *T {
	oldest := (*queue)[0]
	(*queue)[0] = nil
	*queue = (*queue)[1:]
	return oldest
}
