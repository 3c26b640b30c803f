package mlattr

import (
	"iter"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// Fact is one canonical attribute as something that was received states it.
type Fact struct {
	// Key is the canonical attribute.
	Key string
	// Text is the value of KindText, KindID, KindJobID and KindSecret.
	Text string
	// Int is the value of KindInt, KindCount, KindDevice and KindInstant.
	Int int64
	// Double is the value of KindDouble and KindSeconds.
	Double float64

	// rank is the place of the rule that gave the fact; the lowest wins.
	rank int32
	// slot is Key's, and zero for a dynamic one.
	slot Slot

	// Kind says which of the values holds.
	Kind Kind
	// Bool is the value of KindBool.
	Bool bool

	// Own is true where the canonical attribute itself was received. It
	// stands as it is and must not be written again.
	Own bool
	// ReadOnly is true where the value must not be written: a secret, or a
	// number that only serves to derive others.
	ReadOnly bool
	// NonFinite is true where the value was NaN or an infinity. There is no
	// usable value then.
	NonFinite bool
	// Unreadable is true where the value is known to be wrong: a time that is
	// negative, or, where Own holds, any that is of a kind or size that the
	// attribute cannot have. There is no usable value then.
	Unreadable bool
	// Inherited is true for a phase that ml_enrich put on the span because
	// an ancestor has it. Text is empty then.
	Inherited bool
}

// Slot is the slot of Key, and zero for a dynamic one.
func (f *Fact) Slot() Slot { return f.slot }

// usable says whether the fact has a value.
func (f *Fact) usable() bool { return !f.NonFinite && !f.Unreadable }

// Writable says whether Put writes the fact: it is not there already, may be
// written and has a value.
func (f *Fact) Writable() bool { return !f.Own && !f.ReadOnly && f.usable() }

// Put writes the fact into attributes under its canonical name. It does
// nothing for facts that are there already or must not be written.
func (f *Fact) Put(attrs pcommon.Map) {
	if !f.Writable() {
		return
	}
	switch f.Kind {
	case KindInt, KindCount, KindDevice:
		attrs.PutInt(f.Key, f.Int)
	case KindDouble, KindSeconds:
		attrs.PutDouble(f.Key, f.Double)
	case KindBool:
		attrs.PutBool(f.Key, f.Bool)
	case KindText, KindID, KindJobID:
		attrs.PutStr(f.Key, f.Text)
	}
}

// Facts is what one resource, span, point or log record says in canonical
// terms. It is reused from item to item: its contents hold until the next
// reading into it. Reset it before keeping it for later: it refers to what was
// read.
type Facts struct {
	// Systems is every client that the item was recognised as. For a span,
	// point or record it includes those of its resource.
	Systems System
	// Rejected counts values that a rule matched but could not read: an id
	// with white space, a number that is none.
	Rejected int

	list    []Fact
	pending []candidate
	// name is the rule for the span's name, or nil.
	name *nameRule
	// dynamic has canonical keys that prefix rules made, so that one that recurs
	// is made once.
	dynamic map[dynamicKey]string
	// at has the place in list, plus one, of each canonical attribute.
	at [maxSlots]uint8
	// lengths has a bit for the length of each key in list. Most of what is
	// asked for is not there, and this often tells.
	lengths uint64
}

// candidate is an attribute that some rules matched, until it is known which
// client sent it.
type candidate struct {
	rule  *rule
	value pcommon.Value
	tail  string
}

// dynamicKey is the beginning of a canonical key and what a client put at its end.
type dynamicKey struct{ canonical, tail string }

// maxDynamicKeys is how many keys dynamic has at most. They are of losses and
// metrics, of which a program has a dozen.
const maxDynamicKeys = 64

// dynamicKey returns the canonical key of a prefix rule.
func (f *Facts) dynamicKey(canonical, tail string) string {
	if key, ok := f.dynamic[dynamicKey{canonical, tail}]; ok {
		return key
	}
	if f.dynamic == nil {
		f.dynamic = make(map[dynamicKey]string)
	} else if len(f.dynamic) >= maxDynamicKeys {
		clear(f.dynamic)
	}
	key := canonical + tail
	f.dynamic[dynamicKey{canonical, key[len(canonical):]}] = key
	return key
}

// Reset empties the facts and keeps their memory. It drops every reference
// to what was read.
func (f *Facts) Reset() {
	f.begin()
	clear(f.list[:cap(f.list)])
	clear(f.pending[:cap(f.pending)])
}

// begin empties the facts for the next item. What it leaves beyond the ends
// is overwritten by that or cleared by Reset.
func (f *Facts) begin() {
	f.Systems, f.Rejected, f.lengths, f.name = 0, 0, 0, nil
	f.list = f.list[:0]
	f.pending = f.pending[:0]
	clear(f.at[:])
}

// Len is the number of facts.
func (f *Facts) Len() int { return len(f.list) }

// All visits the facts, those without a usable value included.
func (f *Facts) All() iter.Seq[*Fact] {
	return func(yield func(*Fact) bool) {
		for i := range f.list {
			if !yield(&f.list[i]) {
				return
			}
		}
	}
}

// WithPrefix visits the facts with a usable value whose key begins with
// prefix, such as LossTaskPrefix, together with the rest of the key.
func (f *Facts) WithPrefix(prefix string) iter.Seq2[string, *Fact] {
	return func(yield func(string, *Fact) bool) {
		for i := range f.list {
			fact := &f.list[i]
			rest, ok := strings.CutPrefix(fact.Key, prefix)
			if ok && rest != "" && fact.usable() && !yield(rest, fact) {
				return
			}
		}
	}
}

// Find returns the fact of a canonical attribute, also one without a usable
// value, or nil.
func (f *Facts) Find(key string) *Fact {
	if f.lengths&lengthBit(key) == 0 {
		return nil
	}
	for i := range f.list {
		if f.list[i].Key == key {
			return &f.list[i]
		}
	}
	return nil
}

func lengthBit(key string) uint64 { return 1 << (len(key) & 63) }

// At is Find by the attribute's slot.
func (f *Facts) At(slot Slot) *Fact {
	if i := f.at[slot&(maxSlots-1)]; i != 0 {
		return &f.list[i-1]
	}
	return nil
}

// TextAt is Text by the attribute's slot.
func (f *Facts) TextAt(slot Slot) string { return f.At(slot).text() }

// IntAt is Int by the attribute's slot.
func (f *Facts) IntAt(slot Slot) (int64, bool) { return f.At(slot).int() }

// DoubleAt is Double by the attribute's slot.
func (f *Facts) DoubleAt(slot Slot) (float64, bool) { return f.At(slot).double() }

// Text returns the text of a fact, and "" where there is none.
func (f *Facts) Text(key string) string { return f.Find(key).text() }

func (f *Fact) text() string {
	if f == nil || !f.usable() {
		return ""
	}
	return f.Text
}

// Int returns the whole number of a fact.
func (f *Facts) Int(key string) (int64, bool) { return f.Find(key).int() }

func (f *Fact) int() (int64, bool) {
	if f == nil || !f.usable() {
		return 0, false
	}
	switch f.Kind {
	case KindInt, KindCount, KindDevice:
		return f.Int, true
	}
	return 0, false
}

// Double returns the number of a fact, whole ones included.
func (f *Facts) Double(key string) (float64, bool) { return f.Find(key).double() }

func (f *Fact) double() (float64, bool) {
	if f == nil || !f.usable() {
		return 0, false
	}
	switch f.Kind {
	case KindDouble, KindSeconds:
		return f.Double, true
	case KindInt, KindCount, KindDevice:
		return float64(f.Int), true
	}
	return 0, false
}

// SetText adds a fact that a rule of the caller's derived, unless there is
// one of that slot.
func (f *Facts) SetText(slot Slot, text string) {
	if fact := f.reserve(slot, "", rankDerived); fact != nil {
		fact.Kind, fact.Text = KindText, text
	}
}

// SetBool does the same for a boolean.
func (f *Facts) SetBool(slot Slot, value bool) {
	if fact := f.reserve(slot, "", rankDerived); fact != nil {
		fact.Kind, fact.Bool = KindBool, value
	}
}

// SetDouble does the same for a double.
func (f *Facts) SetDouble(slot Slot, value float64) {
	if fact := f.reserve(slot, "", rankDerived); fact != nil {
		fact.Kind, fact.Double = KindDouble, value
	}
}

// SetInt does the same for a whole number.
func (f *Facts) SetInt(slot Slot, value int64) {
	if fact := f.reserve(slot, "", rankDerived); fact != nil {
		fact.Kind, fact.Int = KindInt, value
	}
}

// setInt does the same for a whole number that a span's name gave.
func (f *Facts) setInt(slot Slot, value int64) {
	if fact := f.reserve(slot, "", rankName); fact != nil {
		fact.Kind, fact.Int = KindInt, value
	}
}

// setName does the same for a text that a span's name gave.
func (f *Facts) setName(slot Slot, text string) {
	if text == "" {
		return
	}
	if fact := f.reserve(slot, "", rankName); fact != nil {
		fact.Kind, fact.Text = KindText, text
	}
}

// reserve returns an empty fact of a slot, or of a dynamic key where the slot
// is zero, to be filled in. It returns nil where there is a fact whose rank is
// not higher: of each key, the fact of the lowest rank is kept.
func (f *Facts) reserve(slot Slot, key string, rank int32) *Fact {
	if slot != 0 {
		key = slotNames[slot]
	}
	return f.add(&Fact{Key: key, slot: slot, rank: rank})
}

// add keeps a fact, if it is the one of the lowest rank, and returns it in its
// place or nil.
func (f *Facts) add(fact *Fact) *Fact {
	var have *Fact
	if fact.slot != 0 {
		have = f.At(fact.slot)
	} else {
		have = f.Find(fact.Key)
	}
	if have != nil {
		if fact.rank >= have.rank {
			return nil
		}
		*have = *fact
		return have
	}
	f.list = append(f.list, *fact)
	f.lengths |= lengthBit(fact.Key)
	if fact.slot != 0 {
		f.at[fact.slot] = uint8(len(f.list))
	}
	return &f.list[len(f.list)-1]
}
