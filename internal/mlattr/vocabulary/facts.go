package vocabulary

import (
	"iter"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// Fact is the value of one canonical attribute.
type Fact struct {
	// Key is the name of the canonical attribute.
	Key string
	// Text is the value of KindText, KindTexts, KindID, KindJobID and KindSecret.
	Text string
	// Int is the value of KindInt, KindCount, KindDevice and KindInstant.
	Int int64
	// Double is the value of KindDouble and KindSeconds.
	Double float64

	// rank orders the rules that can give the fact; the lowest wins.
	rank int32
	// slot is the slot of Key, or zero for a dynamic key.
	slot Slot

	// Kind says which of the values is set.
	Kind table.Kind
	// Bool is the value of KindBool.
	Bool bool

	// Own is true where the attribute was received under its canonical name. It
	// is not written again.
	Own bool
	// ReadOnly is true where the value must not be written: a secret, or a
	// number that others are derived from.
	ReadOnly bool
	// NonFinite is true where the value is NaN or infinite. The fact has no
	// usable value.
	NonFinite bool
	// Unreadable is true where the value is wrong: a negative time, or, where
	// Own is true, a value of a wrong kind or size. The fact has no usable
	// value.
	Unreadable bool
	// Inherited is true for a phase that ml_enrich copied from an ancestor.
	// Text is empty.
	Inherited bool
}

// Slot returns the slot of Key, or zero for a dynamic key.
func (f *Fact) Slot() Slot { return f.slot }

// usable reports whether the fact has a value.
func (f *Fact) usable() bool { return !f.NonFinite && !f.Unreadable }

// Writable reports whether Put writes the fact: it has a value, may be written
// and is not there already.
func (f *Fact) Writable() bool { return !f.Own && !f.ReadOnly && f.usable() }

// Put writes the fact into attributes under its canonical name. It does nothing
// if the fact is not Writable.
func (f *Fact) Put(attrs pcommon.Map) {
	if !f.Writable() {
		return
	}
	switch f.Kind {
	case table.KindInt, table.KindCount, table.KindDevice:
		attrs.PutInt(f.Key, f.Int)
	case table.KindDouble, table.KindSeconds:
		attrs.PutDouble(f.Key, f.Double)
	case table.KindBool:
		attrs.PutBool(f.Key, f.Bool)
	case table.KindText, table.KindID, table.KindJobID:
		attrs.PutStr(f.Key, f.Text)
	case table.KindTexts:
		attrs.PutEmptySlice(f.Key).AppendEmpty().SetStr(f.Text)
	}
}

// Facts are the canonical attributes of one resource, span, point or log
// record. A Facts can be used again: its contents are valid until the next item
// is read into it. It refers to the item; call Reset before keeping it for
// longer.
type Facts struct {
	// Systems are the clients that were recognised. For a span, point or log
	// record they include those of its resource.
	Systems System
	// Rejected is the number of values that matched a rule and could not be
	// read, such as an id with white space.
	Rejected int

	list    []Fact
	pending []candidate
	// general are attributes that weak general rules may apply to.
	general []generalCandidate
	// asksAPI is true if an HTTP client asks the API of a model.
	asksAPI bool
	// name is the rule for the span's name, or nil.
	name *nameRule
	// dynamic has the canonical keys of prefix rules, so that a key that recurs
	// is allocated once.
	dynamic dynamicKeys
	// at has the index in list, plus one, of each canonical attribute.
	at [maxSlots]uint8
}

// candidate is an attribute that matches a rule of a client that is not
// recognised yet.
type candidate struct {
	rule  *rule
	value pcommon.Value
	tail  string
}

// dynamicKey is the canonical beginning of a key and the end that the client
// chose.
type dynamicKey struct{ canonical, tail string }

// maxDynamicKeys bounds dynamic. Its keys are losses and validation metrics, of
// which a program has a dozen.
const maxDynamicKeys = 64

// dynamicKeys are canonical keys that were made of both.
type dynamicKeys map[dynamicKey]slotKey

// slotKey is a key and its slot, zero if it has none.
type slotKey struct {
	key  string
	slot Slot
}

// of returns the canonical key of a prefix rule.
func (d *dynamicKeys) of(canonical, tail string) slotKey {
	if known, ok := (*d)[dynamicKey{canonical, tail}]; ok {
		return known
	}
	if *d == nil {
		*d = make(dynamicKeys)
	} else if len(*d) >= maxDynamicKeys {
		clear(*d)
	}
	key := canonical + tail
	made := slotKey{key, SlotOf(key)}
	(*d)[dynamicKey{canonical, key[len(canonical):]}] = made
	return made
}

// Reset empties the facts and keeps their memory, without references to what
// was read.
func (f *Facts) Reset() {
	f.begin()
	clear(f.list[:cap(f.list)])
	clear(f.pending[:cap(f.pending)])
	clear(f.general[:cap(f.general)])
}

// maxIdle limits the facts of a span whose memory is kept for others.
const maxIdle = 32

// forget is Reset for facts that were read once since they were empty.
func (f *Facts) forget() {
	if clear(f.list); cap(f.list) > maxIdle {
		f.list = nil
	}
	f.begin()
}

// begin empties the facts for the next item. Elements beyond the lengths are
// overwritten later or cleared by Reset.
func (f *Facts) begin() {
	f.Systems, f.Rejected, f.name, f.asksAPI = 0, 0, nil, false
	f.list = f.list[:0]
	f.pending, f.general = f.pending[:0], f.general[:0]
	clear(f.at[:])
}

// Len returns the number of facts.
func (f *Facts) Len() int { return len(f.list) }

// All iterates over the facts, including those without a usable value.
func (f *Facts) All() iter.Seq[*Fact] {
	return func(yield func(*Fact) bool) {
		for i := range f.list {
			if !yield(&f.list[i]) {
				return
			}
		}
	}
}

// Find returns the fact of a canonical attribute, or nil. The fact may have no
// usable value.
func (f *Facts) Find(key string) *Fact {
	if slot := SlotOf(key); slot != 0 {
		return f.At(slot)
	}
	return f.withoutSlot(key)
}

// withoutSlot is Find for an attribute without a slot.
func (f *Facts) withoutSlot(key string) *Fact {
	for i := range f.list {
		if f.list[i].Key == key {
			return &f.list[i]
		}
	}
	return nil
}

// At is Find by the attribute's slot.
func (f *Facts) At(slot Slot) *Fact {
	if i := f.at[slot&(maxSlots-1)]; i != 0 {
		return &f.list[i-1]
	}
	return nil
}

// TextAt is Text by the attribute's slot.
func (f *Facts) TextAt(slot Slot) string { return f.At(slot).text() }

// IntAt returns the whole number of the attribute of a slot, and false where there is none.
func (f *Facts) IntAt(slot Slot) (int64, bool) { return f.At(slot).int() }

// DoubleAt returns the number of the attribute of a slot, converted from a whole number if
// need be, and false where there is none.
func (f *Facts) DoubleAt(slot Slot) (float64, bool) { return f.At(slot).double() }

// BoolAt returns the boolean of the attribute of a slot, and false where there is none.
func (f *Facts) BoolAt(slot Slot) (value, ok bool) {
	fact := f.At(slot)
	if fact == nil || fact.Kind != table.KindBool || !fact.usable() {
		return false, false
	}
	return fact.Bool, true
}

// Text returns the text of a canonical attribute, or "".
func (f *Facts) Text(key string) string { return f.Find(key).text() }

func (f *Fact) text() string {
	if f == nil || !f.usable() {
		return ""
	}
	return f.Text
}

func (f *Fact) int() (int64, bool) {
	if f == nil || !f.usable() {
		return 0, false
	}
	switch f.Kind {
	case table.KindInt, table.KindCount, table.KindDevice:
		return f.Int, true
	}
	return 0, false
}

func (f *Fact) double() (float64, bool) {
	if f == nil || !f.usable() {
		return 0, false
	}
	switch f.Kind {
	case table.KindDouble, table.KindSeconds:
		return f.Double, true
	case table.KindInt, table.KindCount, table.KindDevice:
		return float64(f.Int), true
	}
	return 0, false
}

// SetText adds a derived fact, unless there is a fact of that slot.
func (f *Facts) SetText(slot Slot, text string) {
	f.set(slot, rankDerived, Fact{Kind: table.KindText, Text: text})
}

// SetBool is SetText for a boolean.
func (f *Facts) SetBool(slot Slot, value bool) {
	f.set(slot, rankDerived, Fact{Kind: table.KindBool, Bool: value})
}

// SetDouble is SetText for a double.
func (f *Facts) SetDouble(slot Slot, value float64) {
	f.set(slot, rankDerived, Fact{Kind: table.KindDouble, Double: value})
}

// SetInt is SetText for a whole number.
func (f *Facts) SetInt(slot Slot, value int64) {
	f.set(slot, rankDerived, Fact{Kind: table.KindInt, Int: value})
}

// set adds a fact of a slot, unless there is one of the same or a lower rank.
func (f *Facts) set(slot Slot, rank int32, fact Fact) {
	fact.Key, fact.slot, fact.rank = slotNames[slot], slot, rank
	f.add(&fact)
}

// add keeps a fact unless there is one of the same or a lower rank.
func (f *Facts) add(fact *Fact) {
	if to := f.place(fact.slot, fact.Key, fact.rank); to != nil {
		*to = *fact
	}
}

// place returns the memory of a fact, whose content is unknown, or nil where there
// is a fact of the same or a lower rank.
func (f *Facts) place(slot Slot, key string, rank int32) *Fact {
	var have *Fact
	if slot != 0 {
		have = f.At(slot)
	} else {
		have = f.withoutSlot(key)
	}
	if have != nil {
		if rank >= have.rank {
			return nil
		}
		return have
	}
	n := len(f.list)
	if n < cap(f.list) {
		f.list = f.list[:n+1]
	} else {
		f.list = append(f.list, Fact{})
	}
	if slot != 0 {
		f.at[slot] = uint8(n + 1) // #nosec G115 -- at most maxSlots and maxDynamic
	}
	return &f.list[n]
}
