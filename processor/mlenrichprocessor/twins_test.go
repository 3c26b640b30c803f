package mlenrichprocessor

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// seenRequest is a request to a model as an instrumentation reports it, each in a
// trace of its own. Times are in milliseconds.
type seenRequest struct {
	scope, process, model, id string
	start, end                int
	output                    int64
	failed                    bool
}

// framework and sdkCall are a request of 12 tokens as two instrumentations see it.
var (
	framework = seenRequest{scope: "framework", process: "p", model: "m", start: 0, end: 100, output: 12}
	sdkCall   = seenRequest{scope: "client", process: "p", model: "m", id: "a-1", start: 5, end: 95, output: 12}
)

// but returns the request with a change.
func (r seenRequest) but(change func(*seenRequest)) seenRequest {
	change(&r)
	return r
}

func (r *seenRequest) addTo(td ptrace.Traces, number int) {
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "assistant")
	if r.process != "" {
		rs.Resource().Attributes().PutStr("service.instance.id", r.process)
	}
	ss := rs.ScopeSpans().AppendEmpty()
	ss.Scope().SetName(r.scope)
	span := ss.Spans().AppendEmpty()
	span.SetName(r.scope)
	span.SetTraceID(pcommon.TraceID{1, byte(number >> 8), byte(number)})
	span.SetSpanID(pcommon.SpanID{1, byte(number >> 8), byte(number)})
	span.SetStartTimestamp(pcommon.Timestamp(1_700_000_000e9 + r.start*1e6))
	span.SetEndTimestamp(pcommon.Timestamp(1_700_000_000e9 + r.end*1e6))
	span.Attributes().PutStr("gen_ai.operation.name", "chat")
	span.Attributes().PutStr("gen_ai.request.model", r.model)
	if r.id != "" {
		span.Attributes().PutStr("gen_ai.response.id", r.id)
	}
	if r.failed {
		span.Status().SetCode(ptrace.StatusCodeError)
		return
	}
	span.Attributes().PutInt("gen_ai.usage.output_tokens", r.output)
}

// repeatsOf sends requests, in one OTLP request or one each, and returns how many
// spans of each scope are marked.
func repeatsOf(t *testing.T, together bool, all ...seenRequest) map[string]int {
	t.Helper()
	return repeatsBy(t, "times", together, all...)
}

// repeatsBy is repeatsOf of marks with an evidence.
func repeatsBy(t *testing.T, evidence string, together bool, all ...seenRequest) map[string]int {
	t.Helper()
	p := startDefault(t)
	var batches []ptrace.Traces
	for i := range all {
		if len(batches) == 0 || !together {
			batches = append(batches, ptrace.NewTraces())
		}
		all[i].addTo(batches[len(batches)-1], i)
	}
	marked := map[string]int{}
	for _, td := range batches {
		for _, rs := range p.sendTraces(t, td).ResourceSpans().All() {
			span := rs.ScopeSpans().At(0).Spans().At(0)
			counted, repeats := span.Attributes().Get("ml.usage.counted")
			by, ok := span.Attributes().Get("ml.usage.evidence")
			assert.Equal(t, repeats, ok, "%s has both marks or none", span.Name())
			if _, elsewhere := span.Attributes().Get("ml.error.counted"); elsewhere {
				assert.True(t, repeats)
			}
			if repeats {
				assert.False(t, counted.Bool())
				assert.Equal(t, evidence, by.Str())
				marked[span.Name()]++
			}
		}
	}
	return marked
}

// TestOneRequestOfTwoInstrumentations shows that the first of two spans counts:
// in one OTLP request the inner one.
func TestOneRequestOfTwoInstrumentations(t *testing.T) {
	fails := func(r *seenRequest) { r.failed, r.id = true, "" }
	for name, pair := range map[string][2]seenRequest{
		"answered":         {framework, sdkCall},
		"failed":           {framework.but(fails), sdkCall.but(fails)},
		"one more output":  {framework.but(func(r *seenRequest) { r.output++; r.id = "" }), sdkCall},
		"at the same time": {framework, sdkCall.but(func(r *seenRequest) { r.start, r.end = 0, 100 })},
	} {
		t.Run(name, func(t *testing.T) {
			inner, outer := map[string]int{"client": 1}, map[string]int{"framework": 1}
			assert.Equal(t, outer, repeatsOf(t, false, pair[1], pair[0]))
			assert.Equal(t, inner, repeatsOf(t, false, pair[0], pair[1]))
			if name != "at the same time" {
				assert.Equal(t, outer, repeatsOf(t, true, pair[1], pair[0]))
				assert.Equal(t, outer, repeatsOf(t, true, pair[0], pair[1]))
			}
		})
	}
}

// TestTheFirstRequest shows that the first request of a process with a model may begin long
// before its client does, which is made within it: no other one, and only if both end
// together.
func TestTheFirstRequest(t *testing.T) {
	early := framework.but(func(r *seenRequest) { r.start = -1500 })
	later := func(r *seenRequest) { r.start, r.end, r.id = r.start+9000, r.end+9000, "" }
	outer := map[string]int{"framework": 1}
	for _, together := range []bool{true, false} {
		assert.Equal(t, outer, repeatsOf(t, together, sdkCall, early))
		assert.Equal(t, outer, repeatsOf(t, together, sdkCall, early, sdkCall.but(later), early.but(later)), "the second began long before, too")
		assert.Empty(t, repeatsOf(t, together, sdkCall, early.but(func(r *seenRequest) { r.end += 500 })))
		assert.Empty(t, repeatsOf(t, together, sdkCall, early.but(func(r *seenRequest) { r.output = 20 })))
	}
}

