package reprogenprocessor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind/genaichat"
)

// strictServer is a server that refuses with status 400 what the chat
// completions API does not take, and answers anything else with status 500, as
// the model that the recordings asked. It keeps what it was last sent.
type strictServer struct {
	url     string
	mu      sync.Mutex
	body    []byte
	refused error
}

// last returns what was sent last, and why that is no request.
func (s *strictServer) last() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.body, s.refused
}

func newStrictServer(t *testing.T) *strictServer {
	s := &strictServer{refused: errors.New("nothing was sent")}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		refused := checkChatRequest(body)
		s.mu.Lock()
		s.body, s.refused = body, refused
		s.mu.Unlock()
		if refused != nil {
			http.Error(w, `{"error":{"message":"invalid request"}}`, http.StatusBadRequest)
			return
		}
		http.Error(w, `{"error": {"message": "the model is broken", "type": "server_error"}}`, http.StatusInternalServerError)
	}))
	t.Cleanup(server.Close)
	s.url = server.URL + "/v1"
	return s
}

// chatRequest is the schema of a request; members that it does not name are
// refused.
type chatRequest struct {
	Model               *string          `json:"model"`
	Messages            []map[string]any `json:"messages"`
	Tools               []chatTool       `json:"tools"`
	ToolChoice          any              `json:"tool_choice"`
	Temperature         *float64         `json:"temperature"`
	TopP                *float64         `json:"top_p"`
	MaxTokens           *int             `json:"max_tokens"`
	MaxCompletionTokens *int             `json:"max_completion_tokens"`
	N                   *int             `json:"n"`
	Seed                *int             `json:"seed"`
	Stop                any              `json:"stop"`
	PresencePenalty     *float64         `json:"presence_penalty"`
	FrequencyPenalty    *float64         `json:"frequency_penalty"`
	ResponseFormat      map[string]any   `json:"response_format"`
	Logprobs            *bool            `json:"logprobs"`
	TopLogprobs         *int             `json:"top_logprobs"`
	ReasoningEffort     *string          `json:"reasoning_effort"`
}

type chatTool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string         `json:"name"`
		Description string         `json:"description"`
		Parameters  map[string]any `json:"parameters"`
		Strict      *bool          `json:"strict"`
	} `json:"function"`
}

func checkChatRequest(body []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	var r chatRequest
	if err := decoder.Decode(&r); err != nil {
		return err
	}
	if r.Model == nil || *r.Model == "" || len(r.Messages) == 0 {
		return errors.New("model and messages are required")
	}
	for i, m := range r.Messages {
		if err := checkChatMessage(m); err != nil {
			return fmt.Errorf("messages[%d]: %w", i, err)
		}
	}
	for i, tool := range r.Tools {
		if tool.Type != "function" || tool.Function.Name == "" {
			return fmt.Errorf("tools[%d] is no function", i)
		}
	}
	return nil
}

func checkChatMessage(m map[string]any) error {
	members := map[string][]string{
		"system": {"role", "content", "name"}, "developer": {"role", "content", "name"}, "user": {"role", "content", "name"},
		"assistant": {"role", "content", "name", "tool_calls", "refusal"}, "tool": {"role", "content", "tool_call_id"},
	}
	role, _ := m["role"].(string)
	for k := range m {
		if !slices.Contains(members[role], k) {
			return fmt.Errorf("a message of %q has no member %q", role, k)
		}
	}
	if _, ok := m["tool_call_id"].(string); role == "tool" && !ok {
		return errors.New("no tool_call_id")
	}
	calls, hasCalls := m["tool_calls"]
	list, ok := calls.([]any)
	if hasCalls && (!ok || len(list) == 0) {
		return errors.New("tool_calls is no list, or an empty one")
	}
	for _, c := range list {
		call, _ := c.(map[string]any)
		function, _ := call["function"].(map[string]any)
		_, hasID := call["id"].(string)
		_, hasName := function["name"].(string)
		_, hasArguments := function["arguments"].(string)
		if call["type"] != "function" || !hasID || !hasName || !hasArguments || len(call) != 3 || len(function) != 2 {
			return fmt.Errorf("a call of a tool is malformed: %v", call)
		}
	}
	switch content := m["content"].(type) {
	case string:
		return nil
	case []any:
		for _, p := range content {
			part, _ := p.(map[string]any)
			if _, ok := part["text"].(string); !ok || part["type"] != "text" || len(part) != 2 {
				return fmt.Errorf("a part is malformed: %v", part)
			}
		}
		if len(content) > 0 {
			return nil
		}
	case nil:
		if role == "assistant" && hasCalls {
			return nil
		}
	}
	return fmt.Errorf("the content of a message of %q is neither a text nor a list of parts", role)
}

