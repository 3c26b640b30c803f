package mlattr

// Longest returns the length of the longest chain.
func (t *KeyTable[V]) Longest() (longest int) {
	for _, at := range t.first {
		n := 0
		for ; at != 0; at = t.entries[at-1].next {
			n++
		}
		longest = max(longest, n)
	}
	return longest
}
