package cache

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestArenaDoesWhatSlicesDo(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var a Arena
	strings, slices := make([]Bytes, 100), make([][]byte, 100)
	for range 20_000 {
		i := random.IntN(len(strings))
		if random.IntN(8) == 0 {
			a.Free(&strings[i])
			slices[i] = nil
		} else {
			more := bytes.Repeat([]byte{byte(random.IntN(256))}, random.IntN(3*blockBytes))
			a.Append(&strings[i], more)
			slices[i] = append(slices[i], more...)
		}
		require.True(t, bytes.Equal(slices[i], a.Read(nil, strings[i])))
	}
	for i := range strings {
		require.True(t, bytes.Equal(slices[i], a.Read(nil, strings[i])), "nothing else has written there")
	}

	had := len(a.pages)
	for i := range strings {
		a.Free(&strings[i])
	}
	for i := range had*pageBlocks - 1 {
		a.Append(&strings[i%100], make([]byte, blockBytes))
	}
	assert.Len(t, a.pages, had, "all that was given back is used again")
}
