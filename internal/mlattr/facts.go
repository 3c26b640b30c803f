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
	// Kind says which of the values holds: Text for KindText, KindID,
	// KindJobID and KindSecret, Int for KindInt, KindCount and KindDevice,
	// Double for KindDouble, Bool for KindBool.
	Kind   Kind
	Text   string
	Int    int64
	Double float64
	Bool   bool

	// Own is true where the canonical attribute itself was received. It
	// stands as it is and must not be written again.
	Own bool
	// ReadOnly is true where the value must not be written: a secret, or a
	// number that only serves to derive others.
	ReadOnly bool
	// NonFinite is true where the value was NaN or an infinity. There is no
	// usable value then.
	NonFinite bool
	// Unreadable is true where Own holds, but the value is of a kind or
	// size that the attribute cannot have. There is no usable value then.
	Unreadable bool
	// Inherited is true for a phase that ml_enrich put on the span because
	// an ancestor has it. Text is empty then.
	Inherited bool

	// rank is the place of the rule that gave the fact; the lowest wins.
	rank int
}

// usable says whether the fact has a value.
func (f *Fact) usable() bool { return !f.NonFinite && !f.Unreadable }

// Put writes the fact into attributes under its canonical name. It does
// nothing for facts that are there already or must not be written.
func (f *Fact) Put(attrs pcommon.Map) {
	if f.Own || f.ReadOnly || !f.usable() {
		return
	}
	switch f.Kind {
	case KindInt, KindCount, KindDevice:
		attrs.PutInt(f.Key, f.Int)
	case KindDouble:
		attrs.PutDouble(f.Key, f.Double)
	case KindBool:
		attrs.PutBool(f.Key, f.Bool)
	case KindText, KindID, KindJobID:
		attrs.PutStr(f.Key, f.Text)
	}
}

// Facts is what one resource, span, point or log record says in canonical
// terms. It is reused from item to item: its contents hold until the next
// reading into it.
type Facts struct {
	// Systems is every client that the item was recognised as. For a span,
	// point or record it includes those of its resource.
	Systems System
	// Rejected counts values that a rule matched but could not read: an id
	// with white space, a number that is none.
	Rejected int

	list    []Fact
	pending []candidate
}

// candidate is an attribute that some rules matched, until it is known which
// client sent it.
type candidate struct {
	rule  *rule
	value pcommon.Value
	tail  string
}

// Reset empties the facts and keeps their memory. It drops every reference
// to what was read.
func (f *Facts) Reset() {
	f.Systems, f.Rejected = 0, 0
	clear(f.list)
	clear(f.pending)
	f.list = f.list[:0]
	f.pending = f.pending[:0]
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
	for i := range f.list {
		if f.list[i].Key == key {
			return &f.list[i]
		}
	}
	return nil
}

// Text returns the text of a fact, and "" where there is none.
func (f *Facts) Text(key string) string {
	fact := f.Find(key)
	if fact == nil || !fact.usable() {
		return ""
	}
	return fact.Text
}

// Int returns the whole number of a fact.
func (f *Facts) Int(key string) (int64, bool) {
	fact := f.Find(key)
	if fact == nil || !fact.usable() {
		return 0, false
	}
	switch fact.Kind {
	case KindInt, KindCount, KindDevice:
		return fact.Int, true
	}
	return 0, false
}

// Double returns the number of a fact, whole ones included.
func (f *Facts) Double(key string) (float64, bool) {
	fact := f.Find(key)
	if fact == nil || !fact.usable() {
		return 0, false
	}
	switch fact.Kind {
	case KindDouble:
		return fact.Double, true
	case KindInt, KindCount, KindDevice:
		return float64(fact.Int), true
	}
	return 0, false
}

// SetText adds a fact that a rule of the caller's derived, unless there is
// one of that key.
func (f *Facts) SetText(key, text string) {
	f.add(Fact{Key: key, Kind: KindText, Text: text, rank: rankDerived})
}

// SetBool does the same for a boolean.
func (f *Facts) SetBool(key string, value bool) {
	f.add(Fact{Key: key, Kind: KindBool, Bool: value, rank: rankDerived})
}

// SetDouble does the same for a double.
func (f *Facts) SetDouble(key string, value float64) {
	f.add(Fact{Key: key, Kind: KindDouble, Double: value, rank: rankDerived})
}

// add keeps the fact of the lowest rank of each key.
func (f *Facts) add(fact Fact) {
	if have := f.Find(fact.Key); have != nil {
		if fact.rank < have.rank {
			*have = fact
		}
		return
	}
	f.list = append(f.list, fact)
}
