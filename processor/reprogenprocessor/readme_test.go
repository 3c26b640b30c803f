package reprogenprocessor

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/metadata"
)

// TestReadmeExamples loads every YAML block as a collector would, and holds
// the block that shows the defaults against them.
func TestReadmeExamples(t *testing.T) {
	blocks := strings.Split(text(t, "README.md"), "```yaml\n")[1:]
	require.Len(t, blocks, 3)
	for i, block := range blocks {
		block, _, ok := strings.Cut(block, "```")
		require.True(t, ok)
		var raw map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(block), &raw))
		sub, err := confmap.NewFromStringMap(raw).Sub("processors")
		require.NoError(t, err)
		for name := range sub.ToStringMap() {
			var id component.ID
			require.NoError(t, id.UnmarshalText([]byte(name)))
			require.Equal(t, metadata.Type, id.Type())
			settings, err := sub.Sub(name)
			require.NoError(t, err)
			cfg := createDefaultConfig().(*Config)
			require.NoError(t, settings.Unmarshal(cfg))
			require.NoError(t, confmap.Validate(cfg))
			if i == 1 {
				for _, list := range []*[]string{&cfg.AllowedModules, &cfg.Evidence.FlightRecorder} {
					assert.Empty(t, *list)
					*list = nil
				}
				assert.Equal(t, createDefaultConfig(), cfg)
			}
		}
	}
}

// TestReadmeNamesEveryFlag: the table and the scripts of all kinds agree.
func TestReadmeNamesEveryFlag(t *testing.T) {
	readme := text(t, "README.md")
	parts, err := filepath.Glob(filepath.Join("internal", "*", "script", "*.py.tmpl"))
	require.NoError(t, err)
	own, err := filepath.Glob(filepath.Join("internal", "kind", "*", "script", "*.py.tmpl"))
	require.NoError(t, err)
	require.NotEmpty(t, own)
	parts = append(parts, own...)
	flags := 0
	for _, part := range parts {
		for line := range strings.SplitSeq(text(t, part), "\n") {
			if flag, ok := strings.CutPrefix(strings.TrimSpace(line), `add("--`); ok {
				name, _, _ := strings.Cut(flag, `"`)
				assert.Contains(t, readme, "\n- `--"+name)
				flags++
			}
		}
	}
	assert.Greater(t, flags, 20, "the flags are found")
}
