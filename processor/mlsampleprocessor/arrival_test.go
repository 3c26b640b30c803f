package mlsampleprocessor

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/processor/mlsampleprocessor/internal/sample"
)

// sending is how the spans of a loop arrive.
type sending struct {
	name string
	// every is how often each rank sends, in steps, each at its own moment.
	every int
	// rootsFirst, rootsLast and reversed are the order of spans.
	rootsFirst, rootsLast, reversed bool
	// skew is how far apart the clocks of the ranks are at most.
	skew time.Duration
	// swapped reports whether every second request arrives after the next one.
	swapped bool
	// one reports whether a rank has one trace for its life.
	one bool
}

var sendings = []sending{
	{name: "each step at once", every: 1},
	{name: "some steps together", every: 5},
	{name: "the last spans first", every: 5, reversed: true},
	{name: "roots first, in a request of their own", every: 3, rootsFirst: true},
	{name: "clocks differ", every: 5, skew: 200 * time.Millisecond},
	{name: "one trace", every: 4, one: true},
	{name: "one trace, the last spans first", every: 4, one: true, reversed: true},
	{name: "one trace, roots late", every: 4, one: true, rootsLast: true},
	{name: "roots late", every: 4, rootsLast: true},
	{name: "requests out of order", every: 2, swapped: true},
}

// play sends the steps of a loop.
func (s *sending) play(t *testing.T, b *bed, l *loop, steps int, length func(step int) time.Duration, change func(step, rank int, span ptrace.Span)) {
	random := rand.New(rand.NewPCG(1, uint64(len(s.name))))
	waiting := make([]ptrace.Traces, l.ranks)
	held := make([]*ptrace.Traces, l.ranks)
	skews := make([]time.Duration, l.ranks)
	for rank := range waiting {
		waiting[rank] = ptrace.NewTraces()
		skews[rank] = time.Duration(random.Int64N(int64(s.skew) + 1))
	}
	for step := 1; step <= steps; step++ {
		took := length(step)
		td := l.take(took, func(rank int, span ptrace.Span) {
			span.SetStartTimestamp(span.StartTimestamp() + pcommon.Timestamp(skews[rank]))
			span.SetEndTimestamp(span.EndTimestamp() + pcommon.Timestamp(skews[rank]))
			if s.one {
				span.SetTraceID(pcommon.TraceID{9, byte(rank + 1)})
			}
			if change != nil {
				change(step, rank, span)
			}
		})
		for rank := range l.ranks {
			td.ResourceSpans().At(rank).CopyTo(waiting[rank].ResourceSpans().AppendEmpty())
			if (step+rank)%s.every == 0 || step == steps {
				td := waiting[rank]
				waiting[rank] = ptrace.NewTraces()
				if s.swapped && held[rank] == nil && step != steps {
					held[rank] = &td
					continue
				}
				s.send(t, b, td)
				if held[rank] != nil {
					s.send(t, b, *held[rank])
					held[rank] = nil
				}
			}
		}
		b.pass(t, took)
	}
}

func (s *sending) send(t *testing.T, b *bed, td ptrace.Traces) {
	if s.reversed {
		for _, rs := range td.ResourceSpans().All() {
			spans := rs.ScopeSpans().At(0).Spans()
			reversed := ptrace.NewSpanSlice()
			for i := spans.Len() - 1; i >= 0; i-- {
				spans.At(i).CopyTo(reversed.AppendEmpty())
			}
			reversed.CopyTo(spans)
		}
	}
	if !s.rootsFirst && !s.rootsLast {
		b.consume(t, td)
		return
	}
	for _, roots := range []bool{s.rootsFirst, s.rootsLast} {
		half := ptrace.NewTraces()
		td.CopyTo(half)
		for _, rs := range half.ResourceSpans().All() {
			rs.ScopeSpans().At(0).Spans().RemoveIf(func(span ptrace.Span) bool { return span.ParentSpanID().IsEmpty() != roots })
		}
		b.consume(t, half)
	}
}

func TestStepsAreWholeHoweverSpansArrive(t *testing.T) {
	const steps, oneIn = 400, 10
	for _, s := range sendings {
		for _, numbers := range []bool{true, false} {
			if s.swapped && !numbers {
				continue // nothing tells such steps apart
			}
			t.Run(fmt.Sprintf("%s, numbers %v", s.name, numbers), func(t *testing.T) {
				cfg := defaults()
				cfg.Steps = sample.Steps{OneIn: oneIn, Slow: 3, First: 2, Before: 4}
				b := newBed(t, cfg)
				l := &loop{run: "llama", ranks: 4, numbers: numbers, clock: begun}
				random := rand.New(rand.NewPCG(2, 3))
				s.play(t, b, l, steps, func(step int) time.Duration {
					if step == 222 {
						return 5 * time.Second
					}
					return time.Second + time.Duration(random.Int64N(int64(50*time.Millisecond)))
				}, func(step, rank int, span ptrace.Span) {
					if step == 333 && rank == 1 && span.Name() == "forward" {
						span.Status().SetCode(ptrace.StatusCodeError)
					}
				})
				spans := b.end(t)
				got := stepsOf(t, spans)
				for step, n := range got {
					assert.Equal(t, 4*5, n, "step %d", step)
				}
				if !s.swapped { // else others come first
					assert.Contains(t, got, int64(1))
					assert.Contains(t, got, int64(2))
				}
				for _, step := range []int64{222, 329, 330, 331, 332, 333} {
					assert.Contains(t, got, step)
				}
				assert.InDelta(t, 8+(steps-8)/oneIn, len(got), 3)
				within := 2 * oneIn
				if !numbers {
					within *= 2 // their share is right on average only
				}
				assertWeights(t, spans, steps, within)
			})
		}
	}
}

// assertWeights asserts that the kept spans stand for all steps, within some.
func assertWeights(t *testing.T, spans []ptrace.Span, steps, within int) {
	t.Helper()
	total := int64(0)
	for _, span := range spans {
		require.GreaterOrEqual(t, countOf(span), int64(0))
		total += countOf(span)
	}
	assert.InDelta(t, steps*4*5, total, float64(within*4*5), "the number of spans by their counts")
}
