package mlattr

// nameFilter says at once of most spans' names that no rule fits them. The
// names of a service that no vocabulary knows must cost next to nothing.
type nameFilter struct {
	// lengths has, for the first byte of a rule's whole name, a bit for its
	// length.
	lengths [256]uint64
	// first and last mark the bytes that other rules begin and end with.
	first, last [256]bool
}

func (f *nameFilter) add(match Match, text string) {
	if text == "" {
		return // NewReader's tables have none
	}
	switch match {
	case Exact:
		f.lengths[text[0]] |= lengthBit(text)
	case Suffix:
		f.last[text[len(text)-1]] = true
	case Prefix, Numbered:
		f.first[text[0]] = true
	}
}

// passes says whether a rule may fit a name.
func (f *nameFilter) passes(name string) bool {
	if name == "" {
		return false
	}
	first := name[0]
	return f.first[first] || f.lengths[first]&lengthBit(name) != 0 || f.last[name[len(name)-1]]
}
