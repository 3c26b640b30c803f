package withhold_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/withhold"
)

// A key that is kept says what its text may look like, and no token of a secret
// leaves because it looks so.
func TestSecretsInKeptTextAreWithheld(t *testing.T) {
	token := "hf_" + strings.Repeat("aB3d", 9)
	filter := withhold.New(&withhold.Config{Keep: []string{"acme.*", "status.message"}})
	td := ptrace.NewTraces()
	span := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.Status().SetMessage("refused: api_key=" + token)
	attributes := span.Attributes()
	attributes.PutStr("gen_ai.request.model", token)
	attributes.PutStr("gen_ai.response.model", "llama-3")
	attributes.PutStr("acme.note", "use "+token+" here")
	attributes.PutStr("acme.db_password", "correct horse")
	attributes.PutEmptyMap("acme.config").PutEmptySlice("args").AppendEmpty().SetStr("--token=" + token)

	counts := filter.Traces(td)
	assert.EqualValues(t, 5, counts)
	assert.Equal(t, "refused: api_key=<REDACTED:huggingface_token>", span.Status().Message())
	assert.Equal(t, map[string]any{
		"gen_ai.request.model":  "[text: 39 bytes]",
		"gen_ai.response.model": "llama-3",
		"acme.note":             "use <REDACTED:huggingface_token> here",
		"acme.db_password":      "<REDACTED:key>",
		"acme.config":           map[string]any{"args": []any{"--token=<REDACTED:huggingface_token>"}},
	}, attributes.AsRaw())
	assert.Zero(t, filter.Traces(td), "a second pass changes nothing")
}