// replayed runs the script of the one artifact that a recording gives.
func replayed(t *testing.T, s *strictServer, td ptrace.Traces) (string, result) {
	cfg := testConfig(t)
	cfg.SiblingWait = 0
	produce(t, cfg, td)
	for _, folder := range artifacts(t, cfg) {
		spec := text(t, folder, "repro.py")
		if !bytes.Contains([]byte(spec), []byte(`"kind": "genai_chat"`)) {
			continue
		}
		return folder, pythons(t)[0].run(t, folder, nil, "--allow-side-effects", "--base-url", s.url, "--model", "tiny")
	}
	t.Fatal("there is no conversation among the artifacts")
	return "", result{}
}

// TestRecordedClientsAreReplayed: what frameworks recorded of a model call that
// failed is a request that the API takes, and what the client had sent.
func TestRecordedClientsAreReplayed(t *testing.T) {
	for name, want := range map[string]string{
		"langchain": `{"model":"tiny","messages":[{"role":"system","content":"be brief"},{"role":"user","content":"why?"},
			{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{\"n\": 1}"}}]},
			{"role":"tool","content":"42","tool_call_id":"c1"},
			{"role":"user","content":[{"type":"text","text":"and"},{"type":"text","text":"now?"}]}],
			"temperature":0.5,"max_completion_tokens":7,"tools":[{"type":"function","function":{"name":"look","description":"Look something up.",
			"parameters":{"properties":{"n":{"type":"integer"}},"required":["n"],"type":"object"}}}]}`,
		"llamaindex": `{"model":"tiny","messages":[{"role":"system","content":"be brief"},{"role":"user","content":"why?"}]}`,
		"smolagents": `{"model":"tiny","messages":[{"role":"system","content":[{"type":"text","text":"be brief"}]},
			{"role":"user","content":[{"type":"text","text":"why?"}]},
			{"role":"assistant","content":[{"type":"text","text":"Calling tools: look"}]},
			{"role":"user","content":[{"type":"text","text":"Observation: 42"}]}]}`,
		"haystack": `{"model":"tiny","messages":[{"role":"system","content":"be brief"},{"role":"user","content":"why?"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces([]byte(text(t, "testdata", "clients", name+".json")))
			require.NoError(t, err)
			s := newStrictServer(t)
			_, r := replayed(t, s, td)
			body, refused := s.last()
			require.NoError(t, refused, "%s", body)
			assert.JSONEq(t, want, string(body))
			assert.Equal(t, 1, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
		})
	}
}

// TestRecordedRequestsAreValid: so are those of the recordings of openai's
// client, by each of the instrumentations.
func TestRecordedRequestsAreValid(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t)
	for line := range bytes.Lines([]byte(text(t, "testdata", "recordings", "llm", "traces.json"))) {
		td, err := (&ptrace.JSONUnmarshaler{}).UnmarshalTraces(line)
		require.NoError(t, err)
		produce(t, cfg, td)
	}
	all := artifacts(t, cfg)
	require.NotEmpty(t, all)
	for _, folder := range all {
		s := newStrictServer(t)
		pythons(t)[0].run(t, folder, nil, "--allow-side-effects", "--base-url", s.url)
		body, refused := s.last()
		assert.NoError(t, refused, "%s: %s", filepath.Base(folder), body)
	}
}

// TestWhatIsNoRequest: what would be refused by any server is a context, with
// the reason.
func TestWhatIsNoRequest(t *testing.T) {
	inference := func(input string, more ...string) map[string]any {
		attrs := map[string]any{"openinference.span.kind": "LLM", "input.mime_type": "application/json", "input.value": input}
		for i := 0; i < len(more); i += 2 {
			attrs[more[i]] = more[i+1]
		}
		return attrs
	}
	messages := func(list string) map[string]any { return map[string]any{"gen_ai.input.messages": list} }
	const first = "llm.input_messages.0.message."
	for name, tc := range map[string]struct {
		attrs   map[string]any
		dropped uint32
		reason  string
	}{
		"texts of Python":           {attrs: inference(`{"messages": ["ChatMessage(role='user')"]}`), reason: "no_payload"},
		"lists of lists":            {attrs: inference(`{"messages": [[{"lc": 1, "kwargs": {"content": "x"}}]]}`), reason: "no_payload"},
		"objects of something else": {attrs: inference(`{"messages": [{"lc": 1, "kwargs": {"content": "x"}}]}`), reason: "no_payload"},
		"no role":                   {attrs: inference(`{"messages": [{"content": "x"}]}`), reason: "no_payload"},
		"no content":                {attrs: inference(`{"messages": [{"role": "user"}]}`), reason: "payload_invalid"},
		"an unknown role":           {attrs: messages(`[{"role":"ghost","parts":[{"type":"text","content":"x"}]}]`), reason: "payload_invalid"},
		"an answer to nothing":      {attrs: messages(`[{"role":"tool","content":"42"}]`), reason: "payload_invalid"},
		"a call without a name":     {attrs: messages(`[{"role":"assistant","parts":[{"type":"tool_call","id":"c"}]}]`), reason: "payload_invalid"},
		"a number as content":       {attrs: messages(`[{"role":"user","content":7}]`), reason: "payload_invalid"},
		"an image":                  {attrs: messages(`[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:"}}]}]`), reason: "payload_unsupported"},
		"a message that is missing": {attrs: inference(`{"messages": ["x"]}`, first+"role", "user", first+"content", "x",
			"llm.input_messages.2.message.role", "user", "llm.input_messages.2.message.content", "y"), reason: "payload_truncated"},
		"attributes that were dropped": {attrs: inference("{}", first+"role", "user", first+"content", "x"), dropped: 1, reason: "payload_truncated"},
		"an image, listed":             {attrs: inference("{}", first+"role", "user", first+"contents.0.message_content.type", "image"), reason: "payload_unsupported"},
		"too long":                     {attrs: inference("{}", first+"role", "user", first+"content", longText(300<<10)), reason: "payload_too_large"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := testConfig(t)
			td := failedCall{errorType: "E", attrs: tc.attrs}.traces()
			spans(td)[0].SetDroppedAttributesCount(tc.dropped)
			produce(t, cfg, td)
			script := text(t, onlyArtifact(t, cfg), "repro.py")
			assert.Contains(t, script, `"kind": "context"`)
			assert.Contains(t, script, `"reason": "`+tc.reason+`"`)
		})
	}
}

