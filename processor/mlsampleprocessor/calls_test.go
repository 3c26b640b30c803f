package mlsampleprocessor

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/processor/mlsampleprocessor/internal/sample"
)

// service answers calls of two spans, each call a trace.
type service struct {
	name  string
	calls uint64
}

// call returns the spans of a call that ends now. change may change them.
func (s *service) call(now time.Time, length time.Duration, conversation string, change func(root, chat ptrace.Span)) ptrace.Traces {
	s.calls++
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", s.name)
	spans := rs.ScopeSpans().AppendEmpty().Spans()
	var trace pcommon.TraceID
	binary.BigEndian.PutUint64(trace[:], s.calls)
	chat, root := spans.AppendEmpty(), spans.AppendEmpty()
	for i, span := range []ptrace.Span{chat, root} {
		span.SetTraceID(trace)
		span.SetSpanID(pcommon.SpanID{byte(i + 1)})
		span.SetStartTimestamp(pcommon.NewTimestampFromTime(now.Add(-length)))
		span.SetEndTimestamp(pcommon.NewTimestampFromTime(now))
		span.Attributes().PutInt("call", int64(s.calls))
		if conversation != "" {
			span.Attributes().PutStr("gen_ai.conversation.id", conversation)
		}
	}
	chat.SetParentSpanID(root.SpanID())
	root.SetName("invoke_agent helper")
	root.Attributes().PutStr("gen_ai.operation.name", "invoke_agent")
	chat.SetName("chat m")
	chat.Attributes().PutStr("gen_ai.operation.name", "chat")
	if change != nil {
		change(root, chat)
	}
	return td
}

// callsOf returns the number of spans by call.
func callsOf(spans []ptrace.Span) map[int64]int {
	calls := make(map[int64]int)
	for _, span := range spans {
		v, _ := span.Attributes().Get("call")
		calls[v.Int()]++
	}
	return calls
}

// onlyCalls keeps no call for itself, except rare ones: the first of each operation in
// a minute. warmed returns a bed where these are over.
func onlyCalls(calls sample.Calls) *Config {
	cfg := defaults()
	cfg.Calls = calls
	cfg.Calls.OneIn = maxOneIn
	return cfg
}

func warmed(t *testing.T, cfg *Config, s *service) *bed {
	t.Helper()
	b := newBed(t, cfg)
	b.clock = b.clock.Truncate(time.Minute)
	b.consume(t, s.call(b.clock, time.Second, "", nil))
	b.pass(t, cfg.Wait)
	b.sink.Reset()
	return b
}

func TestAFailedCallIsKeptWithItsAncestors(t *testing.T) {
	s := &service{name: "agent"}
	b := warmed(t, onlyCalls(sample.Calls{}), s)
	for call := range 20 {
		b.consume(t, s.call(b.clock, time.Second, "", func(_, chat ptrace.Span) {
			if call == 7 {
				chat.Status().SetCode(ptrace.StatusCodeError)
			}
		}))
	}
	assert.Equal(t, map[int64]int{9: 2}, callsOf(b.end(t)))
}

// The spans above a kept one arrive after it, in any number of requests.
func TestAncestorsOfKeptSpansAreKept(t *testing.T) {
	s := &service{} // the first call is rare
	b := warmed(t, onlyCalls(sample.Calls{}), s)
	for level, phase := range []string{"epoch", "", "", ""} { // from below
		td := ptrace.NewTraces()
		span := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		span.Attributes().PutStr("gen_ai.operation.name", "chat")
		span.SetTraceID(pcommon.TraceID{1})
		span.SetSpanID(pcommon.SpanID{byte(10 - level)})
		span.SetParentSpanID(pcommon.SpanID{byte(10 - level - 1)})
		if level == 3 {
			span.SetParentSpanID(pcommon.SpanID{})
		}
		span.SetEndTimestamp(pcommon.NewTimestampFromTime(b.clock))
		if phase != "" {
			span.Attributes().PutStr("ml.phase", phase)
		}
		b.consume(t, td)
		if level == 1 { // these are sent before the others arrive
			b.pass(t, time.Second)
		}
	}
	assert.Len(t, b.end(t), 4)
}

// The rest of a long call fails after the wait: the failure is kept, with its ancestors
// that are still to come.
func TestALateFailureIsKept(t *testing.T) {
	s := &service{name: "agent"}
	cfg := onlyCalls(sample.Calls{})
	b := warmed(t, cfg, s)
	b.consume(t, s.call(b.clock, time.Second, "", nil))
	b.pass(t, cfg.Wait)
	s.calls--
	b.consume(t, s.call(b.clock, time.Second, "", func(root, chat ptrace.Span) {
		chat.SetSpanID(pcommon.SpanID{7})
		chat.SetParentSpanID(pcommon.SpanID{8})
		chat.Status().SetCode(ptrace.StatusCodeError)
		root.SetSpanID(pcommon.SpanID{8})
		root.SetParentSpanID(pcommon.SpanID{9})
	}))
	s.calls--
	b.consume(t, s.call(b.clock, time.Second, "", func(root, chat ptrace.Span) {
		chat.SetSpanID(pcommon.SpanID{10})
		root.SetSpanID(pcommon.SpanID{9})
	}))
	var ids []byte
	for _, span := range b.end(t) {
		id := span.SpanID()
		ids = append(ids, id[0])
		assert.Equal(t, int64(1), countOf(span))
	}
	assert.Equal(t, []byte{7, 8, 9}, ids)
}

