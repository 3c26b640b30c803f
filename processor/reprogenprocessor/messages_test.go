package reprogenprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
)

// event is a log record of a client about a request.
type event struct {
	name, attribute string
	body            any
	attrs           map[string]any
	span            byte
}

func (e event) logs(t *testing.T) plog.Logs {
	ld := plog.NewLogs()
	record := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	record.SetTraceID(pcommon.TraceID{15: 1})
	record.SetSpanID(pcommon.SpanID{7: e.span})
	record.SetEventName(e.name)
	require.NoError(t, record.Attributes().FromRaw(e.attrs))
	if e.attribute != "" {
		record.Attributes().PutStr("event.name", e.attribute)
	}
	require.NoError(t, record.Body().FromRaw(e.body))
	return ld
}

// TestMessagesInLogRecords has clients that write what they ask as log records, which come
// before the span that failed or after it.
func TestMessagesInLogRecords(t *testing.T) {
	said := func(role, text string) event {
		return event{name: "gen_ai." + role + ".message", body: map[string]any{"content": text}, span: 1}
	}
	const user = `"messages": [{"role": "user", "content": "why?"}]`
	for name, tt := range map[string]struct {
		events []event
		kind   string
		want   string
	}{
		"a message":       {[]event{said("user", "why?")}, "genai_chat", user},
		"by an attribute": {[]event{{attribute: "gen_ai.user.message", body: map[string]any{"content": "why?"}, span: 1}}, "genai_chat", user},
		"parts":           {[]event{{name: "gen_ai.user.message", body: map[string]any{"content": []any{map[string]any{"text": "why?"}}}, span: 1}}, "genai_chat", user},
		"several":         {[]event{said("system", "be brief"), said("user", "why?")}, "genai_chat", `"content": "be brief"`},
		"a tool": {[]event{
			said("user", "why?"),
			{name: "gen_ai.assistant.message", span: 1, body: map[string]any{"tool_calls": []any{map[string]any{"id": "c1", "type": "function", "function": map[string]any{"name": "look", "arguments": "{}"}}}}},
			{name: "gen_ai.tool.message", body: map[string]any{"id": "c1", "content": "42"}, span: 1},
		}, "genai_chat", `"tool_call_id": "c1"`},
		"all in attributes": {[]event{{name: "gen_ai.client.inference.operation.details", span: 1, attrs: map[string]any{
			"gen_ai.input.messages": []any{map[string]any{"role": "user", "parts": []any{map[string]any{"type": "text", "content": "why?"}}}},
		}}}, "genai_chat", user},
		"an answer":       {[]event{{name: "gen_ai.choice", body: map[string]any{"message": map[string]any{"role": "user", "content": "why?"}}, span: 1}}, "context", ""},
		"of another span": {[]event{{name: "gen_ai.user.message", body: map[string]any{"content": "why?"}, span: 2}}, "context", ""},
		"no message":      {[]event{said("user", "why?"), {name: "gen_ai.user.message", body: "why?", span: 1}}, "context", ""},
		"no content":      {[]event{said("system", "be brief"), {name: "gen_ai.user.message", body: map[string]any{}, span: 1}}, "context", ""},
		"none":            {nil, "context", ""},
	} {
		t.Run(name, func(t *testing.T) {
			failed := asked(map[string]any{"gen_ai.input.messages": "", "gen_ai.system_instructions": "", "gen_ai.tool.definitions": ""})
			for order, first := range map[string]bool{"before": true, "after": false} {
				w := newWorld(t, waitingConfig(t))
				send := func() {
					for range 2 { // a client may send again what was not confirmed
						for _, e := range tt.events {
							require.NoError(t, w.logs.ConsumeLogs(t.Context(), e.logs(t)))
						}
					}
				}
				if first {
					send()
				}
				w.span(failed)
				if !first {
					send()
				}
				w.pass(10 * time.Second)
				script := text(t, onlyArtifact(t, w.cfg), "repro.py")
				assert.Equal(t, tt.kind, groups(t, w.cfg)[0].Kind, order)
				assert.Contains(t, script, tt.want, order)
				if tt.kind == "genai_chat" {
					assert.Contains(t, script, `"model": "tiny", "temperature": 0.5, "seed": 7`, order)
				}
			}
		})
	}
}

// TestMessagesAreContent shows that messages in log records are kept only where content is.
func TestMessagesAreContent(t *testing.T) {
	cfg := waitingConfig(t)
	cfg.CaptureContent = false
	w := newWorld(t, cfg)
	require.NoError(t, w.logs.ConsumeLogs(t.Context(), event{name: "gen_ai.user.message", body: map[string]any{"content": "why?"}, span: 1}.logs(t)))
	w.span(asked(map[string]any{"gen_ai.input.messages": ""}))
	w.pass(10 * time.Second)
	assert.Equal(t, "context", groups(t, w.cfg)[0].Kind)
	script := text(t, onlyArtifact(t, w.cfg), "repro.py")
	assert.NotContains(t, script, "why?")
	assert.Contains(t, script, `"reason": "no_payload"`, "there was nothing to withhold")
}
