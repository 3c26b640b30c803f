package device

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Two lines of the table with one name could not be told apart in the receiver's own
// metrics, and two with one key not in a recording.
func TestQuantitiesHaveNamesAndKeysOfTheirOwn(t *testing.T) {
	assert.Len(t, Quantities, quantityCount)
	names := map[string]string{}
	for i, q := range Quantities {
		assert.Equal(t, i, q.index, q.Name)
	}
	assert.Len(t, byKey, len(Quantities))
	for _, s := range []*Set{
		PipeUtilization, FanSpeeds, ClockFrequencies, ClockLimits, ThrottleReasons, ThrottleTimes, NVLinkErrors, LifetimeCorrected, LifetimeUncorrected,
	} {
		assert.NotEmpty(t, s.Names)
		for i, name := range s.Names {
			assert.Same(t, s.Members[i], s.Member(name))
			names[s.Member(name).Name] = "a set"
		}
	}
	for _, q := range Quantities {
		assert.Contains(t, []string{"", "a set"}, names[q.Name], "%s is there twice", q.Name)
		if names[q.Name] == "" {
			names[q.Name] = "one"
		}
	}
}

// What is stored as a quantity is the quantity's reading, and no other's.
func TestStoredQuantityIsRead(t *testing.T) {
	for _, q := range Quantities {
		var r Readings
		assert.False(t, q.Of(&r).Known, q.Name)
		q.Store(&r, 1)
		for _, each := range Quantities {
			assert.Equal(t, each == q, each.Of(&r).Known, "%s of %s", each.Name, q.Name)
		}
	}
}

// A counter is visited once, and what the visitor returns is kept.
func TestEachCounter(t *testing.T) {
	var r Readings
	for _, q := range Quantities {
		q.Store(&r, 1)
	}
	original := r
	seen := map[*Quantity]int{}
	r.EachCounter(func(q *Quantity, value float64) float64 {
		assert.True(t, q.Counter)
		seen[q]++
		return value + 1
	})
	for q, times := range seen {
		assert.Equal(t, 1, times, q.Name)
		assert.Equal(t, Read(2), q.Of(&r), q.Name)
		assert.Equal(t, Read(1), q.Of(&original), "a copy shares nothing")
	}
	assert.Equal(t, 1, seen[Energy])
	assert.Equal(t, 1, seen[NVLinkErrors.Member("replay")])
	assert.Equal(t, Read(1), PowerDraw.Of(&r), "no counter")

	var none Readings
	none.EachCounter(func(q *Quantity, _ float64) float64 {
		t.Error(q.Name, "is unavailable")
		return 1
	})
	assert.Equal(t, Readings{}, none)
}
