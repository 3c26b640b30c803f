package spans

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestAtoms(t *testing.T) {
	assert.True(t, isAtom("segfault"))
	assert.True(t, isAtom("high_crash_rate"))
	for _, text := range []string{"", "{:exit_status,137}", "Elixir.X", "137"} {
		assert.False(t, isAtom(text), text)
	}
}
