package vocabulary

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// keyTable is an index of keyRules by attribute key. It never changes once
// built. Most keys that are looked up are in no vocabulary, and rejecting them
// costs less than in a map, which hashes the whole key. Keys made to collide
// can only reach one chain, whose length is fixed.
type keyTable struct {
	// first has the index in entries, plus one, of the first key of each hash.
	first   [1 << keyBits]uint32
	entries []keyEntry
}

// keyBits makes first about eight times as long as entries.
const keyBits = 11

type keyEntry struct {
	key  string
	next uint32 // as in first
	keyRules
}

// hashKey mixes the length and four bytes of a key that is not empty.
func hashKey(key string) uint32 {
	n := len(key)
	h := uint32(n) | uint32(key[0])<<8 | uint32(key[n-1])<<16 | uint32(key[n/2])<<24
	h = h*0x9e3779b1 ^ uint32(key[n*3/4])*0x85ebca6b
	return h * 0xc2b2ae35 >> (32 - keyBits)
}

// find returns the rules of a key, or nil.
func (t *keyTable) find(key string) *keyRules {
	if key == "" {
		return nil
	}
	for i := t.first[hashKey(key)]; i != 0; {
		entry := &t.entries[i-1]
		if entry.key == key {
			return &entry.keyRules
		}
		i = entry.next
	}
	return nil
}

// ensure returns the rules of a key that is not empty, and adds the key if need
// be. The pointer is valid until the next call.
func (t *keyTable) ensure(key string) *keyRules {
	if found := t.find(key); found != nil {
		return found
	}
	h := hashKey(key)
	t.entries = append(t.entries, keyEntry{key: key, next: t.first[h]})
	t.first[h] = uint32(len(t.entries))
	return &t.entries[len(t.entries)-1].keyRules
}

// nameFilter rejects most names that no rule matches. The spans of a service
// that no vocabulary has must cost next to nothing.
type nameFilter struct {
	exact mlattr.KeySet
	// first and last have true for the bytes that the other rules begin and end
	// with.
	first, last [256]bool
}

func (f *nameFilter) add(match table.Match, text string) {
	if text == "" {
		return // NewReader's tables have none
	}
	switch match {
	case table.Exact:
		f.exact.Add(text)
	case table.Suffix:
		f.last[text[len(text)-1]] = true
	case table.Prefix, table.Numbered:
		f.first[text[0]] = true
	}
}

// passes reports whether a rule may match a name.
func (f *nameFilter) passes(name string) bool {
	if name == "" {
		return false
	}
	return f.first[name[0]] || f.exact.MayHave(name) || f.last[name[len(name)-1]]
}
