package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestViewWithoutATerminalSeparatesBlocks(t *testing.T) {
	var out bytes.Buffer
	v := newView(&out)
	p := pageOf(snapshot{}, firstScrape)
	require.NoError(t, v.draw(p))
	require.NoError(t, v.draw(p))
	assert.NotContains(t, out.String(), "\x1b")
	blocks := strings.Split(out.String(), strings.Repeat("-", 80)+"\n")
	require.Len(t, blocks, 2)
	assert.Equal(t, blocks[0], blocks[1])
}

func TestFrameOnATerminal(t *testing.T) {
	assert.Equal(t, "\x1b[2J\x1b[Ha\x1b[K\nb\x1b[K\n\x1b[J", frame([]string{"a", "b"}, true))
	assert.Equal(t, "\x1b[Ha\x1b[K\n\x1b[J", frame([]string{"a"}, false))
}

func TestClampSize(t *testing.T) {
	assert.Equal(t, size{width: 80}, clampSize(0, -1))
	assert.Equal(t, size{width: 400, height: 50}, clampSize(100_000, 50))
}
