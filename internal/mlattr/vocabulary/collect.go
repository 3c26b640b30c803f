package vocabulary

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// maxDynamic bounds the attributes of one item that come from prefix rules,
// since the client decides on their number.
const maxDynamic = 32

// maxTail is the longest end of a key after the prefix of a prefix rule, in
// bytes.
const maxTail = 64

// maxOffset is above every Alias.Offset.
const maxOffset = 1 << 8

// collect reads the attributes in one pass. Canonical ones and those of
// recognised clients become facts. The others wait in f.pending until all
// clients are recognised.
func (r *Reader) collect(attrs pcommon.Map, item where, name string, f *Facts) {
	dynamic := 0
	for key, value := range attrs.All() {
		entry := r.keys.Find(key)
		if entry == nil {
			if item&onSpan == 0 || key == "" {
				continue
			}
			if r.begins[key[0]] && dynamic < maxDynamic && r.collectPrefixed(key, value, f) {
				dynamic++
			} else if item == onSpan {
				collectGeneral(key, value, f)
			}
			continue
		}
		if entry.own != 0 {
			f.readOwn("", entry.slot, entry.own, value)
		}
		for i := range entry.rules {
			found := &entry.rules[i]
			if found.where&item == 0 || !hasPrefixIn(name, found.spans) {
				continue
			}
			if found.evidence {
				f.Systems |= found.system
			}
			found.consider(f, value, "")
		}
		if entry.fields != nil && item&onSpan != 0 {
			collectFields(value, entry.fields, f)
		}
	}
}

// collectPrefixed reads a key by the prefix rules. It reports whether one
// matched.
func (r *Reader) collectPrefixed(key string, value pcommon.Value, f *Facts) bool {
	for i := range r.prefixes {
		p := &r.prefixes[i]
		tail, ok := strings.CutPrefix(key, p.prefix)
		if !ok {
			continue
		}
		if len(tail) > maxTail || !mlattr.ValidID(tail) {
			f.Rejected++
			return false
		}
		if p.rule.rank == rankOwn {
			f.readOwn(key, 0, table.KindDouble, value)
			return true
		}
		p.rule.consider(f, value, tail)
		return true
	}
	return false
}

