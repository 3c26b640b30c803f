package cache

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLRUEvictsAndCounts(t *testing.T) {
	b := NewLRU[string, int](2, time.Minute, nil)
	now := time.Unix(0, 0)
	*b.Ensure("a", now) = 1
	*b.Ensure("b", now) = 2
	require.NotNil(t, b.Find("a", now), "a use renews")
	*b.Ensure("c", now) = 3
	assert.Nil(t, b.Find("b", now), "the least recently used goes")
	assert.Equal(t, 1, *b.Find("a", now))
	assert.EqualValues(t, 1, b.evicted)
	assert.Len(t, b.at, 2)
}

func TestLRUForgets(t *testing.T) {
	b := NewLRU[string, int](10, time.Minute, nil)
	now := time.Unix(0, 0)
	*b.Ensure("old", now) = 1
	*b.Ensure("used", now) = 2
	now = now.Add(50 * time.Second)
	require.NotNil(t, b.Find("used", now))
	now = now.Add(50 * time.Second)
	assert.Nil(t, b.Find("old", now))
	assert.NotNil(t, b.Find("used", now))
	now = now.Add(time.Hour)
	b.Ensure("new", now)
	assert.Len(t, b.at, 1, "what is too old makes room")
	assert.Zero(t, b.evicted, "expiry is no eviction")
}

func TestLRUPeekDoesNotRenew(t *testing.T) {
	b := NewLRU[string, int](10, time.Minute, nil)
	now := time.Unix(0, 0)
	*b.Ensure("a", now) = 1
	now = now.Add(50 * time.Second)
	assert.Equal(t, 1, *b.Peek("a"))
	assert.Nil(t, b.Peek("b"))
	now = now.Add(50 * time.Second)
	assert.Nil(t, b.Find("a", now))
}

// slowLRU does what LRU does, in the plainest way.
type slowLRU struct {
	keys  []int // the least recently used first
	at    map[int]time.Time
	value map[int]int
}

func (s *slowLRU) drop(key int) {
	for i, k := range s.keys {
		if k == key {
			s.keys = append(s.keys[:i:i], s.keys[i+1:]...)
			break
		}
	}
	delete(s.at, key)
	delete(s.value, key)
}

func (s *slowLRU) find(key int, now time.Time) (int, bool) {
	v, ok := s.value[key]
	at := s.at[key]
	if ok {
		s.drop(key)
	}
	if !ok || now.Sub(at) > time.Minute {
		return 0, false
	}
	s.put(key, v, now)
	return v, true
}

func (s *slowLRU) put(key, v int, now time.Time) {
	s.keys, s.at[key], s.value[key] = append(s.keys, key), now, v
}

func TestLRUDoesWhatASlowOneDoes(t *testing.T) {
	const limit = 192
	random := rand.New(rand.NewPCG(1, 2))
	b := NewLRU[int, int](limit, time.Minute, nil)
	slow := &slowLRU{at: map[int]time.Time{}, value: map[int]int{}}
	now, evicted := time.Unix(1_700_000_000, 0), int64(0)
	for step := range 20_000 {
		now = now.Add(time.Duration(random.IntN(150)) * time.Millisecond)
		if random.IntN(2_000) == 0 {
			now = now.Add(2 * time.Minute)
		}
		key := random.IntN(2 * limit)
		want, known := slow.find(key, now)
		if random.IntN(2) == 0 {
			got := b.Find(key, now)
			require.Equal(t, known, got != nil)
			if known {
				require.Equal(t, want, *got)
			}
			continue
		}
		got := b.Ensure(key, now)
		if known {
			require.Equal(t, want, *got)
		} else {
			require.Zero(t, *got, "what was there before is gone")
			for len(slow.keys) > 0 && now.Sub(slow.at[slow.keys[0]]) > time.Minute {
				slow.drop(slow.keys[0])
			}
			if len(slow.keys) == limit {
				evicted++
				slow.drop(slow.keys[0])
			}
			slow.put(key, step+1, now)
			*got = step + 1
		}
		require.Len(t, b.at, len(slow.keys))
		require.Equal(t, evicted, b.evicted)
	}
	assert.Positive(t, evicted)
}

// BenchmarkLRU inserts into a full LRU.
func BenchmarkLRU(b *testing.B) {
	const limit = 65536
	spans := NewLRU[[24]byte, uint64](limit, time.Hour, nil)
	now := time.Now()
	put := func(i int) {
		var key [24]byte
		binary.BigEndian.PutUint64(key[:], uint64(i)*0x9e3779b97f4a7c15)
		binary.BigEndian.PutUint64(key[16:], uint64(i))
		*spans.Ensure(key, now) = uint64(i)
	}
	for i := range limit {
		put(i)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		put(limit + i)
	}
}
