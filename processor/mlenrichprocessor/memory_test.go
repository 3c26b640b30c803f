package mlenrichprocessor

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestRoom(t *testing.T) {
	for name, tt := range map[string]struct {
		have, more, gone, left int
	}{
		"room":                       {1, 3, 0, 0},
		"full: the oldest half goes": {4, 1, 2, 0},
		"more than half":             {4, 3, 3, 0},
		"more than all":              {2, 5, 2, 1},
		"nothing before":             {0, 5, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			gone, left := room(tt.have, tt.more, 4)
			assert.Equal(t, tt.gone, gone)
			assert.Equal(t, tt.left, left)
		})
	}
}

func TestKeysAreReadAsWritten(t *testing.T) {
	for _, keys := range []keySet{
		{},
		{keyInferred: textTrue},
		{keySession: "s", keyConversation: "s", keyRun: "r", keyTrainingRun: "r", keyRequest: "q"},
		{keySession: strings.Repeat("s", 128), keySamplingSession: strings.Repeat("ß", 64)},
	} {
		assert.Equal(t, keys, readKeys(keys.appendTo(nil)))
		a := agreement{values: keys, disagree: [keyCount]bool{keyRun: true, keyInferred: true}}
		assert.Equal(t, a, readAgreement(a.appendTo(nil)))
	}
	assert.Equal(t, agreement{}, readAgreement(nil))
}

func TestHandedIsReadAsWritten(t *testing.T) {
	a, b := &keySet{keySession: "a"}, &keySet{keySession: "b"}
	var spans []handedDown
	for i := range byte(20) {
		keys := a
		if i >= 7 {
			keys = b
		}
		spans = append(spans, handedDown{[8]byte{7: i}, keys})
	}
	list := appendHanded(appendHanded(nil, spans[:10]), spans[10:])
	for gone := range 21 {
		rest := dropHanded(list, gone)
		for i, span := range spans {
			found := findHanded(rest, span.id)
			if i < gone {
				assert.Nil(t, found)
			} else {
				assert.Equal(t, *span.keys, readKeys(found))
			}
		}
	}
	assert.Equal(t, *b, readKeys(findHanded(appendHanded(list, []handedDown{{[8]byte{}, b}}), [8]byte{})), "the last of an id")
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
