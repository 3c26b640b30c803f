package mlattr

import "slices"

// KeySet is a set of texts such as the keys of attributes. Most that are asked for are not
// in it: their length and first byte say so. The zero value is empty.
type KeySet struct {
	lengths [256]uint64
	keys    []string
}

// NewKeySet returns the set of keys.
func NewKeySet(keys ...string) *KeySet {
	s := new(KeySet)
	for _, key := range keys {
		s.Add(key)
	}
	return s
}

// Add adds a key. No set has the empty one.
func (s *KeySet) Add(key string) {
	if key != "" {
		s.lengths[key[0]] |= 1 << (len(key) & 63)
		s.keys = append(s.keys, key)
	}
}

// MayHave reports whether the set may have a key.
func (s *KeySet) MayHave(key string) bool {
	return key != "" && s.lengths[key[0]]>>(len(key)&63)&1 != 0
}

// Index returns the place of a key in the order of NewKeySet, or -1 if the set does not have it.
func (s *KeySet) Index(key string) int {
	if !s.MayHave(key) {
		return -1
	}
	return slices.Index(s.keys, key)
}

// Has reports whether the set has a key.
func (s *KeySet) Has(key string) bool { return s.Index(key) >= 0 }
