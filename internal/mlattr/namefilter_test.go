package mlattr

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestNameFilterPassesEveryRule shows that no name that a rule fits is lost.
func TestNameFilterPassesEveryRule(t *testing.T) {
	r := Default()
	for _, client := range Tables() {
		for _, rule := range client.Names {
			assert.NotEmpty(t, rule.Text, client.Name)
			name := map[Match]string{Exact: rule.Text, Prefix: rule.Text + "x", Suffix: "x" + rule.Text, Numbered: rule.Text + "7"}[rule.Match]
			assert.True(t, r.filter.passes(name), name)
		}
	}
	for _, name := range []string{"", "GET /cart", "SELECT cart", "charge"} {
		assert.False(t, r.filter.passes(name), name)
	}
}
