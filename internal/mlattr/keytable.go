package mlattr

// keyTable finds what an attribute key means. It is made once and never
// changes, and most of the keys that it is asked for are in no vocabulary:
// those must cost next to nothing, which a map, hashing the whole key, does
// not offer. Keys that are made to collide can only hit one of its chains,
// whose length was settled when it was made.
type keyTable struct {
	// first has the place in entries, plus one, of each hash's first key.
	first   [1 << keyBits]uint32
	entries []keyEntry
}

// keyBits makes the table some eight times as long as the keys are many.
const keyBits = 11

type keyEntry struct {
	key  string
	next uint32 // as in first
	keyRules
}

// hashKey mixes the length of a key that is not empty with four of its bytes.
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

// ensure returns the rules of a key that is not empty, new ones if need be.
// They are valid until the next call.
func (t *keyTable) ensure(key string) *keyRules {
	if found := t.find(key); found != nil {
		return found
	}
	h := hashKey(key)
	t.entries = append(t.entries, keyEntry{key: key, next: t.first[h]})
	t.first[h] = uint32(len(t.entries))
	return &t.entries[len(t.entries)-1].keyRules
}
