package mlenrichprocessor

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPiecesAreAsSlices(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var p pieces
	stretches, slices := make([]stretch, 100), make([][]byte, 100)
	for range 20_000 {
		i := random.IntN(len(stretches))
		if random.IntN(8) == 0 {
			p.drop(&stretches[i])
			slices[i] = nil
		} else {
			more := bytes.Repeat([]byte{byte(random.IntN(256))}, random.IntN(3*pieceBytes))
			p.add(&stretches[i], more)
			slices[i] = append(slices[i], more...)
		}
		require.True(t, bytes.Equal(slices[i], p.read(nil, stretches[i])))
	}
	for i := range stretches {
		require.True(t, bytes.Equal(slices[i], p.read(nil, stretches[i])), "nothing else has written there")
	}

	had := len(p.pages)
	for i := range stretches {
		p.drop(&stretches[i])
	}
	for i := range had*pagePieces - 1 {
		p.add(&stretches[i%100], make([]byte, pieceBytes))
	}
	assert.Len(t, p.pages, had, "all that was given back is used again")
}
