package mlattr

import (
	"math"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// maxDynamic is how many attributes of one item may come from prefix rules,
// whose number the client decides.
const maxDynamic = 32

// maxTail is the longest rest of a key that a prefix rule accepts, in bytes.
const maxTail = 64

// collect is the one pass over the attributes. Canonical ones and those of
// clients that are recognised become facts at once; the others wait in f.pending
// until it is known whose they are.
func (r *Reader) collect(attrs pcommon.Map, place where, name string, f *Facts) {
	dynamic := 0
	for key, value := range attrs.All() {
		entry := r.keys.find(key)
		if entry == nil {
			if place == onSpan && key != "" && r.begins[key[0]] && dynamic < maxDynamic && r.collectPrefixed(key, value, f) {
				dynamic++
			}
			continue
		}
		if entry.own != 0 {
			f.readOwn(slotNames[entry.slot], entry.slot, entry.own, value)
		}
		for i := range entry.rules {
			found := &entry.rules[i]
			if found.where&place == 0 || !hasPrefixIn(name, found.spans) {
				continue
			}
			if found.evidence {
				f.Systems |= found.system
			}
			f.consider(found, value, "")
		}
		if entry.fields != nil && place == onSpan {
			collectFields(value, entry.fields, f)
		}
	}
}

// collectPrefixed looks a key up among the prefix rules.
func (r *Reader) collectPrefixed(key string, value pcommon.Value, f *Facts) bool {
	for i := range r.prefixes {
		p := &r.prefixes[i]
		tail, ok := strings.CutPrefix(key, p.prefix)
		if !ok {
			continue
		}
		if len(tail) > maxTail || !ValidID(tail) {
			f.Rejected++
			return false
		}
		if p.rule.rank == rankOwn {
			f.readOwn(key, 0, KindDouble, value)
			return true
		}
		f.consider(&p.rule, value, tail)
		return true
	}
	return false
}

func hasPrefixIn(name string, prefixes []string) bool {
	if len(prefixes) == 0 {
		return true
	}
	for _, prefix := range prefixes {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// consider makes a fact of an attribute that a rule matched, or lets it wait
// until the rule's client is recognised.
func (f *Facts) consider(of *rule, value pcommon.Value, tail string) {
	if of.system == 0 || of.system&f.Systems != 0 {
		f.take(of, value, tail)
		return
	}
	f.pending = append(f.pending, candidate{rule: of, value: value, tail: tail})
}

// settle turns the pending candidates of the recognised clients into facts.
func (r *Reader) settle(f *Facts) {
	if len(f.pending) == 0 {
		return
	}
	for i := range f.pending {
		c := &f.pending[i]
		if c.rule.system == 0 || c.rule.system&f.Systems != 0 {
			f.take(c.rule, c.value, c.tail)
		}
	}
	clear(f.pending)
	f.pending = f.pending[:0]
}

// take makes a fact of an attribute that a rule matched. Tail is what comes
// after the prefix of a prefix rule.
func (f *Facts) take(of *rule, value pcommon.Value, tail string) {
	fact := Fact{Key: of.canonical, slot: of.slot, rank: of.rank}
	if of.reads != nil {
		if fact.Text = translate(of, value); fact.Text != "" {
			fact.Kind = of.kind
			fact.ReadOnly = of.readOnly
			f.add(&fact)
		}
		return
	}
	ok := read(&fact, of.kind, value)
	if fact.Unreadable && of.slot == slotQueueTime {
		// A wait that ended before it began, by two clocks, was short.
		fact.Double, fact.Unreadable, ok = 0, false, true
	}
	if !ok && !fact.NonFinite {
		if !saysNone(&fact, value) {
			f.Rejected++
		}
		if !fact.Unreadable {
			return
		}
	}
	if tail != "" {
		fact.Key = f.dynamicKey(fact.Key, tail)
		fact.slot = SlotOf(fact.Key)
	}
	if of.factor != 0 && !saysUnit(value) {
		fact.Double *= of.factor
	}
	if of.inverse && !invert(&fact) {
		return
	}
	fact.ReadOnly = of.readOnly
	f.add(&fact)
}

// invert makes of the time that each of something took how many there are in a
// second. It returns false where that is no number.
func invert(fact *Fact) bool {
	fact.Kind, fact.Double = KindDouble, 1/fact.Double
	return fact.usable() && fact.Double > 0 && !math.IsInf(fact.Double, 0)
}

// translate returns what the client's text stands for, or "".
func translate(of *rule, value pcommon.Value) string {
	if value.Type() != pcommon.ValueTypeStr {
		return ""
	}
	text := of.reads(value.Str())
	if of.kind == KindID && !ValidID(text) || !utf8.ValidString(text) {
		return ""
	}
	return cut(text, MaxText)
}

// saysNone says whether a value without a fact is an answer and no bad value:
// a launcher's word for "no id", and the name of a device that is not one of
// several.
func saysNone(fact *Fact, value pcommon.Value) bool {
	switch fact.Kind {
	case KindJobID:
		return Sentinel(fact.Text)
	case KindDevice:
		return value.Type() == pcommon.ValueTypeStr && deviceKind(value.Str())
	default:
		return false
	}
}

// readOwn reads an attribute that has its canonical name already.
func (f *Facts) readOwn(key string, slot Slot, kind Kind, value pcommon.Value) {
	fact := Fact{Key: key, slot: slot, Own: true, rank: rankOwn}
	if !read(&fact, kind, value) && !fact.NonFinite {
		fact.Unreadable = true
	}
	f.add(&fact)
}

// read fills the fact's value and says whether there is one.
func read(fact *Fact, kind Kind, value pcommon.Value) (ok bool) {
	fact.Kind = kind
	switch kind {
	case KindText, KindSecret:
		fact.Text, ok = ReadText(value)
	case KindID:
		fact.Text, ok = ReadID(value)
	case KindJobID:
		fact.Text, ok = ReadID(value)
		ok = ok && !Sentinel(fact.Text)
	case KindInt:
		fact.Int, ok = ReadInt(value)
	case KindCount:
		fact.Int, ok = ReadInt(value)
		ok = ok && fact.Int >= 0
	case KindDevice:
		fact.Int, ok = ReadDevice(value)
	case KindDouble:
		fact.Double, ok, fact.NonFinite = ReadDouble(value)
	case KindSeconds:
		fact.Double, ok, fact.NonFinite = ReadSeconds(value)
		if ok && fact.Double < 0 {
			ok, fact.Unreadable = false, true
		}
	case KindInstant:
		fact.Int, ok = ReadInstant(value)
	case KindBool:
		if ok = value.Type() == pcommon.ValueTypeBool; ok {
			fact.Bool = value.Bool()
		}
	}
	return ok
}
