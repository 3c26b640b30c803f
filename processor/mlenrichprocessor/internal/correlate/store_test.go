package correlate

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/cache"
)

// newTestStore returns a store and the time that it sees.
func newTestStore() (*Store, *time.Time) {
	at := time.Unix(1_700_000_000, 0)
	return NewStore(func() time.Time { return at }, DefaultLimits()), &at
}

func TestStoreIsBounded(t *testing.T) {
	s, _ := newTestStore()
	for i := range DefaultLimits().Traces + 100 {
		var texts symbols
		state := trace{id: [16]byte{0: 1, 12: byte(i >> 24), 13: byte(i >> 16), 14: byte(i >> 8), 15: byte(i)}}
		state.values[keySession] = texts.of(keySession, strconv.Itoa(i))
		s.joinTraces([]trace{state}, &texts, s.Now())
	}
	assert.Equal(t, DefaultLimits().Traces, s.traces.Size("").Entries)
	assert.EqualValues(t, 100, s.traces.Size("").Evicted)
}

func TestAnswersAreForgotten(t *testing.T) {
	s, c := newTestStore()
	joined := 0
	repeats := func(scope uint64, answer string) bool {
		spans := make([]span, 1)
		s.findTwins([]request{{sighting: sighting{span: scope, scope: scope, answer: cache.Hash(answer), uses: true}}}, spans, s.Now())
		if spans[0].joined {
			joined++
		}
		return spans[0].repeated
	}
	assert.False(t, repeats(1, "r"))
	assert.True(t, repeats(2, "r"))
	*c = c.Add(answerAge)
	assert.True(t, repeats(2, "r"), "every use renews it")
	*c = c.Add(answerAge + time.Second)
	assert.False(t, repeats(2, "r"))
	for i := range DefaultLimits().Answers {
		repeats(1, strconv.Itoa(i))
	}
	assert.Equal(t, DefaultLimits().Answers, s.answers.Size("").Entries)
	assert.EqualValues(t, 1, s.answers.Size("").Evicted)
	assert.Equal(t, 1, joined, "a span that comes again is no second one")
}

func TestUsageOfEarlierBatchesIsBounded(t *testing.T) {
	s, _ := newTestStore()
	above := func(trace, span int) []covering {
		return []covering{{trace: [16]byte{1, byte(trace >> 16), byte(trace >> 8), byte(trace)},
			spanAbove: spanAbove{id: [8]byte{1, byte(span >> 16), byte(span >> 8), byte(span)}}}}
	}
	for i := range DefaultLimits().Usage + 100 {
		s.watch(above(i/2, i%2), s.Now())
	}
	assert.Equal(t, DefaultLimits().Usage, s.above.n)
	assert.EqualValues(t, 100, s.above.evicted)
	before := s.above
	s.watch(above(DefaultLimits().Usage/2, 1), s.Now())
	assert.Equal(t, before, s.above, "what is known already")

	one, _ := newTestStore()
	for i := range maxTraceAbove + 1 {
		one.watch(above(0, i), one.Now())
	}
	assert.Equal(t, tally{n: maxTraceAbove/2 + 1, evicted: maxTraceAbove / 2}, one.above, "a trace alone")
}

// TestEpochsAreBounded keeps those that ended last, for a while.
func TestEpochsAreBounded(t *testing.T) {
	s, c := newTestStore()
	add := func(epochs ...epoch) []epoch {
		byProcess := map[uint64][]epoch{1: epochs}
		s.addEpochs(byProcess)
		return byProcess[1]
	}
	for n := range uint64(100) {
		add(epoch{period{10*n + 1, 10*n + 9}, spanKey{id: [8]byte{7: byte(n)}}, int64(n), 0})
	}
	known := add()
	assert.Len(t, known, maxEpochs)
	assert.EqualValues(t, 99, known[maxEpochs-1].number)
	assert.EqualValues(t, 100-maxEpochs, known[0].number)

	*c = c.Add(keyAge + time.Second)
	assert.Empty(t, add())
	for n := range DefaultLimits().Processes + 10 {
		s.addEpochs(map[uint64][]epoch{uint64(n + 2): {{period: period{1, 2}, number: 1}}})
	}
	assert.Equal(t, DefaultLimits().Processes, s.epochs.Size("").Entries)
	assert.EqualValues(t, 10, s.epochs.Size("").Evicted)
}
