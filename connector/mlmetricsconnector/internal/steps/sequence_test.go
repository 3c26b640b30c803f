package steps

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// f and o are spans that end at the same time as they begin, ff and oo those
// that take time.
func f(at int64) event          { return event{at, at, Forward} }
func o(at int64) event          { return event{at, at, Optimizer} }
func ff(start, end int64) event { return event{start, end, Forward} }
func oo(start, end int64) event { return event{start, end, Optimizer} }

// count adds the spans and returns the number of steps.
func count(s *Sequence, spans ...event) (n int64) {
	for _, e := range spans {
		n += s.Add(e.Kind, e.Start, e.End)
	}
	return n
}

func TestSteps(t *testing.T) {
	for name, tt := range map[string]struct {
		spans []event
		want  int64
	}{
		"a step":                                        {[]event{f(1), o(2)}, 1},
		"a forward without an optimizer":                {[]event{f(1), f(2)}, 0},
		"one optimizer after each forward":              {[]event{f(1), o(2), f(3), o(4), f(5), o(6)}, 3},
		"gradients of several forwards":                 {[]event{f(1), f(2), f(3), o(4), f(5), f(6), f(7), o(8)}, 2},
		"several optimizers":                            {[]event{f(1), o(2), o(3), f(4), o(5), o(6)}, 2},
		"optimizers in turn, each after its own model":  {[]event{f(1), o(2), f(3), o(4)}, 2},
		"the first with both, then by turns":            {[]event{f(1), o(2), o(3), f(4), o(5), f(6), o(7)}, 3},
		"no forward at all":                             {[]event{o(1), o(2), o(3)}, 3},
		"AdamW calls Adam":                              {[]event{ff(1, 9), oo(12, 18), oo(10, 20), ff(20, 29), oo(32, 38), oo(30, 40)}, 2},
		"nested, and no forward":                        {[]event{oo(12, 18), oo(10, 20), oo(32, 38), oo(30, 40)}, 2},
		"LBFGS has its forwards within":                 {[]event{ff(11, 12), ff(14, 15), oo(10, 20), ff(31, 32), ff(34, 35), oo(30, 40)}, 2},
		"a wrapper with an optimizer before and after":  {[]event{ff(1, 9), oo(11, 12), ff(14, 15), oo(17, 18), oo(10, 20)}, 2},
		"the same, one step later":                      {[]event{ff(1, 9), oo(11, 12), ff(14, 15), oo(17, 18), oo(10, 20), ff(21, 29), o(30)}, 2},
		"modules call each other":                       {[]event{ff(2, 3), ff(4, 5), ff(1, 6), o(7), ff(9, 10), ff(8, 11), o(12)}, 2},
		"a validation between":                          {[]event{f(1), o(2), f(3), f(4), f(5), o(6)}, 2},
		"a forward that ends with an optimizer":         {[]event{f(1), o(2), ff(1, 4), o(4)}, 2},
		"an outer optimizer that comes before an inner": {[]event{ff(1, 9), oo(10, 20), oo(12, 18)}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tt.want, count(&Sequence{}, tt.spans...))
		})
	}
}

// A start that is not known or lies behind the end contains nothing.
func TestUnknownStart(t *testing.T) {
	assert.Equal(t, int64(3), count(&Sequence{}, event{0, 5, Optimizer}, event{0, 6, Optimizer}, event{9, 7, Optimizer}))
}

// However the spans arrive, the number ends the same, as long as one more step
// follows, and it never shrinks.
func TestTheOrderOfArrivalDoesNotMatter(t *testing.T) {
	var spans []event
	at := int64(1)
	const steps = 60
	for range steps {
		for range 1 + rand.IntN(3) {
			spans = append(spans, ff(at+1, at+2), ff(at, at+3))
			at += 4
		}
		for range 1 + rand.IntN(2) {
			spans = append(spans, oo(at+1, at+2), oo(at, at+3))
			at += 4
		}
	}
	assert.Equal(t, int64(steps), count(&Sequence{}, spans...))
	for range 20 {
		rand.Shuffle(len(spans), func(i, j int) { spans[i], spans[j] = spans[j], spans[i] })
		var s Sequence
		n := count(&s, spans...)
		assert.Equal(t, int64(steps), s.Settled+s.Recent, "what it comes to")
		assert.GreaterOrEqual(t, n, int64(steps), "what came before the rest was known")
		for range n - steps {
			assert.Zero(t, count(&s, f(at), o(at+1)))
			at += 2
		}
		assert.Equal(t, int64(1), count(&s, f(at), o(at+1)))
	}
}

