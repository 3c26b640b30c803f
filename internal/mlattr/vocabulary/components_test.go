package vocabulary_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// A client is added in its table's file alone, so the components must ask the
// tables and not name a client. A comment may name one as an example.
func TestNoComponentNamesAClient(t *testing.T) {
	files := 0
	for _, folder := range []string{"connector", "exporter", "extension", "processor", "receiver"} {
		root := filepath.Join("..", "..", "..", folder)
		require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			files++
			for _, found := range clientsIn(t, path, nil) {
				t.Errorf("%s: put what this is about into the client's table", found)
			}
			return nil
		}))
	}
	assert.Greater(t, files, 100, "the components were not found")
}

func TestClientsInAFile(t *testing.T) {
	for name, tt := range map[string]struct {
		path, source string
		want         []string
	}{
		"nothing":                   {source: `package p; const suffix, torch, prefix = "a suffix", "torch.save", "/v1/fxrates"`},
		"small words":               {source: `package p; var prefixes, suffix, tgis, FXrates string`},
		"a comment":                 {source: "package p // Snakepit sends snakepit.pool\n"},
		"the conventions":           {source: `package p; const genAIModel = "gen_ai.request.model"`},
		"the file's name":           {path: "snakepit.go", source: "package p", want: []string{"snakepit.go: snakepit"}},
		"a constant of this module": {source: "package p; var _ = mlattr.TorchTel", want: []string{"p.go:1:27: torchtel"}},
		"part of an identifier":     {source: "package p; var attrSnakepitError, isFX, fxEpochs, wandbRunID int", want: []string{"p.go:1:16: snakepit", "p.go:1:35: fx", "p.go:1:41: fx"}},
		"mixed case":                {source: "package p; type e struct{ MLflowRunID string }", want: []string{"p.go:1:27: mlflow"}},
		"a word of a literal":       {source: `package p; const d = "Calls of TuFT's operations"`, want: []string{"p.go:1:22: tuft"}},
		"a variable's name":         {source: `package p; const v = "MLFLOW_RUN_ID"`, want: []string{"p.go:1:22: mlflow"}},
		"a raw literal":             {source: "package p; const v = `(?:torch|vllm) [0-9]`", want: []string{"p.go:1:22: vllm"}},
		"a key of its own":          {source: `package p; const k, l = "ai.model.id", "a llm.input_messages. b"`, want: []string{`p.go:1:25: ai.`, `p.go:1:40: llm.`}},
		"a span of its own":         {source: `package p; const s, c = "training_controller.run_forward", "CodeExecutor"`, want: []string{"p.go:1:25: training_controller.run_forward", "p.go:1:60: CodeExecutor"}},
	} {
		t.Run(name, func(t *testing.T) {
			path := tt.path
			if path == "" {
				path = "p.go"
			}
			assert.ElementsMatch(t, tt.want, clientsIn(t, path, tt.source))
		})
	}
}

// clientsIn returns the places where a file names a client, with the name.
func clientsIn(t *testing.T, path string, source any) (found []string) {
	t.Helper()
	if source == "" {
		source = nil
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, source, parser.SkipObjectResolution)
	require.NoError(t, err)
	if name := clientName(filepath.Base(path)); name != "" {
		found = append(found, path+": "+name)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		name := ""
		switch n := n.(type) {
		case *ast.Ident:
			name = clientName(n.Name)
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				text, err := strconv.Unquote(n.Value)
				require.NoError(t, err)
				if name = clientName(text); name == "" {
					name = clientText(text)
				}
			}
		}
		if name != "" {
			found = append(found, set.Position(n.Pos()).String()+": "+name)
		}
		return true
	})
	return found
}

// words are what gives a client away: its name and title, in small letters, the
// beginnings of its own keys, the names of spans that identify it, and the
// beginnings of names of spans that run a model's code. The semantic
// conventions are no client, and keys in their name space no client's own.
var words = func() (w struct{ names, prefixes, spans []string }) {
	for _, client := range vocabulary.Tables() {
		if client.System == 0 || client.Name == "genai" {
			continue
		}
		w.names = append(w.names, client.Name, strings.ToLower(client.Title))
		for _, prefix := range client.KeyPrefixes {
			if !strings.HasPrefix(prefix, "gen_ai.") {
				w.prefixes = append(w.prefixes, prefix)
			}
		}
		w.prefixes = append(w.prefixes, client.Calls.CodeSpans...)
		for _, rule := range client.Names {
			if rule.Identifies && rule.Match == table.Exact {
				w.spans = append(w.spans, rule.Text)
			}
		}
	}
	return w
}()

// clientName returns the name or title of a client that text has as a word, or
// "".
func clientName(text string) string {
	lower := strings.ToLower(text)
	for _, name := range words.names {
		for from := 0; ; {
			at := strings.Index(lower[from:], name)
			if at < 0 {
				break
			}
			at += from
			if beginsWord(text, at) && endsWord(text, at+len(name)) {
				return name
			}
			from = at + 1
		}
	}
	return ""
}

// beginsWord reports whether a word begins at a byte of text, which may be in
// mixed case.
func beginsWord(text string, at int) bool {
	return at == 0 || !isLetter(text[at-1]) || isUpper(text[at]) && !isUpper(text[at-1])
}

// endsWord reports whether a word ends before a byte of text.
func endsWord(text string, at int) bool {
	if at == len(text) || !isLetter(text[at]) {
		return true
	}
	return isUpper(text[at]) && (!isUpper(text[at-1]) || at+1 < len(text) && isLetter(text[at+1]) && !isUpper(text[at+1]))
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || isUpper(c) }

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }

// clientText returns the beginning of a client's own keys or the name of one of
// its spans, where a word of text is one; else "".
func clientText(text string) string {
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`"'(),;|`, r) }) {
		for _, prefix := range words.prefixes {
			if strings.HasPrefix(word, prefix) {
				return prefix
			}
		}
		if slices.Contains(words.spans, word) {
			return word
		}
	}
	return ""
}
