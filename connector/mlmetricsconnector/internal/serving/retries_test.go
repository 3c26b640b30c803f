package serving

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Requests that differ in anything are different.
func TestRequestsDiffer(t *testing.T) {
	hashes := map[uint64]int{}
	for i, r := range []struct {
		id string
		Span
	}{
		{},
		{Span: Span{Trace: [16]byte{1}}},
		{Span: Span{Trace: [16]byte{15: 1}}},
		{Span: Span{Parent: [8]byte{1}}},
		{id: "a"},
		{Span: Span{Operation: "a"}},
		{Span: Span{Model: "a"}},
		{id: "a", Span: Span{Operation: "b"}},
		{id: "b", Span: Span{Operation: "a"}},
		{Span: Span{Operation: "a", Model: "b"}},
		{Span: Span{Operation: "b", Tool: "a"}},
		{Span: Span{Operation: "ab"}},
		{Span: Span{Tool: "ab"}},
		{Span: Span{Arguments: 1}},
	} {
		hash := r.hash(r.id)
		other, same := hashes[hash]
		assert.False(t, same, "%d and %d", i, other)
		assert.Equal(t, hash, r.hash(r.id))
		hashes[hash] = i
	}
}
