package vocabulary_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// factsOf reads a span of a client that no table lists.
func factsOf(t *testing.T, attrs map[string]any, events ...map[string]any) map[string]any {
	t.Helper()
	s := ptrace.NewSpan()
	require.NoError(t, s.Attributes().FromRaw(attrs))
	for _, event := range events {
		require.NoError(t, s.Events().AppendEmpty().Attributes().FromRaw(event))
	}
	_, facts := vocabulary.Classify(pcommon.NewMap(), "acme", s)
	values := make(map[string]any)
	for fact := range facts.All() {
		if !fact.Own {
			to := pcommon.NewMap()
			fact.Put(to)
			for key, v := range to.All() {
				values[key] = v.AsRaw()
			}
		}
	}
	return values
}

// TestGeneralRules has spans of clients that no table lists.
func TestGeneralRules(t *testing.T) {
	chat := func(more map[string]any) map[string]any {
		more["gen_ai.operation.name"] = "chat"
		return more
	}
	in, out := mlattr.GenAIInputTokens, mlattr.GenAIOutputTokens
	for name, tt := range map[string]struct {
		attrs, want map[string]any
	}{
		"tokens":              {map[string]any{"acme.usage.prompt_tokens": 7, "x.completionTokens": 2}, map[string]any{in: int64(7), out: int64(2)}},
		"as text":             {map[string]any{"acme.input_token_count": "7"}, map[string]any{in: int64(7)}},
		"in other orders":     {map[string]any{"a.tokens.input": 7, "b.tokens_out": 2, "a.input_cache_read": 3}, map[string]any{in: int64(7), out: int64(2), mlattr.GenAICacheReadTokens: int64(3)}},
		"by two words":        {map[string]any{"a.token_count.prompt": 7}, map[string]any{in: int64(7)}},
		"a part":              {map[string]any{"a.audio.input_tokens": 7, "a.prompt_token_details.input_tokens": 3}, map[string]any{}},
		"a limit":             {map[string]any{"a.max_input_tokens": 7, "a.limits.input_tokens": 3}, map[string]any{}},
		"a sum of requests":   {map[string]any{"gen_ai.aggregated_usage.input_tokens": 7}, map[string]any{}},
		"no number":           {map[string]any{"a.input_tokens": "many"}, map[string]any{}},
		"an operation":        {map[string]any{"a.span.type": "LLM"}, map[string]any{mlattr.GenAIOperationName: "chat"}},
		"by its model":        {map[string]any{"a.span.type": "embedding", "a.model": "m"}, map[string]any{mlattr.GenAIOperationName: "embeddings", mlattr.GenAIRequestModel: "m"}},
		"no model":            {map[string]any{"room.run.type": "chat", "session_id": "s"}, map[string]any{}},
		"another's model":     {map[string]any{"device.model.name": "Pixel", "app.session_id": "s", "log.level": "ERROR"}, map[string]any{}},
		"who answered":        {chat(map[string]any{"a.response.model": "m-1", "a.model_id": "m"}), map[string]any{mlattr.GenAIRequestModel: "m", mlattr.GenAIResponseModel: "m-1"}},
		"JSON's quotes":       {chat(map[string]any{"a.model": `"m"`}), map[string]any{mlattr.GenAIRequestModel: "m"}},
		"none":                {chat(map[string]any{"a.model": "null", "a.session_id": "None"}), map[string]any{}},
		"keys":                {chat(map[string]any{"a.session_id": "s", "b.stop_reason": "end"}), map[string]any{mlattr.SessionID: "s", mlattr.GenAIFinishReasons: []any{"end"}}},
		"a first token":       {chat(map[string]any{"a.ttft_ms": 250}), map[string]any{mlattr.GenAITimeToFirstChunk: 0.25}},
		"a level":             {chat(map[string]any{"a.level": "ERROR"}), map[string]any{mlattr.ErrorType: mlattr.Other}},
		"a status":            {chat(map[string]any{"a.level": "ERROR", "a.status_message": "Error: 429 slow down"}), map[string]any{mlattr.ErrorType: "429"}},
		"no failure":          {chat(map[string]any{"a.level": "INFO", "a.status_message": "took 500ms"}), map[string]any{}},
		"a step of a program": {chat(map[string]any{"a.run_type": "chain"}), map[string]any{mlattr.RequestCounted: false}},
		"usage in JSON": {chat(map[string]any{"a.output": `{"message":{"text":"usage"},"x":{"usage":{"prompt_tokens":7,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":3,"audio_tokens":1}},"model":"m-1"}}`}),
			map[string]any{in: int64(7), out: int64(2), mlattr.GenAICacheReadTokens: int64(3), mlattr.GenAIResponseModel: "m-1"}},
		"usage as a map":   {chat(map[string]any{"a.response": map[string]any{"usage": map[string]any{"input_tokens": 7}}}), map[string]any{in: int64(7)}},
		"usage of its own": {chat(map[string]any{"a.usage_details": `{"input":7,"output":2}`}), map[string]any{in: int64(7), out: int64(2)}},
		"billed units":     {chat(map[string]any{"a.output": `{"data":[],"meta":{"billed_units":{"input_tokens":7}}}`}), map[string]any{in: int64(7)}},
		"caches above the input": {map[string]any{"a.input_tokens": 25, "a.output_tokens": 13, "a.total_tokens": 38, "a.cached_tokens": 96},
			map[string]any{in: int64(25), out: int64(13), mlattr.GenAICacheReadTokens: int64(96), mlattr.UsageInputTokens: int64(121)}},
		"of no request":             {map[string]any{"a.output": `{"usage":{"prompt_tokens":7}}`}, map[string]any{}},
		"torn JSON":                 {chat(map[string]any{"a.output": `{"usage":{"prompt_tokens":7`}), map[string]any{}},
		"caches and reasoning":      {map[string]any{"a.input_tokens": 77, "a.output_tokens": 8, "a.total_tokens": 118, "a.cached_tokens": 30, "a.reasoning_tokens": 3}, map[string]any{in: int64(77), out: int64(8), mlattr.GenAICacheReadTokens: int64(30), mlattr.GenAIReasoningTokens: int64(3), mlattr.UsageInputTokens: int64(107), mlattr.UsageOutputTokens: int64(11)}},
		"one side of a total":       {map[string]any{"a.output_tokens": 8, "a.total_tokens": 18}, map[string]any{in: int64(10), out: int64(8)}},
		"a total of something else": {map[string]any{"a.input_tokens": 7, "a.output_tokens": 2, "a.total_tokens": 100}, map[string]any{in: int64(7), out: int64(2)}},
	} {
		assert.Equal(t, tt.want, factsOf(t, tt.attrs), name)
	}
}