// TestRequestsThatAreTwo has for each condition two spans that fail it alone.
func TestRequestsThatAreTwo(t *testing.T) {
	for name, change := range map[string]func(*seenRequest){
		"another process":  func(r *seenRequest) { r.process = "q" },
		"no process":       func(r *seenRequest) { r.process = "" },
		"the same scope":   func(r *seenRequest) { r.scope = "client" },
		"another model":    func(r *seenRequest) { r.model = "n" },
		"no model":         func(r *seenRequest) { r.model = "" },
		"other usage":      func(r *seenRequest) { r.output = 14 },
		"one failed":       func(r *seenRequest) { r.failed = true },
		"overlapping only": func(r *seenRequest) { r.start = 6 },
		"one after another": func(r *seenRequest) {
			r.start, r.end = 200, 300
		},
		"another answer": func(r *seenRequest) { r.id = "a-2" },
	} {
		t.Run(name, func(t *testing.T) {
			for _, together := range []bool{true, false} {
				assert.Empty(t, repeatsOf(t, together, sdkCall, framework.but(change)))
				assert.Empty(t, repeatsOf(t, together, framework.but(change), sdkCall))
			}
		})
	}
}

// TestEqualRequests shows that requests which differ in nothing but their times
// are never fewer than the spans of one instrumentation, whether they run one
// after another or together.
func TestEqualRequests(t *testing.T) {
	const n = 100
	for name, apart := range map[string]int{"one after another": 150, "eight at a time": 13, "all at the same time": 0} {
		t.Run(name, func(t *testing.T) {
			var once, twice []seenRequest
			for i := range n {
				later := func(r *seenRequest) { r.start, r.end, r.id = r.start+i*apart, r.end+i*apart, "" }
				once = append(once, sdkCall.but(later))
				twice = append(twice, sdkCall.but(later), framework.but(later))
			}
			assert.Empty(t, repeatsOf(t, true, once...))
			assert.Empty(t, repeatsOf(t, false, once...))
			assert.Equal(t, map[string]int{"framework": n}, repeatsOf(t, false, twice...))
			// Of many equal ones at the same time it is not known which belong
			// together, and only a few are remembered.
			marked := repeatsOf(t, true, twice...)
			assert.LessOrEqual(t, marked["framework"]+marked["client"], n)
			if apart > 0 {
				assert.Equal(t, map[string]int{"framework": n}, marked)
			}
		})
	}
}

// TestRepeatedRequestDeliveredAgain shows that a mark is the same when a span
// comes again, and that it repeats no other request.
func TestRepeatedRequestDeliveredAgain(t *testing.T) {
	p := startDefault(t)
	send := func(r seenRequest, number int) []string {
		td := ptrace.NewTraces()
		r.addTo(td, number)
		return slices.Collect(maps.Keys(keysByName(p.sendTraces(t, td), "ml.usage.counted")))
	}
	other := sdkCall.but(func(r *seenRequest) { r.id = "a-2" })
	assert.Empty(t, send(sdkCall, 1))
	assert.Empty(t, send(other, 2))
	assert.Equal(t, []string{"framework"}, send(framework, 3))
	assert.Equal(t, []string{"framework"}, send(framework, 3), "again")
	assert.Empty(t, send(sdkCall, 1), "again")
	assert.Equal(t, []string{"framework"}, send(framework, 4), "the other one's")
	assert.Empty(t, send(framework, 5), "a third one has no pair")
}

// TestFailureAboveOneThatSucceeded shows that one failure is one error, though a
// span between the request and its agent succeeded.
func TestFailureAboveOneThatSucceeded(t *testing.T) {
	spans := []testSpan{
		{7, 1, 0, "agent", map[string]any{"gen_ai.operation.name": "invoke_agent"}},
		{7, 2, 1, "turn", nil},
		{7, 3, 2, "chat", map[string]any{"gen_ai.operation.name": "chat"}},
		{7, 4, 1, "tool", map[string]any{"gen_ai.operation.name": "execute_tool"}},
	}
	fail := func(td ptrace.Traces) ptrace.Traces {
		for _, rs := range td.ResourceSpans().All() {
			for _, span := range rs.ScopeSpans().At(0).Spans().All() {
				if span.Name() != "turn" {
					span.Status().SetCode(ptrace.StatusCodeError)
				}
			}
		}
		return td
	}
	want := map[string]string{"agent": "false"}
	assert.Equal(t, want, keysByName(startDefault(t).sendTraces(t, fail(batchOf("assistant", spans...))), "ml.error.counted"))
	p, got := startDefault(t), map[string]string{}
	for _, i := range []int{2, 3, 1, 0} {
		maps.Copy(got, keysByName(p.sendTraces(t, fail(batchOf("assistant", spans[i]))), "ml.error.counted"))
	}
	assert.Equal(t, want, got)
}
