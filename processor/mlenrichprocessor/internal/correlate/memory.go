package correlate

import (
	"encoding/binary"
	"iter"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/cache"
)

// How much is remembered of one trace: at most so much, and at least the latest half.
const (
	maxTraceSpans = 4096
	maxTraceAbove = 256
)

// traceMemory is what the store remembers of a trace. What spans hand down is
// kept by trace and not by span: a batch has many spans of a trace, and then
// asks once.
type traceMemory struct {
	// agreement is as appendAgreement writes it.
	agreement cache.Bytes
	// spans are those that hand something down, as appendHanded writes them.
	spans generations
	// above are the spans above one that used tokens and came before them, as
	// appendTo writes them.
	above generations
}

// generations are entries of a trace, in two parts. When the young part has half of a
// limit, it becomes the old one, whose entries are forgotten.
type generations struct {
	young, old       cache.Bytes
	youngLen, oldLen int
}

func (g *generations) len() int { return g.youngLen + g.oldLen }

// handedDown is what a span hands down, as an index in Batch.sets.
type handedDown struct {
	id   pcommon.SpanID
	down int32
}

// spanAbove is a span that is above one that used tokens, with the service of that one as
// a hash, and its status of HTTP if it is an attempt.
type spanAbove struct {
	id      pcommon.SpanID
	service uint64
	status  uint16
	kind    aboveKind
}

// aboveKind says what a span is above.
type aboveKind byte

const (
	// aboveUsage is above a span that used tokens.
	aboveUsage aboveKind = iota
	// aboveToolUsage is above a tool within which tokens were used.
	aboveToolUsage
	// aboveServer is above a server's span, the first one below, that used tokens.
	aboveServer
	// aboveAttempt is above a client of HTTP that asked the API of a model.
	aboveAttempt
	// aboveFailure is above a request that failed.
	aboveFailure
	// aboveTool is above a tool that failed.
	aboveTool
	// aboveAsker is above a request that states no usage.
	aboveAsker
	aboveKinds
)

// aboveBytes is how many bytes appendTo writes of a spanAbove.
const aboveBytes = 8 + 8 + 2 + 1

func (a *spanAbove) appendTo(to []byte) []byte {
	to = append(to, a.id[:]...)
	to = binary.NativeEndian.AppendUint64(to, a.service)
	to = binary.NativeEndian.AppendUint16(to, a.status)
	return append(to, byte(a.kind))
}

// aboveAt reads one of several that appendTo wrote.
func aboveAt(list []byte, i int) spanAbove {
	raw := list[i*aboveBytes:][:aboveBytes]
	return spanAbove{
		id: pcommon.SpanID(raw), service: binary.NativeEndian.Uint64(raw[8:]), status: binary.NativeEndian.Uint16(raw[16:]), kind: aboveKind(raw[18]),
	}
}

// containsAbove reports whether a span is among several that appendTo wrote.
func containsAbove(list []byte, wanted spanAbove) bool {
	for i := range len(list) / aboveBytes {
		if aboveAt(list, i) == wanted {
			return true
		}
	}
	return false
}

// appendHanded writes spans in groups of those that hand down the same keys:
// the length of the keys, the keys, the number of spans, and their ids.
func (b *branches) appendHanded(to []byte, spans []handedDown) []byte {
	for len(spans) > 0 {
		n := 1
		for n < len(spans) && spans[n].down == spans[0].down {
			n++
		}
		var keys set[string]
		for k, value := range b.sets[spans[0].down] {
			keys[k] = b.texts.text(value)
		}
		var raw [256]byte
		encoded := appendKeys(raw[:0], &keys)
		to = binary.AppendUvarint(to, uint64(len(encoded)))
		to = append(to, encoded...)
		to = binary.AppendUvarint(to, uint64(n))
		for i := range n {
			to = append(to, spans[i].id[:]...)
		}
		spans = spans[n:]
	}
	return to
}

// handedGroups are the groups that appendHanded wrote: the keys, and the ids one after the
// other.
func handedGroups(list []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(keys, ids []byte) bool) {
		next := func(unit uint64) (part []byte) {
			n, size := binary.Uvarint(list)
			part, list = list[size:][:unit*n], list[size:][unit*n:]
			return part
		}
		for len(list) > 0 {
			if !yield(next(1), next(8)) {
				return
			}
		}
	}
}

// findHanded returns the keys that a span hands down, or nil. Of several with
// the same id it is the last.
func findHanded(list []byte, id pcommon.SpanID) (found []byte) {
	wanted := binary.NativeEndian.Uint64(id[:])
	for keys, ids := range handedGroups(list) {
		for ; len(ids) > 0; ids = ids[8:] {
			if binary.NativeEndian.Uint64(ids) == wanted {
				found = keys
				break
			}
		}
	}
	return found
}

// mapHanded returns the keys of each span that findHanded finds. spans is how
// many there are.
func mapHanded(list []byte, spans int) map[pcommon.SpanID][]byte {
	found := make(map[pcommon.SpanID][]byte, spans)
	for keys, ids := range handedGroups(list) {
		for ; len(ids) > 0; ids = ids[8:] {
			found[pcommon.SpanID(ids)] = keys
		}
	}
	return found
}

// appendKeys writes keys. Each is a number, 0 for none: an odd one is twice the
// length of the text that follows, plus one, and an even one is twice the index,
// plus one, of an earlier key with the same text.
func appendKeys(to []byte, keys *set[string]) []byte {
	for k, text := range keys {
		if text == "" {
			to = append(to, 0)
			continue
		}
		if before := slices.Index(keys[:k], text); before >= 0 {
			to = append(to, byte(2*(before+1)))
			continue
		}
		to = binary.AppendUvarint(to, uint64(2*len(text)+1))
		to = append(to, text...)
	}
	return to
}

// readKeys reads what appendKeys wrote. Nothing is no keys.
func readKeys(raw []byte) (keys set[string]) {
	from := string(raw) // one copy for all of them
	at := 0
	for k := range keys {
		n, size := binary.Uvarint(raw[at:])
		at += size
		switch {
		case n == 0:
		case n%2 == 0:
			keys[k] = keys[n/2-1]
		default:
			keys[k] = from[at : at+int(n/2)]
			at += int(n / 2)
		}
	}
	return keys
}

// appendAgreement writes an agreement.
func appendAgreement(to []byte, a *agreement[string]) []byte {
	return appendKeys(append(to, a.disagree), &a.values)
}

// readAgreement reads what appendAgreement wrote. Nothing is no agreement.
func readAgreement(raw []byte) (a agreement[string]) {
	if len(raw) == 0 {
		return a
	}
	return agreement[string]{values: readKeys(raw[1:]), disagree: raw[0]}
}

// tally counts what all traces remember of one kind.
type tally struct {
	n       int
	evicted int64
}
