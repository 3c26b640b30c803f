package artifact

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind/pythoncall"
)

func TestCheckScript(t *testing.T) {
	require.NoError(t, checkScript([]byte("x = r'''\n{}\n'''\n"), MaxBytes))
	for _, bad := range []string{"r'''{}", "r''''''{}'''", "r'''\r'''", "r'''\x7f'''", "r'''\xc3\xa4'''", "r'''\t'''"} {
		require.ErrorIs(t, checkScript([]byte(bad), MaxBytes), ErrUnsafe, "%q", bad)
	}
	require.ErrorIs(t, checkScript(bytes.Repeat([]byte("x"), MaxBytes+1), MaxBytes), ErrTooLarge)
}

func TestTemplatesHaveOneHole(t *testing.T) {
	used := map[string]bool{}
	for kind, own := range partsOf {
		assert.Equal(t, 1, bytes.Count(templates[kind], hole), kind)
		for _, name := range slices.Concat(partsBefore, own, partsAfter) {
			used[name] = true
		}
	}
	entries, err := parts.ReadDir("script")
	require.NoError(t, err)
	assert.Len(t, entries, len(used), "each part is in a script")
}

func TestLargeTraceIsCutNotLost(t *testing.T) {
	big := func() jsontree.Object { return jsontree.Of("a", strings.Repeat("\u2028", 30<<10)) }
	f := &failure.Failure{Kind: failure.Context, Span: failure.Span{TraceID: "1", Attributes: big()}, Ancestors: []failure.Span{{Attributes: big()}, {Attributes: big()}}, Complete: true}
	files, err := Build(f, Gates{}, MaxBytes)
	require.NoError(t, err)
	assert.Contains(t, string(files.Trace), `"truncated": true`)
	assert.Contains(t, string(files.Trace), `"complete": false`)
	assert.Contains(t, string(files.Trace), `"a":`, "the span's own values are kept as long as they fit")
	assert.LessOrEqual(t, files.Size(), int64(MaxBytes))
}

func TestFence(t *testing.T) {
	var b strings.Builder
	fence(&b, "Message", "a\n`````\nb\u202e")
	assert.Equal(t, "Message:\n\n``````text\na\n`````\nb\\u202e\n``````\n\n", b.String())
}

// FuzzBuild is the oracle of the embedding: whatever telemetry says, the
// script is the template around one JSON text, and that text is the data.
func FuzzBuild(f *testing.F) {
	f.Add(`{"python_module":"json","function":"loads","args":["''' \\"]}`, "ValueError", "a\r\n'''", "s\x00")
	f.Add(`{"python_module":"m","function":"f","kwargs":{"password":"x","@SPEC@":"'"}}`, "'''", "@SPEC@", "\xff")
	f.Add(`{"library":"m","function":"f","args":[NaN,{"a":5.0}]}`, "", "", "")
	f.Fuzz(func(t *testing.T, text, errorType, message, service string) {
		v := &failure.Failure{Kind: failure.Context, Service: service,
			Error:    failure.Error{Type: errorType, Message: message, Stack: message},
			Span:     failure.Span{Name: service, TraceID: "0", Attributes: jsontree.Of(message, errorType)},
			Resource: jsontree.Of(service, message),
		}
		if v.Call, v.Reason = pythoncall.Decode(text, pythoncall.Declared{Size: -1}, ""); v.Call != nil {
			v.Kind = failure.PythonCall
		}
		files, err := Build(v, Gates{AllowedModules: []string{"json"}}, MaxBytes)
		if err != nil {
			require.ErrorIs(t, err, ErrTooLarge, "the encoder leaves nothing for the check to find")
			return
		}
		for _, file := range [][]byte{files.Script, files.Trace, files.Report} {
			for _, b := range file {
				if b != '\n' && (b < 0x20 || b > 0x7E) {
					t.Fatalf("byte 0x%02x", b)
				}
			}
		}
		before, after, _ := bytes.Cut(templates[v.Kind], hole)
		require.True(t, bytes.HasPrefix(files.Script, before) && bytes.HasSuffix(files.Script, after))
		data := files.Script[len(before) : len(files.Script)-len(after)]
		require.NotContains(t, string(data), "'")
		require.True(t, json.Valid(data))
		require.True(t, json.Valid(files.Trace))
		if v.Call != nil && len(files.Redactions) == 0 {
			spec, _, err := jsontree.Decode(string(data))
			require.NoError(t, err)
			got, _ := spec.(jsontree.Object).Lookup("payload")
			require.Equal(t, any(v.Call.Tree), got)
		}
	})
}
