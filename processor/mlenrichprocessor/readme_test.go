package mlenrichprocessor

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// TestReadmeBlocksLoad loads every configuration that the README shows.
func TestReadmeBlocksLoad(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(text, -1)
	require.NotEmpty(t, blocks)
	for _, block := range blocks {
		retrieved, err := confmap.NewRetrievedFromYAML(block[1])
		require.NoError(t, err)
		conf, err := retrieved.AsConf()
		require.NoError(t, err)
		processors, err := conf.Sub("processors")
		require.NoError(t, err)
		require.True(t, processors.IsSet("ml_enrich"), "%s", block[1])
		section, err := processors.Sub("ml_enrich")
		require.NoError(t, err)
		cfg := createDefaultConfig().(*Config)
		require.NoError(t, section.Unmarshal(cfg), "%s", block[1])
		require.NoError(t, confmap.Validate(cfg), "%s", block[1])
	}
}

// TestReadmeNamesEveryVocabulary keeps the list of clients complete.
func TestReadmeNamesEveryVocabulary(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for _, name := range vocabulary.SystemNames() {
		assert.Contains(t, string(text), name)
	}
}

// TestReadmeQueryIsTheTestedOne keeps the PromQL of the README that which the
// file for promtool tests.
func TestReadmeQueryIsTheTestedOne(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	query := regexp.MustCompile("(?s)```promql\n(.*?)```").FindSubmatch(readme)
	require.NotNil(t, query)
	tested, err := os.ReadFile(filepath.Join("testdata", "run_info_test.yaml"))
	require.NoError(t, err)
	assert.Equal(t, strings.Fields(string(query[1])),
		strings.Fields(string(regexp.MustCompile(`(?s)expr: \|(.*?)eval_time`).FindSubmatch(tested)[1])))
}
