package mlmetricsconnector

import (
	"encoding/binary"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// sent is a span as a client sends it.
type sent struct {
	name  string
	root  bool
	attrs map[string]any
	took  time.Duration
	fails bool
}

// task sends the spans of one trace of a service, one after the other.
func (r *run) task(t *testing.T, resource map[string]any, spans ...sent) {
	t.Helper()
	r.spans++
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	require.NoError(t, rs.Resource().Attributes().FromRaw(resource))
	all := rs.ScopeSpans().AppendEmpty().Spans()
	at := r.clock
	for i, s := range spans {
		span := all.AppendEmpty()
		span.SetName(s.name)
		var trace pcommon.TraceID
		binary.BigEndian.PutUint16(trace[:], r.spans)
		trace[8] = 7
		span.SetTraceID(trace)
		span.SetSpanID(pcommon.SpanID{1, byte(i)})
		if !s.root {
			span.SetParentSpanID(pcommon.SpanID{9})
		}
		require.NoError(t, span.Attributes().FromRaw(s.attrs))
		if s.fails {
			span.Status().SetCode(ptrace.StatusCodeError)
		}
		span.SetStartTimestamp(pcommon.NewTimestampFromTime(at))
		at = at.Add(s.took)
		span.SetEndTimestamp(pcommon.NewTimestampFromTime(at))
	}
	r.clock = r.clock.Add(5 * time.Second)
	require.NoError(t, r.connector.ConsumeTraces(t.Context(), td))
}

// tasks sends as many traces, with an emission each minute, and returns the records
// of problems that began.
func (r *run) tasks(t *testing.T, logs *consumertest.LogsSink, n int, version string, spans func(i int) []sent) (began map[string]plog.LogRecord) {
	t.Helper()
	began = map[string]plog.LogRecord{}
	for i := range n {
		all, service := spans(i), "bot"
		if all[0].name == "Planner.reply" {
			service = "taskweaver" // the name of this client's span is an everyday one
		}
		r.task(t, map[string]any{"service.name": service, "service.version": version}, all...)
		if i%12 == 11 {
			r.after(t, 0)
			for _, record := range recordsOf(logs, "ml.problem") {
				if textOf(t, record, "ml.problem.state") == "began" {
					began[textOf(t, record, "ml.problem")] = record
				}
			}
		}
	}
	return began
}

func evidenceOf(t *testing.T, record plog.LogRecord) (phrases []string) {
	t.Helper()
	v, ok := record.Attributes().Get("ml.problem.evidence")
	require.True(t, ok)
	for _, phrase := range v.Slice().All() {
		phrases = append(phrases, phrase.Str())
	}
	return phrases
}

// What clients send differs; the same problem is found in all of it.
func TestProblemsOfServices(t *testing.T) {
	with := func(base, change map[string]any) map[string]any {
		all := map[string]any{}
		for _, m := range []map[string]any{base, change} {
			maps.Copy(all, m)
		}
		return all
	}
	conventions := map[string]any{
		"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.response.model": "m-1", "gen_ai.response.finish_reasons": []any{"stop"},
		"gen_ai.usage.input_tokens": 2000, "gen_ai.usage.output_tokens": 100, "gen_ai.usage.cache_read.input_tokens": 1500,
	}
	inference := map[string]any{
		"openinference.span.kind": "LLM", "llm.model_name": "m-1", "llm.finish_reason": "stop", "llm.token_count.prompt": 2000,
		"llm.token_count.completion": 100, "llm.token_count.prompt_details.cache_read": 1500, "llm.cost.total": 0.01,
	}
	vercel := map[string]any{
		"ai.operationId": "ai.generateText.doGenerate", "ai.model.id": "m", "ai.response.model": "m-1", "ai.response.finishReason": "stop",
		"ai.usage.inputTokens": 2000, "ai.usage.outputTokens": 100, "ai.usage.cachedInputTokens": 1500,
	}
	planner := map[string]any{"prompt_size": 500, "output_size": 50}
	tool := func(kind, name string) map[string]any { return map[string]any{kind: "TOOL", name: "search"} }
	chat := func(name string, attrs map[string]any) []sent {
		return []sent{{name: name, root: true, attrs: attrs, took: time.Second}}
	}
	for name, tt := range map[string]struct {
		kind            string
		usual, unusual  []sent
		evidence, other string
	}{
		"slow, by the conventions": {
			"slow_requests", chat("chat", conventions), []sent{{name: "chat", root: true, attrs: conventions, took: 3 * time.Second}},
			"requests to m: 3 s, usually 1 s", "throughput_drop"},
		"cut, by the conventions": {
			"truncated", chat("chat", conventions), chat("chat", with(conventions, map[string]any{"gen_ai.response.finish_reasons": []any{"length"}})),
			"answers of m reached their limit of tokens", ""},
		"cut, another client's word": {
			"truncated", chat("LLM", inference), chat("LLM", with(inference, map[string]any{"llm.finish_reason": "max_tokens"})),
			"reached their limit of tokens", ""},
		"cut, a third client": {
			"truncated", chat("ai.generateText.doGenerate", vercel), chat("ai.generateText.doGenerate", with(vercel, map[string]any{"ai.response.finishReason": "length"})),
			"answers of m reached their limit of tokens", ""},
		"another model": {
			"model_substituted", chat("chat", conventions), chat("chat", with(conventions, map[string]any{"gen_ai.response.model": "tiny"})),
			"answered by tiny, usually by m-1", ""},
		"no cache": {
			"cache_collapsed", chat("ai", vercel), chat("ai", with(vercel, map[string]any{"ai.usage.cachedInputTokens": 0})),
			"cached share of the input of m: 0 %, usually 75 %", ""},
		"cost": {
			"costly", chat("LLM", inference), chat("LLM", with(inference, map[string]any{"llm.cost.total": 0.03})),
			"a task: 0.03 USD, usually 0.01 USD", ""},
		"a tool, another client's": {
			"tool_errors",
			[]sent{{name: "t", attrs: tool("openinference.span.kind", "tool.name"), took: time.Second}},
			[]sent{{name: "t", attrs: tool("openinference.span.kind", "tool.name"), took: time.Second, fails: true}},
			"calls of search failed", ""},
		"steps of roles": {
			"costly",
			[]sent{{name: "Planner.reply", attrs: planner, took: time.Second}, {name: "Session.send_message", root: true, took: time.Second, attrs: map[string]any{"session_id": "s"}}},
			[]sent{{name: "Planner.reply", attrs: with(planner, map[string]any{"prompt_size": 5000}), took: time.Second}, {name: "Session.send_message", root: true, took: time.Second, attrs: map[string]any{"session_id": "s"}}},
			"a task: 5050 token, usually 550 token", ""},
		"an agent that fails": {
			"failing",
			[]sent{{name: "Planner.reply", attrs: planner, took: time.Second}, {name: "Session.send_message", root: true, took: time.Second, attrs: map[string]any{"session_id": "s"}}},
			[]sent{{name: "Planner.reply", attrs: planner, took: time.Second}, {name: "Session.send_message", root: true, took: time.Second, fails: true, attrs: map[string]any{"session_id": "s"}}},
			"requests to agents failed", ""},
		"the same call of a tool": {
			"looping",
			[]sent{{name: "execute_tool search", took: time.Second, attrs: map[string]any{"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search", "gen_ai.tool.call.arguments": "{}"}}},
			repeated(sent{name: "execute_tool search", took: time.Second, attrs: map[string]any{"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search", "gen_ai.tool.call.arguments": "{}"}}, 40),
			"search was called 40 times in one task, with the same arguments where they are known, usually at most 1 times", ""},
		"a retry after a failure": {
			"retry_storm", chat("chat", conventions),
			append(repeated(sent{name: "chat", attrs: map[string]any{"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}, took: time.Second, fails: true}, 2), sent{name: "chat", attrs: conventions, took: time.Second}),
			"requests repeat one that failed", "failing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRun(t, createDefaultConfig().(*Config))
			logs := new(consumertest.LogsSink)
			r.connector.Shared.outlets.Add(logs)
			require.Empty(t, r.tasks(t, logs, 400, "1", func(int) []sent { return tt.usual }))
			onset := r.clock
			began := r.tasks(t, logs, 120, "2", func(int) []sent { return tt.unusual })
			require.Contains(t, began, tt.kind)
			assert.Contains(t, joined(evidenceOf(t, began[tt.kind])), tt.evidence)
			assert.InDelta(t, float64(onset.Unix()), numberOf(t, began[tt.kind], "ml.problem.onset"), 60)
			delete(began, tt.kind)
			delete(began, tt.other)
			assert.Empty(t, began)
		})
	}
}

func repeated(s sent, n int) (all []sent) {
	for range n {
		all = append(all, s)
	}
	return all
}

func joined(phrases []string) string { return strings.Join(phrases, "\n") + "\n" }

// The version that fails is named, with that which does not.
func TestFailingByVersion(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	logs := new(consumertest.LogsSink)
	r.connector.Shared.outlets.Add(logs)
	chat := sent{name: "chat", root: true, attrs: map[string]any{"gen_ai.operation.name": "chat"}, took: time.Second}
	one := func(int) []sent { return []sent{chat} }
	require.Empty(t, r.tasks(t, logs, 300, "1.8.1", one))
	failed := chat
	failed.fails = true
	for range 30 {
		r.tasks(t, logs, 3, "1.8.1", one)
		r.task(t, map[string]any{"service.name": "bot", "service.version": "1.8.2"}, failed)
	}
	r.after(t, 0)
	records := recordsOf(logs, "ml.problem")
	require.Len(t, records, 1)
	evidence := joined(evidenceOf(t, records[0]))
	assert.Contains(t, evidence, "mostly version 1.8.2\n")
	assert.Regexp(t, `version 1\.8\.1: 0 of its last \d+\n`, evidence)
	assert.Regexp(t, `version 1\.8\.2: (\d+) of its last \d+\n`, evidence)
}