// What is remembered is bounded, and no step is lost at the edge.
func TestOldSpansAreForgotten(t *testing.T) {
	var s Sequence
	n := int64(0)
	const steps = 10 * maxEvents
	for i := range int64(steps) {
		at := 10 * (i + 1)
		n += count(&s, ff(at, at+1), oo(at+3, at+4), oo(at+2, at+5), oo(at+6, at+7))
		assert.LessOrEqual(t, len(s.Events), maxEvents)
	}
	assert.Equal(t, int64(steps), n)
	assert.Equal(t, int64(1), count(&s, o(11)), "far too late to be compared")
	assert.Zero(t, count(&s, f(12)))
}

// What comes too late is compared with what came too late before it, so that a step with
// two optimizers is one. Where only the optimizers come too late, each ends a step: forward
// passes of a large request come before its optimizers.
func TestSpansThatComeTooLate(t *testing.T) {
	var s Sequence
	inTime := func(n int64) (more int64) {
		for range n {
			at := 1000 * second
			if len(s.Events) > 0 {
				at = s.Events[len(s.Events)-1].End + second
			}
			more += count(&s, ff(at, at+1), oo(at+2, at+3))
		}
		return more
	}
	assert.Equal(t, int64(400), inTime(400))
	for range 2 {
		for n := range int64(400) {
			at := 10 * (n + 1)
			assert.Equal(t, int64(1), count(&s, ff(at, at+1), oo(at+2, at+3), oo(at+4, at+5)), "step %d", n)
		}
		require.NotNil(t, s.Late)
		assert.Nil(t, s.Kept().Late)
		last := s.Events[len(s.Events)-1].End
		assert.Zero(t, count(&s, ff(last+1, last+2)))
		for n := range int64(400) {
			at := 10 * (n + 1)
			assert.Equal(t, int64(1), count(&s, oo(at+2, at+3)), "optimizer %d", n)
		}
		assert.Equal(t, int64(1), count(&s, oo(last+3, last+4)))
	}
	for n := range int64(3 * maxEvents) {
		at := 10 * (3*maxEvents - n)
		assert.Equal(t, int64(1), count(&s, oo(at, at+1)))
		assert.Nil(t, s.Late.Late, "what is remembered is bounded")
	}
}

// The number is that of all that is remembered, whatever is forgotten meanwhile.
func TestTheNumberIsThatOfTheEvents(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		var s Sequence
		for at := range int64(8 * maxEvents) {
			end := 8*at + 1 + random.Int64N(40_000)
			s.Add(Kind(random.IntN(2)), end-random.Int64N(20), end)
			if got := s.steps(s.Events); got != s.Recent {
				t.Fatalf("%d steps are kept as %d", got, s.Recent)
			}
		}
		assert.Positive(t, s.Horizon)
	}
}

// FuzzSequence shows that the number never shrinks or exceeds that of the
// optimizers, and that it is right once everything is there.
func FuzzSequence(fz *testing.F) {
	fz.Add([]byte{1, 0, 0, 2, 1, 1, 3, 2, 1, 9, 9, 0})
	fz.Fuzz(func(t *testing.T, raw []byte) {
		var s Sequence
		var n, optimizers int64
		raw = raw[:min(len(raw), 12*maxEvents)]
		for len(raw) >= 3 {
			kind := Kind(raw[2] & 1)
			end := int64(raw[0]) + 1
			if kind == Optimizer {
				optimizers++
			}
			more := s.Add(kind, end-int64(raw[1]%16), end)
			if more < 0 {
				t.Fatalf("%d more", more)
			}
			n += more
			raw = raw[3:]
			if got := s.steps(s.Events); got != s.Recent {
				t.Fatalf("%d steps are kept as %d", got, s.Recent)
			}
		}
		if n > optimizers {
			t.Errorf("%d steps of %d optimizers", n, optimizers)
		}
		if !slices.IsSortedFunc(s.Events, func(a, b event) int { return int(a.End - b.End) }) {
			t.Error("out of order")
		}
	})
}
