package label

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSameLabel(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"error.type", "error_type", true},
		{"error.type", "error.type", true},
		{"error..type", "error_type", true},
		{"error-.type", "error.-type", true},
		{"grüße", "gr_e", true},
		{"grün", "gr_e", false},
		{"error.type", "error.types", false},
		{"error.type", "error.Type", false},
		{"error.type.", "error.type", false},
		{".error", "error", false},
		{"", "", true},
		{"", "a", false},
		{".", "", false},
	} {
		assert.Equal(t, c.same, same(c.a, c.b), "%q, %q", c.a, c.b)
		assert.Equal(t, c.same, same(c.b, c.a), "%q, %q", c.b, c.a)
		assert.True(t, !c.same || mayBeSame(c.a, c.b) && mayBeSame(c.b, c.a), "%q, %q", c.a, c.b)
	}
}
