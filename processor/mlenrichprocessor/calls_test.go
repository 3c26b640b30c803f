package mlenrichprocessor

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/metadata"
)

// TestCallsByHTTP has services of which an HTTP client tells what they ask.
func TestCallsByHTTP(t *testing.T) {
	for name, tt := range map[string]struct {
		spans []map[string]any
		want  []any // ml.request.counted of each
	}{
		"alone":             {[]map[string]any{{"url.full": "http://a/v1/chat/completions?x=1"}}, []any{true}},
		"below the program": {[]map[string]any{{"kind": "internal"}, {"above": 0, "http.url": "https://api.openai.com/v1/responses"}}, []any{nil, true}},
		"within another":    {[]map[string]any{{"url.full": "http://a/v1/embeddings"}, {"above": 0, "url.path": "/v1/embeddings"}}, []any{true, nil}},
		"not known whose":   {[]map[string]any{{"above": 7, "url.full": "http://a/v1/chat/completions"}}, []any{nil}},
		"of a server":       {[]map[string]any{{"kind": "server", "url.path": "/v1/chat/completions"}}, []any{nil}},
		"another API":       {[]map[string]any{{"url.full": "https://a/v1/messages"}, {"url.full": "https://a/chat"}}, []any{nil, nil}},
		"described": {[]map[string]any{{"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}, {"above": 0, "url.full": "http://a/v1/chat/completions"},
			{"url.full": "http://a/v1/chat/completions"}}, []any{nil, nil, nil}},
		"another service": {[]map[string]any{{"url.full": "http://a/api/chat"}}, []any{nil}},
		"attempts": {[]map[string]any{{"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "retry_attempts": 1},
			{"above": 0, "url.full": "http://a/v1/chat/completions"}, {"above": 0, "url.full": "http://a/v1/chat/completions"}}, []any{nil, nil, nil}},
	} {
		t.Run(name, func(t *testing.T) {
			td := ptrace.NewTraces()
			rs := td.ResourceSpans().AppendEmpty()
			rs.Resource().Attributes().PutStr("service.name", "app")
			list := rs.ScopeSpans().AppendEmpty().Spans()
			for i, attrs := range tt.spans {
				span := list.AppendEmpty()
				span.SetTraceID([16]byte{1})
				span.SetSpanID([8]byte{byte(i + 1)})
				span.SetStartTimestamp(1e18)
				span.SetEndTimestamp(2e18)
				span.SetKind(ptrace.SpanKindClient)
				for key, value := range attrs {
					switch {
					case key == "above":
						span.SetParentSpanID([8]byte{byte(value.(int) + 1)})
					case value == "internal":
						span.SetKind(ptrace.SpanKindInternal)
					case value == "server":
						span.SetKind(ptrace.SpanKindServer)
					default:
						require.NoError(t, span.Attributes().PutEmpty(key).FromRaw(value))
					}
				}
			}
			sink := new(consumertest.TracesSink)
			factory := NewFactory()
			enrich, err := factory.CreateTraces(context.Background(), processortest.NewNopSettings(metadata.Type), factory.CreateDefaultConfig(), sink)
			require.NoError(t, err)
			require.NoError(t, enrich.Start(context.Background(), componenttest.NewNopHost()))
			require.NoError(t, enrich.ConsumeTraces(context.Background(), td))
			require.NoError(t, enrich.Shutdown(context.Background()))
			for i, want := range tt.want {
				span := sink.AllTraces()[0].ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(i)
				counted, ok := span.Attributes().Get(mlattr.RequestCounted)
				if want == nil {
					assert.False(t, ok, "span %d", i)
				} else {
					assert.True(t, ok && counted.Bool(), "span %d", i)
				}
			}
		})
	}
}

// TestSums has agents that sum up the usage of calls, which are seen or not.
func TestSums(t *testing.T) {
	agent := map[string]any{"gen_ai.operation.name": "invoke_agent", "gen_ai.usage.input_tokens": 9}
	chat := map[string]any{"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.usage.input_tokens": 9}
	for name, tt := range map[string]struct {
		spans []map[string]any
		want  []bool // whether the usage counts
	}{
		"alone":       {[]map[string]any{agent}, []bool{true}},
		"beside":      {[]map[string]any{agent, chat}, []bool{false, true}},
		"two of them": {[]map[string]any{agent, agent}, []bool{true, true}},
	} {
		td := ptrace.NewTraces()
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", "app")
		list := rs.ScopeSpans().AppendEmpty().Spans()
		for i, attrs := range tt.spans {
			span := list.AppendEmpty()
			span.SetTraceID([16]byte{byte(i + 1)})
			span.SetSpanID([8]byte{1})
			span.SetStartTimestamp(1e18)
			span.SetEndTimestamp(2e18)
			require.NoError(t, span.Attributes().FromRaw(attrs))
		}
		p := startDefault(t)
		spans := p.sendTraces(t, td).ResourceSpans().At(0).ScopeSpans().At(0).Spans()
		for i, want := range tt.want {
			counted, marked := spans.At(i).Attributes().Get(mlattr.UsageCounted)
			assert.Equal(t, want, !marked || counted.Bool(), "%s %d", name, i)
		}
	}
}
