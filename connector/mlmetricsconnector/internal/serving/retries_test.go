package serving

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Requests that differ in anything are different.
func TestRequestsDiffer(t *testing.T) {
	hashes := map[uint64]int{}
	for i, r := range []request{
		{},
		{trace: [16]byte{1}},
		{trace: [16]byte{15: 1}},
		{parent: [8]byte{1}},
		{id: "a"},
		{operation: "a"},
		{target: "a"},
		{id: "a", operation: "b"},
		{id: "b", operation: "a"},
		{operation: "a", target: "b"},
		{operation: "b", target: "a"},
		{operation: "ab"},
		{target: "ab"},
		{arguments: 1},
	} {
		hash := r.hash()
		other, same := hashes[hash]
		assert.False(t, same, "%d and %d", i, other)
		assert.Equal(t, hash, r.hash())
		hashes[hash] = i
	}
}
