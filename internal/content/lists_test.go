package content

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestOwnNamesAreKept: no name that this project knows looks like a secret, and every
// key has a form.
func TestOwnNamesAreKept(t *testing.T) {
	all := slices.Collect(maps.Keys(linesOf(listedWords)))
	for line := range strings.Lines(listedKeys) {
		key, form, _ := strings.Cut(strings.TrimSpace(line), " ")
		assert.Contains(t, formNames, form, key)
		all = append(all, key)
	}
	for _, name := range all {
		_, rules := Redact(name)
		assert.Empty(t, rules, name)
	}
}
