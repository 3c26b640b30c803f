package smoke

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// Whatever ml.user is made of names a user, and production.yaml removes it: the
// table of what it removes, which is tested against it, has all of them.
func TestProductionRemovesWhatUsersAreReadFrom(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(harness.Path("docs", "vocabulary.md"))
	require.NoError(t, err)
	_, clients, _ := strings.Cut(string(page), "\n## Clients\n")
	names, seen := removed(t), 0
	for _, row := range aliasRow.FindAllStringSubmatch(clients, -1) {
		if row[2] == "ml.user" {
			seen++
			assert.True(t, isRemoved(names, row[1]), "%s names a user, and the table does not have it", row[1])
		}
	}
	assert.Greater(t, seen, 12)
}
