package correlate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestKeysAreReadAsWritten(t *testing.T) {
	for _, keys := range []set[string]{
		{},
		{keyInferred: textTrue},
		{keySession: "s", keyConversation: "s", keyRun: "r", keyTrainingRun: "r", keyRequest: "q"},
		{keySession: strings.Repeat("s", 128), keySamplingSession: strings.Repeat("ß", 64)},
	} {
		assert.Equal(t, keys, readKeys(appendKeys(nil, &keys)))
		a := agreement[string]{values: keys, disagree: 1<<keyRun | 1<<keyInferred}
		assert.Equal(t, a, readAgreement(appendAgreement(nil, &a)))
	}
	assert.Equal(t, agreement[string]{}, readAgreement(nil))
}

// handing is a batch with sets of keys that have one text each.
func handing(key int, texts ...string) *branches {
	b := &branches{sets: make([]set[symbol], 1)}
	for _, text := range texts {
		var keys set[symbol]
		keys[key] = b.texts.of(key, text)
		b.sets = append(b.sets, keys)
	}
	return b
}

func TestHandedIsReadAsWritten(t *testing.T) {
	batch := handing(keySession, "a", "b")
	a, b := set[string]{keySession: "a"}, set[string]{keySession: "b"}
	var spans []handedDown
	for i := range byte(20) {
		spans = append(spans, handedDown{[8]byte{7: i}, 1 + int32(i/7)%2})
	}
	list := batch.appendHanded(batch.appendHanded(nil, spans[:10]), spans[10:])
	byID := mapHanded(list, len(spans))
	assert.Len(t, byID, len(spans))
	for _, span := range spans {
		found := findHanded(list, span.id)
		assert.Equal(t, found, byID[span.id])
		assert.Equal(t, []set[string]{a, b}[span.down-1], readKeys(found))
	}
	twice := batch.appendHanded(list, []handedDown{{[8]byte{}, 2}})
	assert.Equal(t, b, readKeys(findHanded(twice, [8]byte{})), "the last of an id")
	assert.Equal(t, b, readKeys(mapHanded(twice, 21)[[8]byte{}]), "the last of an id")
}

// handed is one batch of a trace whose spans all hand down the same.
func handed(s *Store, of byte, first, spans int) {
	b := handing(keySession, "s")
	for i := range spans {
		n := first + i
		b.handed = append(b.handed, handedDown{[8]byte{1, byte(n >> 16), byte(n >> 8), byte(n)}, 1})
	}
	b.traces = []trace{{id: [16]byte{of}, endHanded: int32(spans)}}
	s.remember(b, s.Now())
}

func TestSpansOfTracesAreBounded(t *testing.T) {
	s, c := newTestStore()
	handed(s, 1, 0, maxTraceSpans)
	handed(s, 1, maxTraceSpans, 1)
	assert.Equal(t, tally{n: maxTraceSpans/2 + 1, evicted: maxTraceSpans / 2}, s.spans, "of one trace the oldest go")
	find := func(trace byte, span int) set[string] {
		wanted := spanKey{[16]byte{trace}, [8]byte{1, byte(span >> 16), byte(span >> 8), byte(span)}}
		return new(finder).known(s, wanted, s.Now()).span
	}
	assert.Empty(t, find(1, 0))
	assert.NotEmpty(t, find(1, maxTraceSpans))

	for of := range DefaultLimits().Spans / maxTraceSpans {
		handed(s, byte(2+of), 0, maxTraceSpans)
	}
	assert.Equal(t, DefaultLimits().Spans, s.spans.n, "of all traces the least recently used goes")
	assert.Empty(t, find(1, maxTraceSpans))
	assert.NotEmpty(t, find(2, 0))

	*c = c.Add(keyAge + time.Second)
	handed(s, 200, 0, 1)
	assert.Equal(t, 1, s.spans.n, "what is too old is forgotten")
	assert.Equal(t, 1, s.traces.Size("").Entries)
}

// TestALongTraceIsSearchedAFewTimes asks for many spans of traces in turns: what
// a long one hands down is searched a few times, and then read once for all.
func TestALongTraceIsSearchedAFewTimes(t *testing.T) {
	s, _ := newTestStore()
	const long, short = 400, maxSearched
	id := func(i int) [8]byte { return [8]byte{6: byte(i >> 8), 7: byte(i)} }
	for of, n := range map[byte]int{1: long, 2: long, 3: short} {
		var texts []string
		for i := range n {
			texts = append(texts, fmt.Sprint(of, " ", i))
		}
		b := handing(keyRequest, texts...)
		for i := range n {
			b.handed = append(b.handed, handedDown{id(i), int32(i + 1)})
		}
		b.traces = []trace{{id: [16]byte{of}, endHanded: int32(n)}}
		s.remember(b, s.Now())
	}
	var f finder
	for i := range long {
		for _, trace := range []byte{1, 2, 3} {
			key := spanKey{[16]byte{trace}, id(i)}
			found := f.handed(s, key, s.traces.Find(key.trace, s.Now()))
			if trace == 3 && i >= short {
				require.Empty(t, found)
				continue
			}
			require.Equal(t, fmt.Sprint(trace, " ", i), found[keyRequest])
		}
	}
	assert.Len(t, f.long, 2)
	assert.Empty(t, f.handed(s, spanKey{[16]byte{1}, id(long)}, s.traces.Find([16]byte{1}, s.Now())))
}
