package nesting

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
)

func numbered(n int) Key {
	var id pcommon.SpanID
	binary.BigEndian.PutUint64(id[:], uint64(n+1)) // #nosec G115 -- small
	return KeyOf(seed.TraceOf(pcommon.TraceID{}), id)
}

func TestRecentRemembersTheNewest(t *testing.T) {
	const spans = 4096
	r := NewRecent(spans)
	for i := range 10 * spans {
		assert.Zero(t, r.Add(numbered(i), 1), "two spans with one hash")
	}
	forgotten := 0
	for i := range spans {
		if r.get(numbered(9*spans+i)) == 0 {
			forgotten++
		}
	}
	assert.Less(t, forgotten, spans/20, "of the %d newest", spans)
	assert.Zero(t, r.get(numbered(0)), "what is long gone")
}

func TestRecentAddsUpBits(t *testing.T) {
	r := NewRecent(1)
	ref := numbered(7)
	assert.Zero(t, r.get(ref))
	assert.Zero(t, r.Add(ref, 1))
	assert.EqualValues(t, 1, r.Add(ref, 4))
	assert.EqualValues(t, 5, r.get(ref))
}

// The span that was set last stays when others need its place.
func TestRecentForgetsTheOldest(t *testing.T) {
	r := NewRecent(1)
	for i := range ways {
		r.Add(numbered(i), 1)
	}
	r.Add(numbered(0), 1)
	for i := range ways - 1 {
		r.Add(numbered(100+i), 1)
	}
	assert.EqualValues(t, 1, r.get(numbered(0)))
	assert.Zero(t, r.get(numbered(1)))
}

func TestRecentAllocatesNothing(t *testing.T) {
	r := NewRecent(1024)
	n := 0
	assert.Zero(t, testing.AllocsPerRun(1000, func() {
		n++
		r.Add(numbered(n), 1)
		r.get(numbered(n - 1))
	}))
}

func TestKeysDiffer(t *testing.T) {
	keys := map[Key]bool{}
	for trace := range byte(4) {
		of := seed.TraceOf(pcommon.TraceID{trace})
		assert.Zero(t, KeyOf(of, pcommon.SpanID{}))
		for bit := range 64 {
			var span pcommon.SpanID
			span[bit/8] = 1 << (bit % 8)
			keys[KeyOf(of, span)] = true
		}
	}
	assert.Len(t, keys, 4*64)
}