// TestRequestInEvents has a client whose events alone tell of a request.
func TestRequestInEvents(t *testing.T) {
	start := map[string]any{"model_dict.model_name": "m", "messages": "[]"}
	end := map[string]any{"messages": "[]", "response.raw.usage.prompt_tokens": "7", "response.raw.usage.completion_tokens": "2"}
	assert.Equal(t, map[string]any{mlattr.GenAIOperationName: "chat", mlattr.GenAIRequestModel: "m", mlattr.GenAIInputTokens: int64(7), mlattr.GenAIOutputTokens: int64(2)},
		factsOf(t, nil, start, end))
	assert.Empty(t, factsOf(t, nil, map[string]any{"a.model": "m"}, end), "no request is seen")
}

// TestMomentsOfARequest has clients that make spans of the events of a request: of its tokens
// and of its failure.
func TestMomentsOfARequest(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(ptrace.Span)
		want   bool // whether it is a request
	}{
		"a moment":       {func(ptrace.Span) {}, false},
		"of some time":   {func(s ptrace.Span) { s.SetEndTimestamp(2e9) }, true},
		"of a model":     {func(s ptrace.Span) { s.Attributes().PutStr("a.model", "m") }, true},
		"with its usage": {func(s ptrace.Span) { s.Attributes().PutInt("a.input_tokens", 3) }, true},
		"that failed":    {func(s ptrace.Span) { s.Status().SetCode(ptrace.StatusCodeError) }, true},
		"of its own":     {func(s ptrace.Span) { s.SetParentSpanID(pcommon.SpanID{}) }, true},
	} {
		s := ptrace.NewSpan()
		s.SetName("new_token")
		s.SetParentSpanID(pcommon.SpanID{1})
		s.SetStartTimestamp(1e9)
		s.SetEndTimestamp(1e9)
		s.Attributes().PutStr("a.span.type", "LLM")
		tt.change(s)
		_, facts := vocabulary.Classify(pcommon.NewMap(), "acme", s)
		counted, stated := facts.BoolAt(vocabulary.SlotRequestCounted)
		assert.Equal(t, tt.want, counted || !stated, name)
	}
}

// TestRequestsByTheirName has spans that state a model and tokens, and only in their name that
// they are requests.
func TestRequestsByTheirName(t *testing.T) {
	for name, want := range map[string]string{"call_llm": "chat", "LLM": "chat", "plan": "", "chat": "", "agent": ""} {
		s := ptrace.NewSpan()
		s.SetName(name)
		require.NoError(t, s.Attributes().FromRaw(map[string]any{"a.model": "m", "a.input_tokens": 3}))
		_, facts := vocabulary.Classify(pcommon.NewMap(), "acme", s)
		assert.Equal(t, want, facts.Text(mlattr.GenAIOperationName), name)
	}
}

