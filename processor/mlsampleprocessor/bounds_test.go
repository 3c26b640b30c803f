package mlsampleprocessor

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/processor/mlsampleprocessor/internal/sample"
)

// The oldest units are decided before they have waited, and what is kept of them is sent.
func TestTheOldestAreDecidedEarly(t *testing.T) {
	cfg := only(sample.Steps{First: 2})
	cfg.MaxBytes = 1 << 20
	b := newBed(t, cfg)
	l := &loop{run: "llama", ranks: 4, numbers: true, clock: begun}
	for range 1000 {
		b.consume(t, l.take(10*time.Millisecond, nil))
		require.LessOrEqual(t, b.sampler.Bytes(), cfg.MaxBytes)
		b.pass(t, 10*time.Millisecond)
	}
	counts := b.sampler.Counts()
	assert.Positive(t, counts.Early)
	assert.Zero(t, counts.Overflow)
	assert.Equal(t, whole(1, 2), stepsOf(t, b.end(t)))
}

// While nothing can be sent, clients are not refused: what does not fit is lost and
// counted.
func TestSpansAreLostWhileNothingCanBeSent(t *testing.T) {
	cfg := defaults()
	cfg.Steps.OneIn, cfg.MaxBytes = 1, 1<<20
	b := newBed(t, cfg)
	sink := b.next
	b.next = consumertest.NewErr(errors.New("full"))
	l := &loop{run: "llama", ranks: 4, numbers: true, clock: begun}
	for range 40 {
		for range 25 {
			b.consume(t, l.take(10*time.Millisecond, nil))
		}
		require.LessOrEqual(t, b.sampler.Bytes(), cfg.MaxBytes)
		b.pass(t, time.Second/4)
	}
	b.next = sink
	sent := len(b.end(t))
	counts := b.sampler.Counts()
	assert.Positive(t, counts.Overflow)
	assert.Positive(t, sent)
	assert.Equal(t, int64(1000*4*5), int64(sent)+counts.Overflow)
}

// Whatever is new in each span, memory is limited: by max_bytes for what waits, and by
// the numbers of what is remembered.
func TestFloods(t *testing.T) {
	for name, change := range map[string]func(n int, resource pcommon.Resource, span ptrace.Span){
		"runs": func(n int, resource pcommon.Resource, span ptrace.Span) {
			resource.Attributes().PutStr("ml.run.id", fmt.Sprint("run-", n))
			span.Attributes().PutStr("ml.phase", "optimizer")
		},
		"ranks": func(n int, resource pcommon.Resource, span ptrace.Span) {
			resource.Attributes().PutInt("ml.rank.global", int64(n))
			span.Attributes().PutStr("ml.phase", "optimizer")
		},
		"steps": func(n int, _ pcommon.Resource, span ptrace.Span) {
			span.Attributes().PutStr("ml.phase", "optimizer")
			span.Attributes().PutInt("ml.step", int64(n))
		},
		"traces": func(int, pcommon.Resource, ptrace.Span) {},
		"conversations": func(n int, _ pcommon.Resource, span ptrace.Span) {
			span.Attributes().PutStr("gen_ai.conversation.id", strconv.Itoa(n))
			span.Status().SetCode(ptrace.StatusCodeError)
		},
		"operations": func(n int, _ pcommon.Resource, span ptrace.Span) {
			span.Attributes().PutStr("ml.operation", strconv.Itoa(n))
		},
		"resources": func(n int, resource pcommon.Resource, _ ptrace.Span) {
			resource.Attributes().PutStr("text", strings.Repeat(fmt.Sprint(n, " "), 50))
		},
		"epochs in one trace": func(n int, _ pcommon.Resource, span ptrace.Span) {
			span.SetTraceID(pcommon.TraceID{1})
			span.SetParentSpanID(pcommon.SpanID{byte(n), byte(n >> 8), byte(n >> 16), 1})
			span.Attributes().PutStr("ml.phase", "epoch")
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := defaults()
			cfg.MaxBytes = 4 << 20
			b := newBed(t, cfg)
			discard(b)
			before := heap()
			for request := range 500 {
				td := ptrace.NewTraces()
				for i := range 100 {
					n := 100*request + i
					rs := td.ResourceSpans().AppendEmpty()
					span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
					span.SetTraceID(pcommon.TraceID{byte(n), byte(n >> 8), byte(n >> 16), 7})
					span.SetSpanID(pcommon.SpanID{1})
					at := pcommon.NewTimestampFromTime(b.clock)
					span.SetStartTimestamp(at)
					span.SetEndTimestamp(at + pcommon.Timestamp(1+i)*1e6)
					change(n, rs.Resource(), span)
				}
				b.consume(t, td)
				require.LessOrEqual(t, b.sampler.Bytes(), cfg.MaxBytes)
				b.pass(t, 100*time.Millisecond)
			}
			assert.Less(t, int64(heap())-int64(before), int64(64<<20))
			b.end(t)
		})
	}
}

// What a decision costs does not depend on how many steps of the run wait: their sender chooses
// that, and no span is taken meanwhile. Sixteen times the steps take 256 times as long if it does.
func TestManyStepsAreDecidedAtOnce(t *testing.T) {
	decide := func(steps int) (took time.Duration) {
		const each = 1000
		b := newBed(t, only(sample.Steps{Before: 20}))
		for request := range steps / each {
			td := ptrace.NewTraces()
			spans := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
			for i := range each {
				n := each*request + i
				span := spans.AppendEmpty()
				span.SetTraceID(pcommon.TraceID{byte(n), byte(n >> 8), byte(n >> 16), 7})
				span.SetSpanID(pcommon.SpanID{1})
				begin := b.clock.Add(time.Duration(n) * time.Millisecond)
				span.SetStartTimestamp(pcommon.NewTimestampFromTime(begin))
				span.SetEndTimestamp(pcommon.NewTimestampFromTime(begin.Add(time.Millisecond)))
				span.Attributes().PutStr("ml.phase", "optimizer")
				span.Attributes().PutInt("ml.step", int64(n+1))
			}
			b.consume(t, td)
		}
		begin := time.Now()
		b.sampler.DecideAll(b.clock)
		took = time.Since(begin)
		assert.Equal(t, int64(steps), b.sampler.Counts().Units[sample.Step][sample.Dropped])
		return took
	}
	for range 3 { // a machine that does something else for a while lengthens one of them
		if few := decide(10_000); decide(160_000) < 100*few {
			return
		}
	}
	t.Error("the time of a decision grows with the square of the steps")
}

// Two collectors that each see other ranks of a run keep the same steps, if the steps are
// numbered or begin together.
func TestCollectorsKeepTheSameSteps(t *testing.T) {
	for _, numbers := range []bool{true, false} {
		cfg := only(sample.Steps{})
		cfg.Steps.OneIn = 10
		beds := []*bed{newBed(t, cfg), newBed(t, cfg)}
		l := &loop{run: "llama", ranks: 4, numbers: numbers, clock: begun}
		for range 500 {
			td := l.take(time.Second, nil)
			for half, b := range beds {
				own := ptrace.NewTraces()
				for rank := range 2 {
					td.ResourceSpans().At(2*half + rank).CopyTo(own.ResourceSpans().AppendEmpty())
				}
				b.consume(t, own)
				b.pass(t, time.Second)
			}
		}
		first, second := stepsOf(t, beds[0].end(t)), stepsOf(t, beds[1].end(t))
		assertTenth(t, 500, len(first), numbers)
		assert.Equal(t, first, second)
	}
}
