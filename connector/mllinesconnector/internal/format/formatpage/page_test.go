// Package formatpage writes the table of formats of docs/lines.md.
package formatpage

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector/internal/format"
	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
)

func TestPageIsGeneratedFromTheFormats(t *testing.T) {
	const path = "../../../../../docs/lines.md"
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	const begin, end = "<!-- formats: written by a test -->\n", "<!-- end of formats -->"
	head, rest, found := strings.Cut(string(page), begin)
	require.True(t, found, begin)
	_, tail, found := strings.Cut(rest, end)
	require.True(t, found, end)
	golden.File(t, path, head+begin+table(t)+end+tail)
}

func table(t *testing.T) string {
	t.Helper()
	formats, err := format.Shipped()
	require.NoError(t, err)
	var text strings.Builder
	text.WriteString("| trainer | tried | it prints | it does not print |\n|---|---|---|---|\n")
	for _, f := range formats {
		assert.NotEmpty(t, f.Examples, f.Name)
		var tried, read []string
		for _, e := range f.Examples {
			assert.NotEmpty(t, e.Of, f.Name)
			assert.NotEmpty(t, e.Command, f.Name)
			if e.Tried {
				tried = append(tried, e.Of)
			} else {
				read = append(read, e.Of)
			}
		}
		how := ""
		if len(tried) > 0 {
			how = "**run**: " + strings.Join(slices.Compact(tried), "; ")
		}
		if len(read) > 0 {
			how += strings.Repeat("; ", min(len(tried), 1)) + "read: " + strings.Join(slices.Compact(read), "; ")
		}
		assert.NotEmpty(t, f.Prints, f.Name)
		assert.NotEmpty(t, f.Lacks, f.Name)
		fmt.Fprintf(&text, "| [%s](%s), `%s` | %s | %s | %s |\n", f.Title, f.Page, f.Name, how, f.Prints, f.Lacks)
	}
	return text.String()
}
