package reprogenprocessor

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// modelFailed is a model's call as OpenLIT sends it when it fails: with the
// exception, and without the messages.
func modelFailed(errorType, message string) failedCall {
	return failedCall{name: "chat tiny", errorType: errorType, message: message, span: 1,
		attrs: map[string]any{"gen_ai.operation.name": "chat", "gen_ai.request.model": "tiny"}}
}

// requestBelow is the span of the HTTP client below it.
func requestBelow(status int64) failedCall {
	return failedCall{name: "POST", span: 2, parent: 1, attrs: map[string]any{
		"http.method": "POST", "http.url": "http://192.0.2.1:8000/v1/chat/completions", "http.status_code": status}}
}

// TestModelCallAboveItsRequest: of a model's call that failed and the HTTP
// request below it the call has the artifact, whichever comes first, and also
// where nothing of the conversation was recorded.
func TestModelCallAboveItsRequest(t *testing.T) {
	call, request := modelFailed("openai.InternalServerError", "Error code: 500 - broken"), requestBelow(500)
	retried := requestBelow(500)
	retried.span = 3
	all := ptrace.NewTraces()
	for _, c := range []failedCall{request, retried, call} {
		c.appendTo(all)
	}
	for name, batches := range map[string][]ptrace.Traces{
		"together":          {all},
		"the request first": {request.traces(), retried.traces(), call.traces()},
		"the call first":    {call.traces(), request.traces(), retried.traces()},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig(t)
			cfg.SiblingWait = time.Minute
			produce(t, cfg, batches...)
			trace := readTrace(t, onlyArtifact(t, cfg))
			assert.Equal(t, "chat tiny", trace.Span.Name)
		})
	}
	t.Run("a request whose group has its artifact", func(t *testing.T) {
		before := requestBelow(500)
		before.trace, before.parent = 77, 0
		cfg := testConfig(t)
		cfg.SiblingWait = time.Minute
		produce(t, cfg, before.traces(), call.traces(), request.traces())
		var names []string
		for _, folder := range artifacts(t, cfg) {
			names = append(names, readTrace(t, folder).Span.Name)
		}
		assert.ElementsMatch(t, []string{"POST", "chat tiny"}, names)
	})
	t.Run("what failed below is no request", func(t *testing.T) {
		below := mean()
		below.span, below.parent = 2, 1
		cfg := testConfig(t)
		cfg.SiblingWait = time.Minute
		produce(t, cfg, below.traces(), call.traces())
		assert.Contains(t, text(t, onlyArtifact(t, cfg), "repro.py"), `"kind": "python_call"`)
	})
	t.Run("an agent above is no model's call", func(t *testing.T) {
		agent := call
		agent.attrs = map[string]any{"gen_ai.operation.name": "invoke_agent"}
		td := agent.traces()
		request.appendTo(td)
		cfg := testConfig(t)
		produce(t, cfg, td)
		assert.Equal(t, "POST", readTrace(t, onlyArtifact(t, cfg)).Span.Name)
	})
	t.Run("of two calls the one with the conversation", func(t *testing.T) {
		above := asked(nil)
		above.span, above.errorType, above.message = 9, "InternalServerError", call.message
		below := call
		below.parent = 9
		td := above.traces()
		for _, c := range []failedCall{below, request} {
			c.appendTo(td)
		}
		cfg := testConfig(t)
		produce(t, cfg, td)
		assert.Contains(t, text(t, onlyArtifact(t, cfg), "repro.py"), `"kind": "genai_chat"`)
	})
}

// TestStatusIsOfTheGroup: failures with different statuses are different, and
// numbers that are none do not matter.
func TestStatusIsOfTheGroup(t *testing.T) {
	group := func(c failedCall) string {
		cfg := testConfig(t)
		produce(t, cfg, c.traces())
		return filepath.Base(filepath.Dir(onlyArtifact(t, cfg)))
	}
	api := func(message string) failedCall { return modelFailed("APIStatusError", message) }
	for name, tc := range map[string]struct {
		a, b failedCall
		same bool
	}{
		"requests":                    {requestBelow(500), requestBelow(429), false},
		"equal requests":              {requestBelow(500), requestBelow(500), true},
		"openai":                      {api("Error code: 500 - no"), api("Error code: 429 - no"), false},
		"openai, other numbers":       {api("Error code: 500 - job 17"), api("Error code: 500 - job 18"), true},
		"requests' message":           {api("429 Client Error: no"), api("503 Client Error: no"), false},
		"httpx' message":              {api("Client error '429 x' for url 'http://h/'"), api("Client error '404 x' for url 'http://h/'"), false},
		"a program's numbers":         {failedCall{errorType: "E", message: "500 rows"}, failedCall{errorType: "E", message: "429 rows"}, true},
		"a request that got answered": {failing(requestBelow(200), "E", "x"), failing(requestBelow(204), "E", "x"), true},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, tc.same, group(tc.a) == group(tc.b))
		})
	}
}

// TestRecordedOpenLIT: as OpenLIT with an instrumented client of HTTP sends it.
func TestRecordedOpenLIT(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range []string{"openlit-500", "openlit-429"} {
		td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces([]byte(text(t, "testdata", "clients", name+".json")))
		require.NoError(t, err)
		var of []pcommon.Map
		for _, s := range spans(td) {
			of = append(of, s.Attributes())
		}
		require.Greater(t, len(of), 1, "the request is there, too")
		cfg := testConfig(t)
		produce(t, cfg, td)
		folder := onlyArtifact(t, cfg)
		assert.Equal(t, "chat tiny", readTrace(t, folder).Span.Name)
		seen[filepath.Base(filepath.Dir(folder))] = true
	}
	assert.Len(t, seen, 2)
}
