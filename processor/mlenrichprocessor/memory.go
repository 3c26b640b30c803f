package mlenrichprocessor

import "encoding/binary"

// How much is remembered of one trace. Beyond it the oldest half is forgotten.
const (
	maxTraceSpans = 4096
	maxTraceAbove = 256
)

// traceMemory is what the store remembers of a trace, in its pieces. What spans
// hand down is kept with the trace, and not by span: a batch has many spans of
// a trace, and then asks once.
type traceMemory struct {
	// agreement is as appendTo writes it.
	agreement stretch
	// spans are those that hand something down, as appendHanded writes them,
	// the newest last. There are so many.
	spans    stretch
	spansLen int
	// above are the spans above one that used tokens and came before them, as
	// appendTo writes them, the newest last.
	above stretch
}

func (m *traceMemory) aboveLen() int { return int(m.above.size) / aboveBytes }

// handedDown is what a span hands down. The keys are shared, and never changed.
type handedDown struct {
	id   [8]byte
	keys *keySet
}

// spanAbove is a span that is above one that used tokens, and the service of
// that one, as store.hashOf has it.
type spanAbove struct {
	id      [8]byte
	service uint64
	// serves is true where that is the first span below which is a server's.
	serves bool
}

// aboveBytes is how many bytes appendTo writes of a spanAbove.
const aboveBytes = 8 + 8 + 1

func (a *spanAbove) appendTo(to []byte) []byte {
	to = append(to, a.id[:]...)
	to = binary.NativeEndian.AppendUint64(to, a.service)
	serves := byte(0)
	if a.serves {
		serves = 1
	}
	return append(to, serves)
}

// aboveAt reads one of several that appendTo wrote.
func aboveAt(list []byte, i int) spanAbove {
	raw := list[i*aboveBytes:][:aboveBytes]
	return spanAbove{id: [8]byte(raw), service: binary.NativeEndian.Uint64(raw[8:]), serves: raw[16] != 0}
}

// containsAbove says whether a span is among several that appendTo wrote.
func containsAbove(list []byte, wanted spanAbove) bool {
	for i := range len(list) / aboveBytes {
		if aboveAt(list, i) == wanted {
			return true
		}
	}
	return false
}

// appendHanded writes spans by groups of those that hand down the same keys:
// how long the keys are, the keys, how many the spans are, and their ids.
func appendHanded(to []byte, spans []handedDown) []byte {
	for len(spans) > 0 {
		n := 1
		for n < len(spans) && spans[n].keys == spans[0].keys {
			n++
		}
		var raw [256]byte
		keys := spans[0].keys.appendTo(raw[:0])
		to = binary.AppendUvarint(to, uint64(len(keys)))
		to = append(to, keys...)
		to = binary.AppendUvarint(to, uint64(n))
		for i := range n {
			to = append(to, spans[i].id[:]...)
		}
		spans = spans[n:]
	}
	return to
}

// handedGroup is a group that appendHanded wrote: the keys, and the ids one
// after the other.
type handedGroup struct{ keys, ids []byte }

// nextHanded reads a group and returns what comes after it.
func nextHanded(list []byte) (handedGroup, []byte) {
	n, size := binary.Uvarint(list)
	list = list[size:]
	g := handedGroup{keys: list[:n]}
	list = list[n:]
	n, size = binary.Uvarint(list)
	list = list[size:]
	g.ids = list[:8*n]
	return g, list[8*n:]
}

// findHanded returns the keys that a span hands down, or nil. Of several with
// the same id it is the last.
func findHanded(list []byte, id [8]byte) (keys []byte) {
	wanted := binary.NativeEndian.Uint64(id[:])
	for len(list) > 0 {
		var g handedGroup
		g, list = nextHanded(list)
		for ids := g.ids; len(ids) > 0; ids = ids[8:] {
			if binary.NativeEndian.Uint64(ids) == wanted {
				keys = g.keys
				break
			}
		}
	}
	return keys
}

// mapHanded has the keys of each span that findHanded finds. There are so many
// spans.
func mapHanded(list []byte, spans int) map[[8]byte][]byte {
	keys := make(map[[8]byte][]byte, spans)
	for len(list) > 0 {
		var g handedGroup
		g, list = nextHanded(list)
		for ids := g.ids; len(ids) > 0; ids = ids[8:] {
			keys[[8]byte(ids)] = g.keys
		}
	}
	return keys
}

// dropHanded leaves the first of the spans out.
func dropHanded(list []byte, spans int) []byte {
	kept := make([]byte, 0, len(list))
	for len(list) > 0 {
		var g handedGroup
		g, list = nextHanded(list)
		gone := min(spans, len(g.ids)/8)
		spans -= gone
		if ids := g.ids[8*gone:]; len(ids) > 0 {
			kept = binary.AppendUvarint(kept, uint64(len(g.keys)))
			kept = append(kept, g.keys...)
			kept = binary.AppendUvarint(kept, uint64(len(ids)/8))
			kept = append(kept, ids...)
		}
	}
	return kept
}

// appendTo writes the keys. Each is a number, zero for none: an odd one is twice
// the length of the text that follows, plus one, and an even one says that the
// text is that of a key before it.
func (s *keySet) appendTo(to []byte) []byte {
next:
	for k, text := range s {
		if text == "" {
			to = append(to, 0)
			continue
		}
		for before := range k {
			if s[before] == text {
				to = append(to, byte(2*(before+1)))
				continue next
			}
		}
		to = binary.AppendUvarint(to, uint64(2*len(text)+1))
		to = append(to, text...)
	}
	return to
}

// readKeys reads what appendTo wrote.
func readKeys(raw []byte) (s keySet) {
	from := string(raw) // one copy for all of them
	at := 0
	for k := range s {
		n, size := binary.Uvarint(raw[at:])
		at += size
		switch {
		case n == 0:
		case n%2 == 0:
			s[k] = s[n/2-1]
		default:
			s[k] = from[at : at+int(n/2)]
			at += int(n / 2)
		}
	}
	return s
}

// appendTo writes the agreement.
func (a *agreement) appendTo(to []byte) []byte {
	var disagree byte
	for k, differs := range a.disagree {
		if differs {
			disagree |= 1 << k
		}
	}
	return a.values.appendTo(append(to, disagree))
}

// readAgreement reads what appendTo wrote; nothing is no agreement.
func readAgreement(raw []byte) (a agreement) {
	if len(raw) == 0 {
		return a
	}
	for k := range a.disagree {
		a.disagree[k] = raw[0]&(1<<k) != 0
	}
	a.values = readKeys(raw[1:])
	return a
}

// room says how many of a list have to go before more are added to it, and how
// many of these are left out, so that it has at most limit.
func room(have, more, limit int) (gone, left int) {
	if over := have + more - limit; over > 0 {
		gone = min(max(over, limit/2), have)
		left = max(have-gone+more-limit, 0)
	}
	return gone, left
}

// held counts what the memories of all traces hold of one kind together.
type held struct {
	n       int
	evicted int64
}
