package artifact

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind/genaichat"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind/pythoncall"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind/pythoncode"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind/trainstep"
)

func TestCheckScript(t *testing.T) {
	require.NoError(t, checkScript([]byte("x = r'''\n{}\n'''\n"), MaxBytes))
	for _, bad := range []string{"r'''{}", "r''''''{}'''", "r'''\r'''", "r'''\x7f'''", "r'''\xc3\xa4'''", "r'''\t'''"} {
		require.ErrorIs(t, checkScript([]byte(bad), MaxBytes), errUnsafe, "%q", bad)
	}
	require.ErrorIs(t, checkScript(bytes.Repeat([]byte("x"), MaxBytes+1), MaxBytes), ErrTooLarge)
}

var kinds = kind.Registry{pythoncall.New(), pythoncode.New(), genaichat.New(), trainstep.New()}

func newBuilder(modules ...string) *Builder {
	return New(kinds, modules)
}

// all has what each conditional part is for.
var all = jsontree.Of(
	"payload_ref", jsontree.Of("uri", "x:/"), "payload", jsontree.Of("function", "a.b"), "redacted", jsontree.Array{jsontree.Of("path", "payload.args")},
	"expect", jsontree.Of("trigger", "nan"), "env", jsontree.Of("repro.env.X", "1"))

func TestTemplatesHaveOneHole(t *testing.T) {
	used := map[string]bool{}
	b := newBuilder()
	for _, k := range kinds {
		for _, spec := range []jsontree.Object{nil, all} {
			assert.Equal(t, 1, bytes.Count(b.templateOf(k, spec), hole), k.Name)
			for _, name := range partsOf(k, spec) {
				used[name] = true
				assert.Contains(t, b.parts, name)
			}
		}
	}
	assert.Len(t, b.parts, len(used), "each part is in a script")
	parts := 0
	for _, folder := range append([]fs.FS{files}, foldersOf(kinds)...) {
		names, err := fs.Glob(folder, "script/*")
		require.NoError(t, err)
		parts += len(names)
	}
	assert.Len(t, b.parts, parts, "no two have one name")
}

// TestShortenedPartsAreTheSameCode asks Python itself: what a script leaves out
// of its parts is no code.
func TestShortenedPartsAreTheSameCode(t *testing.T) {
	const program = `
import ast, json, sys
def code(text):
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)) and ast.get_docstring(node):
            node.body.pop(0)
    return ast.dump(tree)
for name, (long, short) in json.load(sys.stdin).items():
    assert code(long) == code(short), name
    assert len(short) < len(long) or name == "start", name
    assert not [line for line in short.split("\n") if len(line) > 140], name
    print(name)
`
	texts := map[string][2]string{}
	b := newBuilder()
	for name, short := range b.parts {
		for _, folder := range append([]fs.FS{files}, foldersOf(kinds)...) {
			if long, err := fs.ReadFile(folder, "script/"+name+".py.tmpl"); err == nil {
				texts[name] = [2]string{string(long), string(short)}
			}
		}
	}
	in, err := json.Marshal(texts)
	require.NoError(t, err)
	cmd := exec.Command("python3", "-c", program)
	cmd.Stdin = bytes.NewReader(in)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Len(t, strings.Fields(string(out)), len(b.parts))
}

func foldersOf(kinds kind.Registry) (folders []fs.FS) {
	for _, k := range kinds {
		if k.Files != nil {
			folders = append(folders, k.Files)
		}
	}
	return folders
}

func TestLargeTraceIsCutNotLost(t *testing.T) {
	big := func() jsontree.Object { return jsontree.Of("a", strings.Repeat("\u2028", 30<<10)) }
	f := &failure.Failure{Replay: failure.Replay{Kind: failure.Context}, Span: failure.Span{TraceID: "1", Attributes: big()}, Trace: failure.Trace{Ancestors: []failure.Span{{Attributes: big()}, {Attributes: big()}}, Complete: true}}
	files, err := newBuilder().Build(f)
	require.NoError(t, err)
	assert.Contains(t, string(files.Trace), `"truncated": true`)
	assert.Contains(t, string(files.Trace), `"complete": false`)
	assert.Contains(t, string(files.Trace), `"a":`, "the span's own values are kept as long as they fit")
	assert.LessOrEqual(t, len(files.Script)+len(files.Trace)+len(files.Report), MaxBytes)
}

func TestFence(t *testing.T) {
	assert.Equal(t, "Message:\n\n``````text\na\n`````\nb\\u202e\n``````\n\n", fence("Message", "a\n`````\nb\u202e"))
}

// FuzzBuild is the oracle of the embedding: whatever telemetry says, the
// script is the template around one JSON text, and that text is the data.
func FuzzBuild(f *testing.F) {
	f.Add(`{"python_module":"json","function":"loads","args":["''' \\"]}`, "ValueError", "a\r\n'''", "s\x00")
	f.Add(`{"python_module":"m","function":"f","kwargs":{"password":"x","@SPEC@":"'"}}`, "'''", "@SPEC@", "\xff")
	f.Add(`{"library":"m","function":"f","args":[NaN,{"a":5.0}]}`, "", "", "")
	b := newBuilder("json")
	f.Fuzz(func(t *testing.T, text, errorType, message, service string) {
		v := &failure.Failure{Replay: failure.Replay{Kind: failure.Context}, Service: service,
			Error:    failure.Error{Type: errorType, Message: message, Stack: message},
			Span:     failure.Span{Name: service, TraceID: "0", Attributes: jsontree.Of(message, errorType)},
			Resource: jsontree.Of(service, message),
		}
		if v.Call, v.Reason = pythoncall.Decode(text, pythoncall.Declared{Size: -1}, ""); v.Call != nil {
			v.Kind = failure.PythonCall
		}
		files, err := b.Build(v)
		if err != nil {
			require.ErrorIs(t, err, ErrTooLarge, "the encoder leaves nothing for the check to find")
			return
		}
		for _, file := range [][]byte{files.Script, files.Trace, files.Report} {
			for _, one := range file {
				if one != '\n' && (one < 0x20 || one > 0x7E) {
					t.Fatalf("byte 0x%02x", one)
				}
			}
		}
		before, rest, _ := bytes.Cut(files.Script, []byte("r'''\n"))
		literal, after, _ := bytes.Cut(rest, []byte("'''\n"))
		require.NotContains(t, string(literal), "''", "no way out of the literal")
		head, _, found := bytes.Cut(literal, []byte("\n{"))
		require.True(t, found)
		for line := range bytes.Lines(head) {
			require.LessOrEqual(t, len(line), maxHeadColumns+1)
			require.False(t, bytes.HasPrefix(line, []byte("{")), "the data begin with the first such line")
		}
		require.LessOrEqual(t, bytes.Count(head, []byte("\n")), 34, "the head is within 40 lines")
		data := literal[len(head)+1:]
		require.True(t, json.Valid(data))
		spec, _, err := jsontree.Decode(string(data))
		require.NoError(t, err)
		want := bytes.Replace(b.templateOf(kinds.Get(v.Kind), spec.(jsontree.Object)), hole, nil, 1)
		require.Equal(t, string(want), string(before)+"r'''\n\n'''\n"+string(after), "nothing but the literal depends on the data")
		require.True(t, json.Valid(files.Trace))
		if v.Call != nil && len(files.Redactions) == 0 {
			got, _ := spec.(jsontree.Object).Lookup("payload")
			require.Equal(t, any(v.Call.Tree), got)
		}
	})
}
