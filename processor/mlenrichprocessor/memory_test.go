package mlenrichprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestAppendBounded(t *testing.T) {
	for name, tt := range map[string]struct {
		have, more  []int
		want        []int
		grown, gone int
	}{
		"room":                       {[]int{1}, []int{2, 3}, []int{1, 2, 3}, 2, 0},
		"full: the oldest half goes": {[]int{1, 2, 3, 4}, []int{5}, []int{3, 4, 5}, -1, 2},
		"more than half":             {[]int{1, 2, 3, 4}, []int{5, 6, 7}, []int{4, 5, 6, 7}, 0, 3},
		"more than all":              {[]int{1, 2}, []int{3, 4, 5, 6, 7}, []int{4, 5, 6, 7}, 2, 3},
		"nothing before":             {nil, []int{3, 4, 5, 6, 7}, []int{4, 5, 6, 7}, 4, 1},
	} {
		t.Run(name, func(t *testing.T) {
			list := tt.have
			grown, gone := appendBounded(&list, tt.more, 4)
			assert.Equal(t, tt.want, list)
			assert.Equal(t, tt.grown, grown)
			assert.Equal(t, tt.gone, gone)
		})
	}
}

// handed is one batch of a trace whose spans all hand down the same.
func handed(s *store, trace byte, first, spans int) {
	list := make([]handedDown, spans)
	for i := range list {
		n := first + i
		list[i] = handedDown{id: [8]byte{1, byte(n >> 16), byte(n >> 8), byte(n)}, keys: &keySet{keySession: "s"}}
	}
	s.remember([]traceState{{id: [16]byte{trace}, endHanded: int32(spans)}}, list)
}

func TestSpansOfTracesAreBounded(t *testing.T) {
	s, c := newTestStore(t)
	handed(s, 1, 0, maxTraceSpans)
	handed(s, 1, maxTraceSpans, 1)
	assert.Equal(t, held{n: maxTraceSpans/2 + 1, evicted: maxTraceSpans / 2}, s.spans, "of one trace the oldest go")
	find := func(trace byte, span int) *keySet {
		wanted := []ancestor{{span: spanKey{[16]byte{trace}, [8]byte{1, byte(span >> 16), byte(span >> 8), byte(span)}}}}
		s.ancestors(wanted)
		return wanted[0].found
	}
	assert.Nil(t, find(1, 0))
	assert.NotNil(t, find(1, maxTraceSpans))

	for trace := byte(2); trace <= maxSpans/maxTraceSpans+1; trace++ {
		handed(s, trace, 0, maxTraceSpans)
	}
	assert.Equal(t, maxSpans, s.spans.n, "of all traces the least recently used goes")
	assert.Nil(t, find(1, maxTraceSpans))
	assert.NotNil(t, find(2, 0))

	c.at = c.at.Add(keyAge + time.Second)
	handed(s, 200, 0, 1)
	assert.Equal(t, 1, s.spans.n, "what is too old is forgotten")
	assert.Equal(t, 1, s.traces.len())
}

// TestTwoSpansOfOneID shows that of two spans with one id, which only broken
// clients send, the last is the parent, in the batch and after it.
func TestTwoSpansOfOneID(t *testing.T) {
	p := startDefault(t)
	p.sendTraces(t, batchOf("gateway",
		testSpan{3, 1, 0, "first", map[string]any{"session.id": "a"}},
		testSpan{3, 1, 0, "last", map[string]any{"session.id": "b"}}))
	out := p.sendTraces(t, batchOf("gateway", testSpan{3, 2, 1, "child", nil}))
	assert.Equal(t, map[string]string{"child": "b"}, keysByName(out, "ml.session.id"))
}