func TestStatusIn(t *testing.T) {
	for text, want := range map[string]string{
		"Service returned 503.": "503", "timeout after 500 ms": "", "Requested 1,500 tokens": "", "max context is 512 tokens": "", "line 404, in run": "",
		"": "", "Error code: 500 - {}": "500", "429: slow": "429", "POST: 503 Service Unavailable": "503", "status=404, x": "404",
		"took 500ms": "", "error 5000": "", "v4.500 x": "", "error 200 then 502": "502", "a-400": "", "302": "", "4xx": "",
	} {
		assert.Equal(t, want, mlattr.StatusIn(text), text)
	}
}

// TestNameOfFailure has spans that failed before their instrumentation wrote an attribute.
func TestNameOfFailure(t *testing.T) {
	for _, tt := range []struct {
		name   string
		kind   ptrace.SpanKind
		status ptrace.StatusCode
		key    string
		want   string
	}{
		{"chat claude-1", ptrace.SpanKindClient, ptrace.StatusCodeError, "", "claude-1"},
		{"embeddings openai/emb-3", ptrace.SpanKindClient, ptrace.StatusCodeError, "", "openai/emb-3"},
		{"chat claude-1", ptrace.SpanKindInternal, ptrace.StatusCodeError, "", ""},
		{"chat claude-1", ptrace.SpanKindClient, ptrace.StatusCodeUnset, "", ""},
		{"chat claude-1", ptrace.SpanKindClient, ptrace.StatusCodeError, mlattr.ErrorType, "claude-1"},
		{"chat room", ptrace.SpanKindClient, ptrace.StatusCodeError, "room.id", ""},
		{"chat with a friend", ptrace.SpanKindClient, ptrace.StatusCodeError, "", ""},
		{"chat", ptrace.SpanKindClient, ptrace.StatusCodeError, "", ""},
		{"execute_tool weather", ptrace.SpanKindClient, ptrace.StatusCodeError, "", ""},
	} {
		s := ptrace.NewSpan()
		s.SetName(tt.name)
		s.SetKind(tt.kind)
		s.Status().SetCode(tt.status)
		s.Events().AppendEmpty().SetName(mlattr.ExceptionEvent)
		if tt.key != "" {
			s.Attributes().PutStr(tt.key, "7")
		}
		_, facts := vocabulary.Classify(pcommon.NewMap(), "acme", s)
		assert.Equal(t, tt.want, facts.Text(mlattr.GenAIRequestModel), tt)
		assert.Equal(t, tt.want != "", facts.Text(mlattr.GenAIOperationName) != "", tt)
	}
}

// TestCachesApart has instrumentations that pass on counts without the tokens of caches, where
// the counts alone do not show it.
func TestCachesApart(t *testing.T) {
	for scope, want := range map[string]int64{
		"openlit.instrumentation.anthropic": 10, "opentelemetry.instrumentation.bedrock": 10, "openlit.instrumentation.openai": 0,
	} {
		s := ptrace.NewSpan()
		require.NoError(t, s.Attributes().FromRaw(map[string]any{
			"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 5, "gen_ai.usage.output_tokens": 12,
			"gen_ai.usage.total_tokens": 17, "gen_ai.usage.cache_read.input_tokens": 3, "gen_ai.usage.cache_creation.input_tokens": 2,
		}))
		_, facts := vocabulary.Classify(pcommon.NewMap(), scope, s)
		whole, _ := facts.IntAt(vocabulary.SlotUsageInputTokens)
		assert.Equal(t, want, whole, scope)
	}
}

// TestModelsByTheirPaths has models that Google's APIs name by their paths: the last part is
// the model, whoever names it.
func TestModelsByTheirPaths(t *testing.T) {
	for text, want := range map[string]string{
		"projects/p/locations/l/publishers/google/models/gemini-3": "gemini-3",
		"publishers/google/models/gemini-3":                        "gemini-3",
		"models/gemini-3":                                          "gemini-3",
		"gemini-3":                                                 "gemini-3",
		"projects/p/locations/l/endpoints/7":                       "projects/p/locations/l/endpoints/7",
		"projects/models/":                                         "projects/models/",
		"accounts/fireworks/models/m":                              "accounts/fireworks/models/m",
		"/data/models/m":                                           "/data/models/m",
		"meta-llama/m":                                             "meta-llama/m",
	} {
		for key, canonical := range map[string]string{
			mlattr.GenAIRequestModel: mlattr.GenAIRequestModel, mlattr.GenAIResponseModel: mlattr.GenAIResponseModel,
			"a.model": mlattr.GenAIRequestModel, "llm.model_name": mlattr.GenAIResponseModel,
		} {
			s := ptrace.NewSpan()
			s.Attributes().PutStr(key, text)
			s.Attributes().PutStr(mlattr.GenAIOperationName, "chat")
			_, facts := vocabulary.Classify(pcommon.NewMap(), "acme", s)
			assert.Equal(t, want, facts.Text(canonical), "%s of %s", key, text)
		}
	}
}
