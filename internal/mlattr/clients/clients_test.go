package clients_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/clients"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// TestEveryFileIsListed: a table whose client is not in the list would be read by nobody.
func TestEveryFileIsListed(t *testing.T) {
	files, err := filepath.Glob("*.yaml")
	require.NoError(t, err)
	var names []string
	for _, client := range vocabulary.Tables() {
		names = append(names, client.Name+".yaml")
		text, err := os.ReadFile(client.Name + ".yaml")
		require.NoError(t, err, "the file has the name of its table")
		assert.True(t, strings.HasPrefix(string(text), "# "), "%s says what its table is of", client.Name)
	}
	assert.ElementsMatch(t, files, names)
}

// TestTablesNameWhatExists: what a table refers to by name is there.
func TestTablesNameWhatExists(t *testing.T) {
	var canonical []string
	for _, a := range vocabulary.Attributes() {
		canonical = append(canonical, a.Name)
	}
	for _, client := range vocabulary.Tables() {
		aliases := slices.Concat(client.Resource, client.Span, client.Point)
		for _, m := range client.SpanMaps {
			aliases = append(aliases, m.Fields...)
		}
		for _, alias := range aliases {
			assert.NotEmpty(t, alias.Source, client.Name)
			assert.Contains(t, canonical, alias.Canonical, "%s: %s", client.Name, alias.Source)
			if alias.Reads != "" {
				assert.Contains(t, clients.Reads, alias.Reads, "%s: %s", client.Name, alias.Source)
			}
		}
		for _, prefix := range client.SpanPrefixes {
			assert.Contains(t, canonical, prefix.Canonical, client.Name)
		}
		for _, name := range client.Names {
			assert.NotEmpty(t, name.Text, client.Name)
			assert.True(t, name.Number == "" || slices.Contains(canonical, name.Number), "%s: %s", client.Name, name.Text)
			assert.Equal(t, name.Match == table.Numbered, name.Number != "", "%s: %s", client.Name, name.Text)
		}
		for _, metric := range client.Metrics {
			assert.Contains(t, table.MeasureByName, metric.Measure, metric.Source)
			assert.NotEmpty(t, metric.Instrument.String(), metric.Source)
		}
	}
}

func TestWordsOfTables(t *testing.T) {
	var kind table.Kind
	require.NoError(t, kind.UnmarshalText([]byte("job_id")))
	assert.Equal(t, table.KindJobID, kind)
	for _, word := range []string{"", "jobid", "text "} {
		require.ErrorContains(t, kind.UnmarshalText([]byte(word)), `is none of ["" "text" "texts" "id" "job_id"`)
	}
	var instrument table.Instrument
	require.Error(t, instrument.UnmarshalText([]byte("timer")))
	var trait table.Trait
	require.NoError(t, trait.UnmarshalText([]byte("caches_apart")))
	assert.Equal(t, table.CachesApart, trait)
}
