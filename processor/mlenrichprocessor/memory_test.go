package mlenrichprocessor

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/plog"
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
		byID := mapHanded(rest, len(spans)-gone)
		assert.Len(t, byID, len(spans)-gone)
		for i, span := range spans {
			found := findHanded(rest, span.id)
			assert.Equal(t, found, byID[span.id])
			if i < gone {
				assert.Nil(t, found)
			} else {
				assert.Equal(t, *span.keys, readKeys(found))
			}
		}
	}
	twice := appendHanded(list, []handedDown{{[8]byte{}, b}})
	assert.Equal(t, *b, readKeys(findHanded(twice, [8]byte{})), "the last of an id")
	assert.Equal(t, *b, readKeys(mapHanded(twice, 21)[[8]byte{}]), "the last of an id")
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

// TestALongTraceIsSearchedAFewTimes asks for many spans of traces in turns: what
// a long one hands down is searched a few times, and then read once for all.
func TestALongTraceIsSearchedAFewTimes(t *testing.T) {
	s, _ := newTestStore(t)
	const long, short = 400, searchable
	id := func(i int) [8]byte { return [8]byte{6: byte(i >> 8), 7: byte(i)} }
	for trace, n := range map[byte]int{1: long, 2: long, 3: short} {
		list := make([]handedDown, n)
		for i := range list {
			list[i] = handedDown{id(i), &keySet{keyRequest: fmt.Sprint(trace, " ", i)}}
		}
		s.remember([]traceState{{id: [16]byte{trace}, endHanded: int32(n)}}, list)
	}
	var finder handedFinder
	for i := range long {
		for _, trace := range []byte{1, 2, 3} {
			key := spanKey{[16]byte{trace}, id(i)}
			found := finder.find(s, key, s.traces.find(key.trace, s.now()))
			if trace == 3 && i >= short {
				require.Nil(t, found)
				continue
			}
			require.Equal(t, fmt.Sprint(trace, " ", i), found[keyRequest])
		}
	}
	assert.Len(t, finder.long, 2)
	assert.Nil(t, finder.find(s, spanKey{[16]byte{1}, id(long)}, s.traces.find([16]byte{1}, s.now())))
}

// TestManyLateSpansOfALongTrace has a request, a link and a log record for each
// of many spans of a trace that came before.
func TestManyLateSpansOfALongTrace(t *testing.T) {
	const many = 99
	p := startDefault(t)
	var first, late []testSpan
	var consumers []linkedSpan
	ld := plog.NewLogs()
	records := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	want := make(map[string]string)
	for i := range byte(many) {
		request := strconv.Itoa(int(i))
		first = append(first, testSpan{1, 100 + i, 0, "call", keys("", request)})
		late = append(late, testSpan{1, 1 + i, 100 + i, "late " + request, nil})
		consumers = append(consumers, linkedSpan{testSpan{2 + i, 1, 0, "late " + request, nil}, []to{{1, 100 + i}}})
		record := records.AppendEmpty()
		record.SetTraceID([16]byte{0: 0xa0, 15: 1})
		record.SetSpanID([8]byte{0: 0xb0, 7: 100 + i})
		want["late "+request] = request
	}
	p.sendTraces(t, batchOf("x", first...))
	assert.Equal(t, want, keysByName(p.sendTraces(t, batchOf("x", late...)), "ml.request.id"))
	assert.Equal(t, want, keysByName(p.sendTraces(t, batchWithLinks("x", consumers...)), "ml.request.id"))
	for i, record := range p.sendLogs(t, ld).ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().All() {
		assert.Equal(t, strconv.Itoa(i), readID(record.Attributes(), "ml.request.id"))
	}
}
