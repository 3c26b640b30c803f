package vocabulary_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

var (
	constant = regexp.MustCompile(`(?m)^\s*(?:const )?(\w+)\s*= "([^"]+)"`)
	slotOf   = regexp.MustCompile(`SlotOf\(mlattr\.(\w+)\)`)
)

// TestSlotsThatCodeAsksForExist: an attribute that is missing in the table would have no
// slot, and no span would state it.
func TestSlotsThatCodeAsksForExist(t *testing.T) {
	names, asked := make(map[string]string), 0
	files, err := filepath.Glob(filepath.Join("..", "*.go"))
	require.NoError(t, err)
	for _, path := range files {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		for _, found := range constant.FindAllStringSubmatch(string(text), -1) {
			names[found[1]] = found[2]
		}
	}
	require.NoError(t, filepath.WalkDir(filepath.Join("..", "..", ".."), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, found := range slotOf.FindAllStringSubmatch(string(text), -1) {
			asked++
			assert.NotZero(t, vocabulary.SlotOf(names[found[1]]), "%s asks for the slot of %s", path, found[1])
		}
		return err
	}))
	assert.Greater(t, asked, 60, "the slots were not found")
}
