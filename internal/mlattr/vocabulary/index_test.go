package vocabulary

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

func TestKeyTableFindsEveryKeyAndNoOther(t *testing.T) {
	r := Default()
	keys := make(map[string]bool)
	for name := range kinds {
		keys[name] = !onlyRead(name)
	}
	for _, client := range Tables() {
		for _, aliases := range [][]table.Alias{client.Resource, client.Span, client.Point} {
			for _, alias := range aliases {
				keys[alias.Source] = true
			}
		}
	}
	for key, want := range keys {
		assert.Equal(t, want, r.keys.Find(key) != nil, key)
		for _, other := range []string{key + "x", key[1:], key[:len(key)-1], "x" + key[1:]} {
			if !keys[other] {
				assert.Nil(t, r.keys.Find(other), other)
			}
		}
	}
	assert.Nil(t, r.keys.Find(""))
}

func TestSlots(t *testing.T) {
	require.Less(t, len(kinds), maxSlots)
	for name := range kinds {
		assert.Equal(t, name, slotNames[SlotOf(name)])
	}
	assert.Zero(t, SlotOf("val.f1"))
}

// TestNameFilterPassesEveryRule shows that no name that a rule fits is lost.
func TestNameFilterPassesEveryRule(t *testing.T) {
	r := Default()
	for _, client := range Tables() {
		for _, rule := range client.Names {
			assert.NotEmpty(t, rule.Text, client.Name)
			name := map[table.Match]string{table.Exact: rule.Text, table.Prefix: rule.Text + "x", table.Suffix: "x" + rule.Text, table.Numbered: rule.Text + "7"}[rule.Match]
			if rule.Match == table.Exact {
				assert.NotNil(t, r.exact.Find(name), name)
			} else {
				assert.True(t, r.filter.passes(name), name)
			}
		}
	}
	for _, name := range []string{"", "GET /cart", "SELECT cart", "charge"} {
		assert.False(t, r.filter.passes(name), name)
		assert.Nil(t, r.exact.Find(name), name)
	}
}
