package genaichat

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

// TestRecordedConversations has requests to a model as clients that no table lists record
// them.
func TestRecordedConversations(t *testing.T) {
	const user = `{"model":"m","messages":[{"role":"user","content":"why"}]}`
	for name, tt := range map[string]struct {
		attrs, event map[string]any
		want         string
		reason       failure.Reason
	}{
		"a request":        {map[string]any{"acme.input": `{"messages":[{"role":"user","content":"why"}],"temperature":0.5,"headers":{"a":"b"}}`}, nil, `{"model":"m","temperature":0.5,"messages":[{"role":"user","content":"why"}]}`, ""},
		"messages":         {map[string]any{"acme.prompt": `[{"role":"user","content":"why"}]`}, nil, user, ""},
		"parts":            {map[string]any{"acme:input": `{"messages":[{"content":[{"text":"why"}],"role":"user"}]}`}, nil, user, ""},
		"contents":         {map[string]any{"acme.input": `{"contents":[{"parts":[{"text":"why"}],"role":"user"}]}`}, nil, user, ""},
		"contents as text": {map[string]any{"acme.input": `{"contents":"why","config":null}`}, nil, user, ""},
		"a system's words": {map[string]any{"acme.input": `{"system":"be short","messages":[{"role":"user","content":"why"}]}`}, nil, `{"model":"m","messages":[{"role":"system","content":"be short"},{"role":"user","content":"why"}]}`, ""},
		"one by one":       {map[string]any{"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "why"}, nil, user, ""},
		"one by one, by another client": {map[string]any{"acme.inputs.0.message.role": "user", "acme.inputs.0.message.content": "why",
			"acme.tools.0.tool.json_schema": `{"type":"function","function":{"name":"add"}}`, "acme.invocation_parameters": `{"top_p":1}`, "gen_ai.request.temperature": 0.5}, nil,
			`{"model":"m","temperature":0.5,"top_p":1,"tools":[{"type":"function","function":{"name":"add"}}],"messages":[{"role":"user","content":"why"}]}`, ""},
		"the model's name": {map[string]any{"gen_ai.request.model": nil, "acme.model_name": "n", "acme.prompt": `[{"role":"user","content":"why"}]`}, nil,
			`{"model":"n","messages":[{"role":"user","content":"why"}]}`, ""},
		"a request within a message": {map[string]any{"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": `{"messages":[{"role":"user","content":"no"}]}`}, nil,
			`{"model":"m","messages":[{"role":"user","content":"{\"messages\":[{\"role\":\"user\",\"content\":\"no\"}]}"}]}`, ""},
		"an answer one by one": {map[string]any{"acme.output.0.role": "assistant", "acme.output.0.content": "so"}, nil, "", ""},
		"a request before its messages": {map[string]any{"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "why", "acme.input": `{"messages":[{"role":"user","content":"why"}],"tools":[{"type":"function","function":{"name":"add"}}],"tool_choice":"auto"}`}, nil,
			`{"model":"m","tools":[{"type":"function","function":{"name":"add"}}],"tool_choice":"auto","messages":[{"role":"user","content":"why"}]}`, ""},
		"another client's tools": {map[string]any{"acme.input": `{"messages":[{"role":"user","content":"why"}],"tools":[{"name":"add"}],"tool_choice":"auto"}`}, nil, user, ""},
		"in an event":            {nil, map[string]any{"messages": `[{"role":"user","blocks":[{"block_type":"text","text":"why"}]}]`}, user, ""},
		"an answer":              {map[string]any{"acme.output": `{"messages":[{"role":"user","content":"why"}]}`}, nil, "", ""},
		"an image":               {map[string]any{"acme.input": `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:"}}]}]}`}, nil, "", failure.Unsupported},
		"a request's parameters": {map[string]any{"acme.prompt": `{"messages":[{"role":"user","content":"why"}],"top_p":1}`, "gen_ai.request.temperature": 0.5, "gen_ai.request.top_p": 0.9}, nil,
			`{"model":"m","temperature":0.5,"top_p":1,"messages":[{"role":"user","content":"why"}]}`, ""},
		"a system's parts": {map[string]any{"acme.input": `{"system":[{"text":"be short"}],"messages":[{"role":"user","content":"why"}]}`}, nil,
			`{"model":"m","messages":[{"role":"system","content":"be short"},{"role":"user","content":"why"}]}`, ""},
		"a system that is no text": {map[string]any{"acme.input": `{"system":7,"messages":[{"role":"user","content":"why"}]}`}, nil, "", failure.Invalid},
		"a tool called": {map[string]any{"gen_ai.prompt.0.role": "assistant", "gen_ai.prompt.0.tool_calls.0.id": "c", "gen_ai.prompt.0.tool_calls.0.name": "add",
			"gen_ai.prompt.1.role": "tool", "gen_ai.prompt.1.content": "2", "gen_ai.prompt.1.tool_call_id": "c"}, nil,
			`{"model":"m","messages":[{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"add","arguments":"{}"}}]},{"role":"tool","content":"2","tool_call_id":"c"}]}`, ""},
		"a message lost":            {map[string]any{"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "why", "gen_ai.prompt.2.role": "user"}, nil, "", failure.Truncated},
		"a message that is no text": {map[string]any{"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": []any{"why"}}, nil, "", failure.Invalid},
		"a response":                {map[string]any{"acme.response": `{"messages":[{"role":"user","content":"why"}]}`}, nil, "", ""},
		"a tool called in parts":    {map[string]any{"acme.input": `{"messages":[{"role":"user","content":[{"text":"why"},{"toolUse":{}}]}]}`}, nil, "", failure.Invalid},
		"no role":                   {map[string]any{"acme.input": `{"messages":[{"content":"why"}],"role":"x"}`}, nil, "", failure.Invalid},
		"a number":                  {map[string]any{"acme.input": `{"messages":[{"role":"user","content":7}]}`}, nil, "", failure.Invalid},
		"torn":                      {map[string]any{"acme.input": `{"messages":[{"role":"user","content":"wh`}, nil, "", failure.Invalid},
		"too large":                 {map[string]any{"acme.input": `[{"role":"user","content":"` + strings.Repeat("x", failure.MaxCallBytes) + `"}]`}, nil, "", failure.TooLarge},
		"of another purpose":        {map[string]any{"gen_ai.operation.name": "execute_tool", "acme.input": `[{"role":"user","content":"why"}]`}, nil, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			span := ptrace.NewSpan()
			span.Attributes().PutStr("gen_ai.operation.name", "chat")
			span.Attributes().PutStr("gen_ai.request.model", "m")
			for key, value := range tt.attrs {
				if require.NoError(t, span.Attributes().PutEmpty(key).FromRaw(value)); value == nil {
					span.Attributes().Remove(key)
				}
			}
			if tt.event != nil {
				require.NoError(t, span.Events().AppendEmpty().Attributes().FromRaw(tt.event))
			}
			recorded := tt.want != "" || tt.reason != ""
			assert.Equal(t, recorded, hasConversation(span))
			if !recorded {
				return
			}
			call, reason := chatCall(span)
			assert.Equal(t, tt.reason, reason)
			if tt.want != "" && assert.NotNil(t, call) {
				request, _ := call.Tree.Lookup("request")
				assert.Equal(t, tt.want, string(jsontree.Encode(request)))
			}
		})
	}
}
