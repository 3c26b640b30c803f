package lastused

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestMapIsBounded: however many keys come, no more than limit are kept, and the last
// half of that is.
func TestMapIsBounded(t *testing.T) {
	m := NewMap[int, int](8)
	for i := range 100 {
		m.Put(i, -i)
		assert.LessOrEqual(t, len(m.young)+len(m.old), 8)
		for j := max(0, i-3); j <= i; j++ {
			value, ok := m.young[j]
			if !ok {
				value, ok = m.old[j]
			}
			assert.True(t, ok, "%d after %d", j, i)
			assert.Equal(t, -j, value)
		}
	}
	_, ok := m.Get(0)
	assert.False(t, ok)
}

// TestUsesRenew: what is asked for stays, with its value.
func TestUsesRenew(t *testing.T) {
	m := NewMap[int, string](4)
	m.Put(-1, "used")
	for i := range 100 {
		m.Put(i, "")
		value, ok := m.Get(-1)
		assert.True(t, ok)
		assert.Equal(t, "used", value)
	}
}

// TestValuesAreReplaced: another value for a key takes no other key's place.
func TestValuesAreReplaced(t *testing.T) {
	m := NewMap[int, int](2)
	m.Put(1, 1)
	for i := range 100 {
		m.Put(2, i)
	}
	value, _ := m.Get(2)
	assert.Equal(t, 99, value)
	_, ok := m.Get(1)
	assert.True(t, ok)
}

func TestMapAllocatesNothing(t *testing.T) {
	m := NewMap[int, int](1024)
	n := 0
	add := func() {
		n++
		m.Put(n, n)
		m.Get(n - 300)
	}
	for range 5000 {
		add()
	}
	assert.Zero(t, testing.AllocsPerRun(1000, add))
}
