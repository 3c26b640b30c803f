package correlate

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestSymbols(t *testing.T) {
	var s symbols
	assert.Zero(t, s.of(keySession, ""))
	assert.Empty(t, s.text(0))
	a, b := s.of(keySession, "a"), s.of(keySession, "b")
	assert.NotEqual(t, a, b)
	assert.Equal(t, a, s.of(keySession, "a"))
	assert.Equal(t, a, s.of(keyRun, "a"), "a text is one symbol, whatever key it is of")
	assert.Equal(t, "b", s.text(b))

	s.reset()
	c := s.of(keySession, "c")
	assert.Equal(t, "c", s.text(c))
	assert.Equal(t, c, s.of(keySession, "c"))
}
