package vocabulary

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// TestNameFilterPassesEveryRule shows that no name that a rule fits is lost.
func TestNameFilterPassesEveryRule(t *testing.T) {
	r := Default()
	for _, client := range Tables() {
		for _, rule := range client.Names {
			assert.NotEmpty(t, rule.Text, client.Name)
			name := map[table.Match]string{table.Exact: rule.Text, table.Prefix: rule.Text + "x", table.Suffix: "x" + rule.Text, table.Numbered: rule.Text + "7"}[rule.Match]
			assert.True(t, r.filter.passes(name), name)
		}
	}
	for _, name := range []string{"", "GET /cart", "SELECT cart", "charge"} {
		assert.False(t, r.filter.passes(name), name)
	}
}
