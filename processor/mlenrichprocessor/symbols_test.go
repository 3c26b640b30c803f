package mlenrichprocessor

import (
	"strings"
	"testing"
	"unsafe"

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

func TestWhatIsKeptIsACopy(t *testing.T) {
	large := strings.Repeat("a prompt ", 1<<16) + "id"
	id := large[len(large)-2:]
	var s symbols
	kept := s.keep(s.of(keySession, id))
	assert.Equal(t, id, kept)
	assert.NotSame(t, unsafe.StringData(id), unsafe.StringData(kept), "the prompt must not be kept with it")
	again := s.keep(s.of(keyRun, id))
	assert.Same(t, unsafe.StringData(kept), unsafe.StringData(again), "one copy is enough")
	assert.Empty(t, s.keep(0))
}
