package mlenrichprocessor

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBoundedEvictsAndCounts(t *testing.T) {
	b := newBounded[string, int](2, time.Minute)
	now := time.Unix(0, 0)
	*b.ensure("a", now) = 1
	*b.ensure("b", now) = 2
	require.NotNil(t, b.find("a", now), "a use renews")
	*b.ensure("c", now) = 3
	assert.Nil(t, b.find("b", now), "the least recently used goes")
	assert.Equal(t, 1, *b.find("a", now))
	assert.EqualValues(t, 1, b.evicted)
	assert.Equal(t, 2, b.len())
}

func TestBoundedForgets(t *testing.T) {
	b := newBounded[string, int](10, time.Minute)
	now := time.Unix(0, 0)
	*b.ensure("old", now) = 1
	*b.ensure("used", now) = 2
	now = now.Add(50 * time.Second)
	require.NotNil(t, b.find("used", now))
	now = now.Add(50 * time.Second)
	assert.Nil(t, b.find("old", now))
	assert.NotNil(t, b.find("used", now))
	now = now.Add(time.Hour)
	b.ensure("new", now)
	assert.Equal(t, 1, b.len(), "what is too old makes room")
	assert.Zero(t, b.evicted, "expiry is no eviction")
}

func TestBoundedPeekDoesNotRenew(t *testing.T) {
	b := newBounded[string, int](10, time.Minute)
	now := time.Unix(0, 0)
	*b.ensure("a", now) = 1
	now = now.Add(50 * time.Second)
	assert.Equal(t, 1, *b.peek("a"))
	assert.Nil(t, b.peek("b"))
	now = now.Add(50 * time.Second)
	assert.Nil(t, b.find("a", now))
}

// slowBounded does what bounded does, in the plainest way.
type slowBounded struct {
	keys  []int // the least recently used first
	at    map[int]time.Time
	value map[int]int
}

func (s *slowBounded) drop(key int) {
	for i, k := range s.keys {
		if k == key {
			s.keys = append(s.keys[:i:i], s.keys[i+1:]...)
			break
		}
	}
	delete(s.at, key)
	delete(s.value, key)
}

func (s *slowBounded) find(key int, now time.Time) (int, bool) {
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

func (s *slowBounded) put(key, v int, now time.Time) {
	s.keys, s.at[key], s.value[key] = append(s.keys, key), now, v
}

func TestBoundedIsAsThePlainestOne(t *testing.T) {
	const limit = 192
	random := rand.New(rand.NewPCG(1, 2))
	b := newBounded[int, int](limit, time.Minute)
	slow := &slowBounded{at: map[int]time.Time{}, value: map[int]int{}}
	now, evicted := time.Unix(1_700_000_000, 0), int64(0)
	for step := range 20_000 {
		now = now.Add(time.Duration(random.IntN(150)) * time.Millisecond)
		if random.IntN(2_000) == 0 {
			now = now.Add(2 * time.Minute)
		}
		key := random.IntN(2 * limit)
		want, known := slow.find(key, now)
		if random.IntN(2) == 0 {
			got := b.find(key, now)
			require.Equal(t, known, got != nil)
			if known {
				require.Equal(t, want, *got)
			}
			continue
		}
		got := b.ensure(key, now)
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
		require.Equal(t, len(slow.keys), b.len())
		require.Equal(t, evicted, b.evicted)
	}
	assert.Positive(t, evicted)
}

// BenchmarkBounded puts a new entry into a full map of spans.
func BenchmarkBounded(b *testing.B) {
	spans := newBounded[spanKey, *keySet](maxSpans, keyAge)
	now, keys := time.Now(), new(keySet)
	put := func(i int) {
		var key spanKey
		binary.BigEndian.PutUint64(key.trace[:], uint64(i)*0x9e3779b97f4a7c15)
		binary.BigEndian.PutUint64(key.span[:], uint64(i))
		*spans.ensure(key, now) = keys
	}
	for i := range maxSpans {
		put(i)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		put(maxSpans + i)
	}
}
