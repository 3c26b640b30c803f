package withhold_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/content"
	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/withhold"
)

// formless are examples of the conventions that no form has: two have what looks
// like an address or a query, one is a list in one text, and one is broken into
// lines by the comment.
var formless = map[string]bool{
	"myhost@8742@s8083jm": true,
	"/users?id={id}":      true,
	"rw, ro":              true,
	"/subscriptions/<SUBSCRIPTION_GUID>/resourceGroups/<RG> /providers/Microsoft.Web/sites/<FUNCAPP>/functions/<FUNC>": true,
}

var (
	examples = regexp.MustCompile(`(?s)Examples: (.*?)(\n[A-Z]|$)`)
	example  = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
)

// The examples that the conventions give for the keys of the list have the forms
// that the list gives them.
func TestExamplesOfTheConventionsAreKept(t *testing.T) {
	listed := content.NewKeys(nil, nil).Exact
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "go.opentelemetry.io/otel").Output()
	require.NoError(t, err)
	file, err := parser.ParseFile(token.NewFileSet(),
		filepath.Join(strings.TrimSpace(string(out)), "semconv", "v1.41.0", "attribute_group.go"), nil, parser.ParseComments)
	require.NoError(t, err)
	f, seen := withhold.New(&withhold.Config{}), 0
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || spec.Doc == nil || len(spec.Values) != 1 {
			return true
		}
		call, ok := spec.Values[0].(*ast.CallExpr)
		if !ok {
			return true
		}
		key, err := strconv.Unquote(call.Args[0].(*ast.BasicLit).Value)
		require.NoError(t, err)
		form, kept := listed[key]
		given := examples.FindStringSubmatch(spec.Doc.Text())
		if !kept || form == content.Removed || given == nil {
			return true
		}
		for _, quoted := range example.FindAllString(strings.ReplaceAll(given[1], "\n", " "), -1) {
			said, err := strconv.Unquote(quoted)
			if err != nil {
				continue
			}
			td := ptrace.NewTraces()
			td.ResourceSpans().AppendEmpty().Resource().Attributes().PutStr(key, said)
			seen++
			assert.Equal(t, formless[said], f.Traces(td) > 0, "%s (%d): %q", key, form, said)
		}
		return true
	})
	assert.Greater(t, seen, 400)
}
