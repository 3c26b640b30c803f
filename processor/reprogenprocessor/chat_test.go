package reprogenprocessor

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

// asked is the span of a call to a model that failed.
func asked(more map[string]any) failedCall {
	attrs := map[string]any{
		"gen_ai.operation.name":      "chat",
		"gen_ai.request.model":       "tiny",
		"gen_ai.request.temperature": 0.5,
		"gen_ai.request.seed":        int64(7),
		"gen_ai.openai.api_base":     "http://192.0.2.1:1/v1/",
		"gen_ai.system_instructions": `[{"type":"text","content":"be brief"}]`,
		"gen_ai.input.messages": `[{"role":"user","parts":[{"type":"text","content":"why?"}]},` +
			`{"role":"assistant","parts":[{"type":"tool_call","id":"c1","name":"look","arguments":{"n":1}}]},` +
			`{"role":"tool","parts":[{"type":"tool_call_response","id":"c1","response":"42"}]}]`,
		"gen_ai.tool.definitions": `[{"type":"function","name":"look","parameters":{"type":"object"}}]`,
	}
	maps.Copy(attrs, more)
	return failedCall{name: "chat tiny", attrs: attrs, errorType: "openai.InternalServerError", message: "Error code: 500 - the model is broken"}
}

// modelServer is a server of the OpenAI API that answers as its path says.
func modelServer(t *testing.T) (url string, seen *atomic.Pointer[http.Request], body *atomic.Pointer[string]) {
	seen, body = &atomic.Pointer[http.Request]{}, &atomic.Pointer[string]{}
	done := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent, _ := io.ReadAll(r.Body)
		text := string(sent)
		body.Store(&text)
		seen.Store(r)
		switch strings.Split(r.URL.Path, "/")[1] {
		case "broken":
			http.Error(w, `{"error":{"message":"the model is broken"}}`, http.StatusInternalServerError)
		case "other":
			http.Error(w, `{"error":{"message":"all workers have been sent home for the night"}}`, http.StatusInternalServerError)
		case "limited":
			http.Error(w, "slow down", http.StatusTooManyRequests)
		case "moved":
			http.Redirect(w, r, "/broken/chat/completions", http.StatusTemporaryRedirect)
		case "echo":
			http.Error(w, "the model is broken, "+r.Header.Get("Authorization")+" \x1b[31m", http.StatusInternalServerError)
		case "silent":
			select {
			case <-r.Context().Done():
			case <-done:
			}
		default:
			_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"because"}}]}`)
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(done) })
	return server.URL, seen, body
}

func TestConversations(t *testing.T) {
	url, _, _ := modelServer(t)
	const effects = "--allow-side-effects"
	for name, tc := range map[string]struct {
		failedCall
		args   []string
		env    []string
		exit   int
		reason string
		shown  string
	}{
		"no address":               {failedCall: asked(nil), args: []string{effects}, exit: 4, reason: "192.0.2.1:1"},
		"not without the flag":     {failedCall: asked(nil), args: []string{"--base-url", url + "/broken"}, exit: 4, reason: "--allow-side-effects"},
		"what would be sent":       {failedCall: asked(nil), args: []string{"--dry-run"}, exit: 4, shown: "  user: why?"},
		"reproduced":               {failedCall: asked(nil), args: []string{effects, "--base-url", url + "/broken"}, exit: 1, reason: "openai.InternalServerError", shown: "| "},
		"by the variable":          {failedCall: asked(nil), args: []string{effects}, env: []string{"OPENAI_BASE_URL=" + url + "/broken"}, exit: 1},
		"answered":                 {failedCall: asked(nil), args: []string{effects, "--base-url", url + "/ok/"}, exit: 0, shown: "because"},
		"another message":          {failedCall: asked(nil), args: []string{effects, "--base-url", url + "/other"}, exit: 3},
		"another message, by type": {failedCall: asked(nil), args: []string{effects, "--base-url", url + "/other", "--match", "type"}, exit: 1},
		"another status":           {failedCall: asked(nil), args: []string{effects, "--base-url", url + "/limited"}, exit: 3, reason: "RateLimitError"},
		"a redirect is no answer":  {failedCall: asked(nil), args: []string{effects, "--base-url", url + "/moved"}, exit: 5, reason: "status 307"},
		"a secret in the address": {failedCall: asked(map[string]any{"gen_ai.openai.api_base": "http://me:hunter2hunter2@192.0.2.1:1/v1"}),
			args: []string{effects, "--base-url", url + "/broken"}, exit: 1},
		"a key that is none":    {failedCall: asked(nil), args: []string{effects, "--base-url", url + "/broken"}, env: []string{"OPENAI_API_KEY=key\nof-mine"}, exit: 5, reason: "OPENAI_API_KEY has characters"},
		"nobody listens":        {failedCall: asked(nil), args: []string{effects, "--base-url", "http://127.0.0.1:1/v1"}, exit: 3, reason: "APIConnectionError"},
		"no answer in time":     {failedCall: asked(nil), args: []string{effects, "--base-url", url + "/silent", "--timeout", "3"}, exit: 3, reason: "APITimeoutError"},
		"file":                  {failedCall: asked(nil), args: []string{effects, "--base-url", "file:///etc/passwd"}, exit: 4, reason: "http://"},
		"a user in the address": {failedCall: asked(nil), args: []string{effects, "--base-url", "http://a:b@127.0.0.1/"}, exit: 4},
		"a metadata service":    {failedCall: asked(nil), args: []string{effects, "--base-url", "http://169.254.169.254/v1"}, exit: 4, reason: "169.254.169.254"},
		"in IPv6's clothes":     {failedCall: asked(nil), args: []string{effects, "--base-url", "http://[::ffff:169.254.169.254]/v1"}, exit: 4, reason: "169.254.169.254"},
		"as one number":         {failedCall: asked(nil), args: []string{effects, "--base-url", "http://2852039166/v1"}, exit: 4, reason: "169.254.169.254"},
		"an image": {failedCall: asked(map[string]any{"gen_ai.input.messages": `[{"role":"user","parts":[{"type":"blob","content":"AA=="}]}]`}),
			args: []string{effects}, exit: 5, reason: "payload_unsupported"},
		"no JSON":     {failedCall: asked(map[string]any{"gen_ai.input.messages": "why?"}), exit: 5, reason: "payload_invalid"},
		"no messages": {failedCall: asked(map[string]any{"gen_ai.input.messages": "[]"}), exit: 5, reason: "payload_invalid"},
		"a secret": {failedCall: asked(map[string]any{"gen_ai.input.messages": `[{"role":"user","parts":[{"type":"text","content":"password=hunter2"}]}]`}),
			args: []string{effects, "--base-url", url + "/broken"}, exit: 5, reason: "payload.request.messages[1].content"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig(t)
			produce(t, cfg, tc.traces())
			artifact := onlyArtifact(t, cfg)
			for _, py := range pythons(t) {
				r := py.run(t, artifact, tc.env, tc.args...)
				assert.Equal(t, tc.exit, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
				assert.Contains(t, r.Reason, tc.reason)
				assert.Contains(t, r.Stderr, tc.shown)
			}
		})
	}
	t.Run("a timeout", func(t *testing.T) {
		f := asked(nil)
		f.errorType, f.message = "openai.APITimeoutError", "Request timed out."
		cfg := testConfig(t)
		produce(t, cfg, f.traces())
		r := pythons(t)[0].run(t, onlyArtifact(t, cfg), nil, effects, "--base-url", url+"/silent", "--timeout", "3")
		assert.Equal(t, 1, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
	})
}

// TestConversationAsSent compares what arrives at a server with what the
// application had sent, from two instrumentations of one client.
func TestConversationAsSent(t *testing.T) {
	t.Parallel()
	url, seen, body := modelServer(t)
	const whole = `{"model":"tiny","messages":[{"role":"user","content":"why?"}],"max_tokens":5,"extra_headers":{"x":"y"}}`
	for name, tc := range map[string]struct {
		failedCall
		want string
	}{
		"semantic conventions": {asked(nil), `{"model":"tiny","temperature":0.5,"seed":7,"messages":[{"role":"system","content":"be brief"},` +
			`{"role":"user","content":"why?"},` +
			`{"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{\"n\":1}"}}]},` +
			`{"role":"tool","tool_call_id":"c1","content":"42"}],` +
			`"tools":[{"type":"function","function":{"name":"look","parameters":{"type":"object"}}}]}`},
		"structured": {asked(map[string]any{"gen_ai.tool.definitions": "", "gen_ai.system_instructions": "", "gen_ai.input.messages": []any{
			map[string]any{"role": "user", "parts": []any{map[string]any{"type": "text", "content": "why?"}}}}}),
			`{"model":"tiny","temperature":0.5,"seed":7,"messages":[{"role":"user","content":"why?"}]}`},
		"OpenInference": {failedCall{name: "ChatCompletion", attrs: map[string]any{"openinference.span.kind": "LLM", "input.mime_type": "application/json",
			"input.value": whole}, errorType: "openai.InternalServerError"}, `{"model":"tiny","messages":[{"role":"user","content":"why?"}],"max_tokens":5}`},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig(t)
			produce(t, cfg, tc.traces())
			r := pythons(t)[0].run(t, onlyArtifact(t, cfg), []string{"OPENAI_API_KEY=k-1", "MY_KEY=k-2"}, "--allow-side-effects", "--base-url", url+"/broken")
			require.Equal(t, 1, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
			assert.JSONEq(t, tc.want, *body.Load())
			assert.Equal(t, "Bearer k-1", seen.Load().Header.Get("Authorization"))
			assert.Equal(t, "/broken/chat/completions", seen.Load().URL.Path)
			pythons(t)[0].run(t, onlyArtifact(t, cfg), []string{"OPENAI_API_KEY=k-1", "MY_KEY=k-2"}, "--allow-side-effects", "--base-url", url+"/broken",
				"--api-key-env", "MY_KEY", "--model", "larger", "--seed", "9")
			assert.Equal(t, "Bearer k-2", seen.Load().Header.Get("Authorization"))
			var sent map[string]any
			require.NoError(t, json.Unmarshal([]byte(*body.Load()), &sent))
			assert.Equal(t, "larger", sent["model"])
			assert.InDelta(t, 9, sent["seed"], 0)
		})
	}
	t.Run("the key is not shown", func(t *testing.T) {
		cfg := testConfig(t)
		produce(t, cfg, asked(nil).traces())
		r := pythons(t)[0].run(t, onlyArtifact(t, cfg), []string{"OPENAI_API_KEY=key-of-mine"}, "--allow-side-effects", "--base-url", url+"/echo")
		assert.Contains(t, r.Stderr, "<REDACTED:key>")
		assert.NotContains(t, r.Stdout+r.Stderr, "key-of-mine")
		assert.NotContains(t, r.Stdout+r.Stderr, "\x1b")
	})
}

// TestHostileConversations: a message is data in the script, on the screen and
// in the request.
func TestHostileConversations(t *testing.T) {
	code := newSyntax(t, "genai_chat", `["payload", "request", "messages"]`)
	for name, s := range hostile {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, _, body := modelServer(t)
			messages := string(jsontree.Encode(jsontree.Array{jsontree.Of("role", "user", "content", s)}))
			artifact := script(t, asked(map[string]any{
				"gen_ai.openai.api_base": s, "gen_ai.request.model": s,
				"gen_ai.tool.definitions": "", "gen_ai.system_instructions": "", "gen_ai.input.messages": messages,
			}))
			code.add(checkOf(t, artifact, messages))
			r := pythons(t)[0].run(t, artifact, nil)
			require.Equal(t, 4, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
			for _, b := range []byte(r.Stdout + r.Stderr) {
				require.True(t, b == '\n' || b >= 0x20 && b <= 0x7E, "the terminal gets byte 0x%02x", b)
			}
			r = pythons(t)[0].run(t, artifact, nil, "--allow-side-effects", "--base-url", url+"/broken")
			require.Equal(t, 1, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
			var sent struct{ Messages []struct{ Content string } }
			require.NoError(t, json.Unmarshal([]byte(*body.Load()), &sent))
			if utf8.ValidString(s) {
				assert.Equal(t, s, sent.Messages[0].Content)
			}
		})
	}
}

// TestConversationAboveItsRequest: with an instrumented client of HTTP the
// request below a conversation fails as well, under another name. The
// conversation is what can be replayed, whichever comes first.
func TestConversationAboveItsRequest(t *testing.T) {
	chat := asked(nil)
	chat.span = 1
	request := requested("POST", map[string]any{"url.full": "https://models.example/v1/chat/completions"})
	request.span, request.parent = 2, 1
	both := chat.traces()
	request.traces().ResourceSpans().MoveAndAppendTo(both.ResourceSpans())
	for name, batches := range map[string][]ptrace.Traces{
		"together":               {both},
		"the request first":      {request.traces(), chat.traces()},
		"the conversation first": {chat.traces(), request.traces()},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig(t)
			cfg.SiblingWait = time.Minute // all that came is told of at shutdown
			produce(t, cfg, batches...)
			assert.Contains(t, text(t, onlyArtifact(t, cfg), "repro.py"), `"kind": "genai_chat"`)
		})
	}

	t.Run("a tool below it is a failure of its own", func(t *testing.T) {
		tool := mean()
		tool.span, tool.parent = 2, 1
		together := chat.traces()
		tool.traces().ResourceSpans().MoveAndAppendTo(together.ResourceSpans())
		cfg := testConfig(t)
		produce(t, cfg, together)
		assert.Contains(t, text(t, onlyArtifact(t, cfg), "repro.py"), `"kind": "python_call"`)
	})
}