// TestListedMessagesAreBounded: names with large numbers or many of them cost
// no memory.
func TestListedMessagesAreBounded(t *testing.T) {
	name := "llm.input_messages.0.message" + strings.Repeat(".0.x", 10_000)
	attrs := map[string]any{"openinference.span.kind": "LLM", name: "x", "llm.input_messages.0.message.role": "user",
		"llm.input_messages.2147483647.message.role": "user", "llm.input_messages.99999999999999999999.message.role": "user"}
	cfg := testConfig(t)
	produce(t, cfg, failedCall{errorType: "E", attrs: attrs}.traces())
	assert.Contains(t, text(t, onlyArtifact(t, cfg), "repro.py"), `"reason": "payload_truncated"`)
}

// FuzzChatRequest: whatever was recorded, what is sent is a request.
func FuzzChatRequest(f *testing.F) {
	for _, messages := range []string{
		`[{"role":"user","content":"x","cache_control":{}}]`, `[{"role":"assistant","content":null,"tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]}]`,
		`[{"role":"tool","tool_call_id":"c","content":[{"type":"text","text":"x","y":1}]}]`, `[[{"lc":1}]]`, `["ChatMessage()"]`, `[{"role":"user","tool_calls":[]}]`,
	} {
		f.Add(messages, `[{"type":"function","function":{"name":"f","parameters":{"type":"object"},"x":1}}]`)
	}
	f.Fuzz(func(t *testing.T, messages, tools string) {
		if !json.Valid([]byte(messages)) || !json.Valid([]byte(tools)) {
			return
		}
		// A list that begins with an object looks like a request.
		rest, isList := strings.CutPrefix(strings.TrimSpace(messages), "[")
		if !isList {
			return
		}
		if strings.TrimSpace(rest) != "]" {
			rest = "," + rest
		}
		td := failedCall{attrs: map[string]any{"openinference.span.kind": "LLM", "input.mime_type": "application/json",
			"input.value": `{"model":"m","messages":[{"role":"user","content":"x"}` + rest + `,"tools":` + tools + `}`}}.traces()
		require.True(t, genaichat.New().Recognise(spans(td)[0]))
		call, reason := genaichat.New().Read(spans(td)[0])
		require.NotEqual(t, call == nil, reason == "")
		if call == nil {
			return
		}
		request, _ := call.Tree.Lookup("request")
		body := jsontree.Encode(request)
		require.NoError(t, checkChatRequest(body), "%s", body)
	})
}

// FuzzListedMessages: whatever the names of attributes are, a call is made of
// them or a reason given.
func FuzzListedMessages(f *testing.F) {
	f.Add("1.message.role", "user", "0.message.tool_calls.0.tool_call.id", "c")
	f.Add("0.message.contents.1.message_content.type", "image", "99999999999.message.role", "")
	f.Fuzz(func(t *testing.T, key, value, key2, value2 string) {
		td := failedCall{attrs: map[string]any{"openinference.span.kind": "LLM", "llm.model_name": "m",
			"llm.input_messages.0.message.role": "user", "llm.input_messages." + key: value, "llm.tools." + key2: value2}}.traces()
		require.True(t, genaichat.New().Recognise(spans(td)[0]))
		if call, _ := genaichat.New().Read(spans(td)[0]); call != nil {
			request, _ := call.Tree.Lookup("request")
			require.NoError(t, checkChatRequest(jsontree.Encode(request)))
		}
	})
}
