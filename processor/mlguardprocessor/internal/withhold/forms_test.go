package withhold_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/withhold"
)

// What a key's form is worth: texts that stay under it, and texts that do not.
func TestForms(t *testing.T) {
	f := withhold.New(&withhold.Config{})
	for key, texts := range map[string]struct{ stay, leave []string }{
		"service.instance.id": {
			stay:  []string{"snakepit@node-a", "app@10.0.0.7", "chat-7d9f", "d1f60109-38d4-417f-abd5-805e5502c598"},
			leave: []string{"alice@example.com", "@node", "app@", "a@b@c", "my laptop"},
		},
		"service.name":            {stay: []string{"Payment Service", "ünïcode", "chat"}, leave: []string{"alice@example.com", "call 5551234567", "a b c d e f g h i", "a\nb"}},
		"gen_ai.request.model":    {stay: []string{"Qwen/Qwen3-0.6B", "gpt-4o", "meta.llama3-70b-instruct-v1:0", `"gpt-4o"`}, leave: []string{"the best one", "a\tb", "a;b"}},
		"process.executable.path": {stay: []string{"/usr/bin/python3"}, leave: []string{"/home/alice/venv/bin/python", `C:\Users\alice\python.exe`}},
		"acme.request_id":         {stay: []string{"01ARZ3NDEKTSV4RRFFQ69G5FAV", "c34b92f96be17cb2d943ce200845327b", "17"}, leave: []string{"4111111111111111", "5551234567", "alice", "01ARZ3NDEKTSV4RRFFQ69G5FAI"}},
		"acme.note":               {stay: []string{"17", "-0.5", "1e-05", "true", ""}, leave: []string{"c34b92f96be17cb2d943ce200845327b", "5551234567", "1.2.3", "+", "."}},
		"acme.password":           {leave: []string{"17", "hunter2"}},
		"user.name":               {leave: []string{"ada", "17"}},
		"user.anything":           {leave: []string{"17", "d1f60109-38d4-417f-abd5-805e5502c598"}},
		"result":                  {leave: []string{"ok"}},
	} {
		for stays, list := range map[bool][]string{true: texts.stay, false: texts.leave} {
			for _, text := range list {
				td := ptrace.NewTraces()
				attributes := td.ResourceSpans().AppendEmpty().Resource().Attributes()
				attributes.PutStr(key, text)
				f.Traces(td)
				got, _ := attributes.Get(key)
				assert.Equal(t, stays, got.Str() == text, "%s: %q became %q", key, text, got.Str())
			}
		}
	}
}