func hasPrefixIn(name string, prefixes []string) bool {
	return len(prefixes) == 0 || slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// consider makes a fact of an attribute that matches a rule, or adds it to
// f.pending where the rule's client is not recognised yet.
func (of *rule) consider(f *Facts, value pcommon.Value, tail string) {
	if of.system == 0 || of.system&f.Systems != 0 {
		of.take(f, value, tail)
		return
	}
	f.pending = append(f.pending, candidate{rule: of, value: value, tail: tail})
}

// settle makes facts of the pending attributes of recognised clients and drops
// the others.
func (r *Reader) settle(f *Facts) {
	if len(f.pending) == 0 {
		return
	}
	for i := range f.pending {
		c := &f.pending[i]
		if c.rule.system == 0 || c.rule.system&f.Systems != 0 {
			c.rule.take(f, c.value, c.tail)
		}
	}
	clear(f.pending)
	f.pending = f.pending[:0]
}

// take makes a fact of an attribute that matches a rule. tail is the end of the
// key after the prefix of a prefix rule.
func (of *rule) take(f *Facts, value pcommon.Value, tail string) {
	fact := Fact{Key: of.canonical, slot: of.slot, rank: of.rank}
	if of.reads != nil {
		if fact.Text = translate(of, value); fact.Text != "" {
			fact.Kind = of.kind
			fact.Bool = fact.Text == table.WordTrue
			fact.ReadOnly = of.readOnly
			f.add(&fact)
		}
		return
	}
	ok := read(&fact, of.kind, value)
	if fact.Unreadable && of.slot == SlotQueueTime {
		// A negative wait was a short one, measured by two clocks.
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
		named := f.dynamic.of(fact.Key, tail)
		fact.Key, fact.slot = named.key, named.slot
	}
	if of.factor != 0 && !mlattr.StatesUnit(value) {
		fact.Double *= of.factor
	}
	if fact.Kind == table.KindInt && fact.Int < math.MaxInt64-maxOffset {
		fact.Int += of.offset
	}
	if of.inverse && !invert(&fact) {
		return
	}
	fact.ReadOnly = of.readOnly
	f.add(&fact)
}

// invert turns the time for each unit into units a second. It returns false
// where the result is not a number.
func invert(fact *Fact) bool {
	fact.Kind, fact.Double = table.KindDouble, 1/fact.Double
	return fact.usable() && fact.Double > 0 && !math.IsInf(fact.Double, 0)
}

// translate returns the canonical value of a client's text, or "".
func translate(of *rule, value pcommon.Value) string {
	if value.Type() != pcommon.ValueTypeStr {
		return ""
	}
	text := of.reads(value.Str())
	if of.kind == table.KindID && !mlattr.ValidID(text) || !utf8.ValidString(text) {
		return ""
	}
	return mlattr.CutText(bareModel(of.slot, text), mlattr.MaxText)
}

// bareModel returns the last part of a model that is named by its path, as Google's APIs do:
// projects/p/locations/l/publishers/google/models/m, models/m. Any other text stays.
func bareModel(slot Slot, text string) string {
	if slot != SlotGenAIRequestModel && slot != SlotGenAIResponseModel {
		return text
	}
	const last = "models/"
	at := strings.LastIndex(text, last) + len(last)
	byPath := at == len(last) || strings.HasPrefix(text, "projects/") || strings.HasPrefix(text, "publishers/")
	if at >= len(last) && at < len(text) && byPath {
		return text[at:]
	}
	return text
}

// saysNone reports whether a value without a fact is a valid answer: a
// launcher's word for "no id", or a kind of device without an index.
func saysNone(fact *Fact, value pcommon.Value) bool {
	switch fact.Kind {
	case table.KindJobID:
		return mlattr.Sentinel(fact.Text)
	case table.KindDevice:
		return value.Type() == pcommon.ValueTypeStr && mlattr.IsDevice(value.Str())
	default:
		return false
	}
}

// readOwn reads an attribute that has its canonical name, which is key for one
// without a slot.
func (f *Facts) readOwn(key string, slot Slot, kind table.Kind, value pcommon.Value) {
	if slot != 0 {
		key = slotNames[slot]
	}
	fact := f.place(slot, key, rankOwn)
	if fact == nil {
		return
	}
	*fact = Fact{Key: key, slot: slot, rank: rankOwn, Own: true}
	if !read(fact, kind, value) && !fact.NonFinite {
		fact.Unreadable = true
	}
}

// read sets the fact's value and reports whether there is a usable one.
func read(fact *Fact, kind table.Kind, value pcommon.Value) (ok bool) {
	fact.Kind = kind
	switch kind {
	case table.KindText, table.KindSecret:
		fact.Text, ok = mlattr.ReadText(value)
		fact.Text = bareModel(fact.slot, fact.Text)
	case table.KindTexts:
		fact.Text, ok = readTexts(value)
	case table.KindID:
		fact.Text, ok = mlattr.ReadID(value)
	case table.KindJobID:
		fact.Text, ok = mlattr.ReadID(value)
		ok = ok && !mlattr.Sentinel(fact.Text)
	case table.KindInt:
		fact.Int, ok = mlattr.ReadInt(value)
	case table.KindCount:
		fact.Int, ok = mlattr.ReadInt(value)
		ok = ok && fact.Int >= 0
	case table.KindDevice:
		fact.Int, ok = mlattr.ReadDevice(value)
	case table.KindDouble:
		fact.Double, ok, fact.NonFinite = mlattr.ReadDouble(value)
	case table.KindSeconds:
		fact.Double, ok, fact.NonFinite = mlattr.ReadSeconds(value)
		if ok && fact.Double < 0 {
			ok, fact.Unreadable = false, true
		}
	case table.KindInstant:
		fact.Int, ok = mlattr.ReadInstant(value)
	case table.KindBool:
		if ok = value.Type() == pcommon.ValueTypeBool; ok {
			fact.Bool = value.Bool()
		}
	}
	return ok
}

// maxTexts bounds how many elements of a list of labels are read. A request has
// one finish reason for each of its answers.
const maxTexts = 16

// readTexts reads KindTexts. The list may be text, as JSON.
func readTexts(v pcommon.Value) (text string, ok bool) {
	if v.Type() != pcommon.ValueTypeSlice {
		if text, ok = mlattr.ReadText(v); ok && text[0] == '[' {
			return reasonIn(text)
		}
		return text, ok
	}
	list := v.Slice()
	for i := range min(list.Len(), maxTexts) {
		element, _ := mlattr.ReadText(list.At(i))
		if text = firstReason(text, element); mlattr.CutByLength(text) {
			break
		}
	}
	return text, text != ""
}

// reasonIn returns the element of a list in JSON that readTexts chooses. Elements with
// escaped characters are no reasons.
func reasonIn(list string) (text string, ok bool) {
	inside := false
	for element := range strings.SplitSeq(list, `"`) {
		if inside {
			text = firstReason(text, element)
		}
		inside = !inside
	}
	return text, text != ""
}

// firstReason returns the next of several reasons if it is the first, or the first that
// says that an answer was cut, and else the one before.
func firstReason(before, next string) string {
	if before == "" || mlattr.CutByLength(next) && !mlattr.CutByLength(before) {
		return next
	}
	return before
}
