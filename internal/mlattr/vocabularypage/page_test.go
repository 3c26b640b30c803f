// Package vocabularypage writes the documentation of the vocabulary: what the
// canonical names mean, from the comments of their constants, and what is understood of each
// client, from its tables.
package vocabularypage

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
)

func TestPageIsGeneratedFromTheTables(t *testing.T) {
	meanings, err := readMeanings("../generated_names.go", "../generated_shared_names.go")
	require.NoError(t, err)
	page, err := writePage(meanings)
	require.NoError(t, err)
	golden.File(t, "../../../docs/vocabulary.md", page)

	for _, client := range vocabulary.Tables() {
		assert.NotEmpty(t, client.Title, client.Name)
		assert.Contains(t, page, "\n### "+client.Title+"\n")
		for _, aliases := range [][]table.Alias{client.Resource, client.Span, client.Point} {
			for _, alias := range aliases {
				assert.Regexp(t, "(?m)^- `"+regexp.QuoteMeta(alias.Canonical)+"`: [^;\n]*`"+regexp.QuoteMeta(alias.Source)+"`", page)
			}
		}
		for _, metric := range client.Metrics {
			assert.Regexp(t, "(?m)^- `"+regexp.QuoteMeta(metric.Measure)+"` ← [^\n]*`"+regexp.QuoteMeta(metric.Source)+"`", page)
		}
	}
	for line := range strings.SplitSeq(page, "\n") {
		assert.NotContains(t, line, "||")
	}
}

// TestLabelsDiffer shows that no two canonical attributes are one label.
func TestLabelsDiffer(t *testing.T) {
	keys := make(map[string]string)
	for _, a := range vocabulary.Attributes() {
		assert.Regexp(t, `^[a-z][a-z0-9]*([._][a-z0-9]+)*\.?$`, a.Name)
		label := prometheusLabel(a.Name)
		assert.Empty(t, keys[label], a.Name)
		keys[label] = a.Name
	}
}

func TestMeaning(t *testing.T) {
	values := map[string]string{"RunID": "ml.run.id"}
	assert.Equal(t, "Identifies one run.", meaning("RunID", "RunID identifies\none run.\n", values))
	assert.Equal(t, "The step's number.", meaning("Step", "Step is the step's number.\n", values))
	assert.Equal(t, "True where `ml.run.id` is a guess.", meaning("RunInferred", "RunInferred is true where RunID is a guess.\n", values))
	values["SideClient"], values["SideServer"] = "client", "server"
	assert.Equal(t, "The side: `client`, `server`.", meaning("Side", "Side is the side: see the Side values.\n", values))
	assert.Empty(t, meaning("Step", "Steps of a run.\n", values))
	assert.Empty(t, meaning("Step", "", values))
}

func TestWhatIsMissingIsSaid(t *testing.T) {
	_, err := readMeanings("page_test.go")
	require.ErrorContains(t, err, "have no constants with comments")
	_, err = readMeanings("nothing.go")
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = writePage(map[string]string{})
	require.ErrorContains(t, err, "has no comment")
}