func TestAConversationWithAFailureIsKept(t *testing.T) {
	s := &service{name: "agent"}
	b := warmed(t, onlyCalls(sample.Calls{}), s)
	for turn := range 5 {
		for _, conversation := range []string{"a", "b"} {
			b.consume(t, s.call(b.clock, time.Second, conversation, func(root, _ ptrace.Span) {
				if turn == 3 && conversation == "b" {
					root.Status().SetCode(ptrace.StatusCodeError)
				}
			}))
		}
		b.pass(t, time.Second)
	}
	assert.Equal(t, map[int64]int{3: 2, 5: 2, 7: 2, 9: 2, 11: 2}, callsOf(b.end(t)))
}

func TestASlowCallIsKept(t *testing.T) {
	s := &service{name: "agent"}
	b := warmed(t, onlyCalls(sample.Calls{Slow: 3}), s)
	for call := range 50 {
		length := time.Second
		if call == 40 {
			length = 4 * time.Second
		}
		b.consume(t, s.call(b.clock, length, "", nil))
	}
	assert.Equal(t, map[int64]int{42: 2}, callsOf(b.end(t)))
}

// A long answer takes long and is not slow.
func TestSlowCallsAreComparedByOutputTokens(t *testing.T) {
	s := &service{name: "agent"}
	b := warmed(t, onlyCalls(sample.Calls{Slow: 3}), s)
	for call := range 60 {
		tokens := int64(100)
		if call%2 == 0 {
			tokens = 2000
		}
		length := 10 * time.Millisecond * time.Duration(tokens)
		if call == 41 {
			length *= 6
		}
		b.consume(t, s.call(b.clock, length, "", func(_, chat ptrace.Span) {
			chat.Attributes().PutInt("gen_ai.usage.output_tokens", tokens)
		}))
	}
	assert.Equal(t, map[int64]int{43: 2}, callsOf(b.end(t)))
}

func TestRareOperationsAreKeptOncePerMinute(t *testing.T) {
	s := &service{name: "agent"}
	cfg := onlyCalls(sample.Calls{})
	b := newBed(t, cfg)
	b.clock = b.clock.Truncate(time.Minute)
	for call := range 180 {
		b.consume(t, s.call(b.clock, time.Second, "", func(root, _ ptrace.Span) {
			if call == 100 {
				root.Attributes().PutStr("ml.operation", "compact")
			}
		}))
		b.pass(t, time.Second)
	}
	assert.Equal(t, map[int64]int{1: 2, 61: 2, 101: 2, 121: 2}, callsOf(b.end(t)))
}

// What a kept span links to is kept, too, if it still waits. It stands for no call.
func TestAMarkedCallIsKeptAndWhatItLinksTo(t *testing.T) {
	s := &service{name: "agent"}
	cfg := onlyCalls(sample.Calls{})
	b := warmed(t, cfg, s)
	b.consume(t, s.call(b.clock, time.Second, "", func(root, _ ptrace.Span) {
		root.Attributes().PutBool("ml.sample.keep", true)
		root.Links().AppendEmpty().SetTraceID(pcommon.TraceID{7: 4})
	}))
	b.pass(t, cfg.Wait/2)
	for range 3 {
		b.consume(t, s.call(b.clock, time.Second, "", nil))
	}
	b.pass(t, cfg.Wait/2)
	spans := b.end(t)
	assert.Equal(t, map[int64]int{2: 2, 4: 2}, callsOf(spans))
	assert.Equal(t, []int64{1, 1, 0, 0}, []int64{countOf(spans[0]), countOf(spans[1]), countOf(spans[2]), countOf(spans[3])})
}

// All turns of a conversation are kept or none, in the shares that were asked for, and
// the weighted sum of what was kept is within three standard errors of the truth.
func TestCallsAreSampledByConversation(t *testing.T) {
	const conversations, oneIn = 4000, 20
	s := &service{name: "agent"}
	cfg := defaults()
	cfg.Calls = sample.Calls{OneIn: oneIn}
	b := newBed(t, cfg)
	random := rand.New(rand.NewPCG(5, 6))
	truth, square := 0.0, 0.0
	for conversation := range conversations {
		own := 0.0
		for range 3 {
			tokens := int64(100 + random.IntN(200))
			own += float64(tokens)
			b.consume(t, s.call(b.clock, time.Second, fmt.Sprint("conversation-", conversation), func(_, chat ptrace.Span) {
				chat.Attributes().PutInt("gen_ai.usage.output_tokens", tokens)
			}))
		}
		truth += own
		square += own * own
		b.pass(t, 10*time.Millisecond)
	}
	spans := b.end(t)
	byConversation := make(map[string]int)
	estimate := 0.0
	for _, span := range spans {
		id, _ := span.Attributes().Get("gen_ai.conversation.id")
		byConversation[id.Str()]++
		if tokens, ok := span.Attributes().Get("gen_ai.usage.output_tokens"); ok {
			estimate += float64(tokens.Int() * countOf(span))
		}
	}
	for id, n := range byConversation {
		if n != 6 && n != 2 { // the rare ones are kept alone
			t.Errorf("%d spans of %s", n, id)
		}
	}
	expected := float64(conversations) / oneIn
	assert.InDelta(t, expected, len(byConversation), 3*math.Sqrt(expected))
	assert.InDelta(t, truth, estimate, 3*math.Sqrt(square*(oneIn-1)))
}
