package mlattr

import "math/bits"

// KeyTable is an index of values by texts such as the keys of attributes. It never changes
// once built. Most texts that are looked up are not in it, and rejecting them costs less
// than in a map, which hashes the whole text. Texts made to collide can only reach one chain,
// whose length is fixed.
type KeyTable[V any] struct {
	// first has the index in entries, plus one, of the first key of each hash.
	first   []uint32
	shift   int
	entries []keyEntry[V]
}

type keyEntry[V any] struct {
	key   string
	next  uint32 // as in first
	value V
}

// NewKeyTable returns an empty table for about so many keys, at least one.
func NewKeyTable[V any](keys int) *KeyTable[V] {
	n := bits.Len(uint(8*keys - 1)) // #nosec G115 -- a number of keys
	return &KeyTable[V]{first: make([]uint32, 1<<n), shift: 32 - n}
}

// NewKeySet returns the table of keys that have no values.
func NewKeySet(keys ...string) *KeyTable[struct{}] {
	t := NewKeyTable[struct{}](len(keys))
	for _, key := range keys {
		t.Ensure(key)
	}
	return t
}

// hash mixes the length and four bytes of a key that is not empty.
func (t *KeyTable[V]) hash(key string) uint32 {
	n := len(key)
	h := uint32(n) | uint32(key[0])<<8 | uint32(key[n-1])<<16 | uint32(key[n/2])<<24
	h = h*0x9e3779b1 ^ uint32(key[n*3/4])*0x85ebca6b
	return h * 0xc2b2ae35 >> t.shift
}

// Find returns the value of a key, or nil.
func (t *KeyTable[V]) Find(key string) *V {
	if key == "" {
		return nil
	}
	for i := t.first[t.hash(key)]; i != 0; {
		entry := &t.entries[i-1]
		if entry.key == key {
			return &entry.value
		}
		i = entry.next
	}
	return nil
}

// Ensure returns the value of a key that is not empty, and adds the key if need be. The
// pointer is valid until the next call.
func (t *KeyTable[V]) Ensure(key string) *V {
	if found := t.Find(key); found != nil {
		return found
	}
	h := t.hash(key)
	t.entries = append(t.entries, keyEntry[V]{key: key, next: t.first[h]})
	t.first[h] = uint32(len(t.entries)) // #nosec G115 -- a number of keys
	return &t.entries[len(t.entries)-1].value
}

// Values calls each for the values of all keys.
func (t *KeyTable[V]) Values(each func(*V)) {
	for i := range t.entries {
		each(&t.entries[i].value)
	}
}
