package mlattr

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// maxDynamic is how many attributes of one item may come from prefix rules,
// whose number the client decides.
const maxDynamic = 32

// maxTail is the longest rest of a key that a prefix rule accepts, in bytes.
const maxTail = 64

// nestedEvidence is how many of a name's Evidence a span with a parent needs.
// A step of some other program's work may have an everyday name and one
// everyday attribute.
const nestedEvidence = 2

// Ranks order the rules of one canonical attribute; the lowest wins. Those of
// the tables lie between rankAlias and rankName.
const (
	rankOwn     = 0
	rankUser    = 1
	rankAlias   = 2
	rankName    = 1 << 20
	rankDerived = 1 << 21
)

// where is the place that a rule holds for, as a bit mask.
type where uint8

const (
	onResource where = 1 << iota
	onSpan
	onPoint
	anywhere = onResource | onSpan | onPoint
)

// rule is one compiled Alias.
type rule struct {
	canonical string // of a prefix rule the beginning; slot is zero then
	slot      Slot
	kind      Kind
	readOnly  bool
	factor    float64
	inverse   bool
	reads     func(string) string // nil where the value is the client's
	spans     []string
	system    System // zero holds for everyone
	evidence  bool   // the key alone identifies the system
	where     where
	rank      int32
}

// keyRules is everything that an attribute key can mean.
type keyRules struct {
	own   Kind // not zero: the key is canonical itself
	slot  Slot // of the key itself
	rules []rule
	// fields are what a value that is a map, or the JSON of one, has.
	fields []fieldRule
	// special are the rules that Enriched has to look at: of what is read and
	// not written, and evidence on some spans. Evidence is whose key it is on
	// any span.
	special  []int
	evidence System
}

// fieldRule is one compiled field of a MapAlias.
type fieldRule struct {
	path string
	rule rule
}

// firstToken is one compiled FirstToken.
type firstToken struct {
	FirstToken
	system System
}

type prefixRule struct {
	prefix string
	rule   rule
}

type nameRule struct {
	NameRule
	system System
	number Slot // of NameRule.Number
}

// Options selects what a Reader knows.
type Options struct {
	// Systems are the vocabularies to use. The launchers' table, the users'
	// and the canonical names are always in.
	Systems System
	// Aliases are the user's own, from a client's key to the canonical
	// attribute, for resources, spans, points and records alike. They are
	// tried before the tables.
	Aliases map[string]string
	// Metrics are the user's own metrics by name. They are tried before the
	// tables.
	Metrics map[string]MetricAlias
}

// Reader is the compiled vocabulary. It does not change once built, and any
// number of goroutines may use it.
type Reader struct {
	keys     keyTable
	prefixes []prefixRule
	// begins marks the bytes that a prefix begins with.
	begins [256]bool
	tables []Table

	exact    map[string][]nameRule
	affixes  []nameRule // Prefix and Suffix, in table order
	numbered []nameRule
	filter   nameFilter

	events      eventTable
	firstTokens []firstToken
	// streams are the clients that firstTokens has events of.
	streams System

	metrics map[string][]metricRule
}

// NewReader compiles the vocabularies. It fails on an alias whose canonical
// attribute is none of Aliasable.
func NewReader(options Options) (*Reader, error) {
	r := &Reader{exact: make(map[string][]nameRule)}
	for name, kind := range kinds {
		if !onlyRead(name) {
			entry := r.keys.ensure(name)
			entry.own, entry.slot = kind, SlotOf(name)
		}
	}
	for _, prefix := range []string{LossTaskPrefix, ValPrefix} {
		r.prefixes = append(r.prefixes, prefixRule{prefix: prefix,
			rule: rule{kind: KindDouble, where: onSpan, rank: rankOwn}})
	}
	for source, canonical := range options.Aliases {
		if source == "" {
			return nil, fmt.Errorf("the key for %q is empty", canonical)
		}
		if !slices.Contains(Aliasable(), canonical) {
			return nil, fmt.Errorf("%q is no canonical attribute", canonical)
		}
		kind := kinds[canonical]
		if canonical == User {
			kind = KindSecret
		}
		slot := SlotOf(canonical)
		compiled := rule{canonical: slotNames[slot], slot: slot, kind: kind,
			readOnly: readOnly(canonical, kind), where: anywhere, rank: rankUser}
		if kind == KindSeconds {
			compiled.factor = units[DimensionTime][unitOfName(source)]
		}
		r.add(source, compiled)
	}
	rank := int32(rankAlias)
	for _, table := range Tables() {
		if table.System != 0 && table.System&options.Systems == 0 {
			continue
		}
		r.tables = append(r.tables, table)
		for _, part := range []struct {
			aliases []Alias
			where   where
		}{{table.Resource, onResource}, {table.Span, onSpan}, {table.Point, onPoint}} {
			for _, alias := range part.aliases {
				r.add(alias.Source, compile(table, alias, part.where, rank))
				rank++
			}
		}
		for _, alias := range table.SpanPrefixes {
			r.prefixes = append(r.prefixes, prefixRule{prefix: alias.Prefix, rule: rule{
				canonical: alias.Canonical, kind: KindDouble, system: table.System, where: onSpan, rank: rank}})
			rank++
		}
		for _, alias := range table.SpanMaps {
			entry := r.keys.ensure(alias.Source)
			for _, field := range alias.Fields {
				compiled := compile(table, field, onSpan, rank)
				compiled.evidence = true
				entry.fields = append(entry.fields, fieldRule{path: field.Source, rule: compiled})
				rank++
			}
		}
		for _, event := range table.Events {
			r.events.add(event)
		}
		for _, event := range table.FirstTokens {
			r.firstTokens = append(r.firstTokens, firstToken{event, table.System})
			r.streams |= table.System
		}
		for _, name := range table.Names {
			compiled := nameRule{NameRule: name, system: table.System, number: SlotOf(name.Number)}
			r.filter.add(name.Match, name.Text)
			switch name.Match {
			case Exact:
				r.exact[name.Text] = append(r.exact[name.Text], compiled)
			case Numbered:
				r.numbered = append(r.numbered, compiled)
			default:
				r.affixes = append(r.affixes, compiled)
			}
		}
	}
	for _, p := range r.prefixes {
		r.begins[p.prefix[0]] = true
	}
	for i := range r.keys.entries {
		r.keys.entries[i].forEnriched()
	}
	if err := r.compileMetrics(options.Metrics); err != nil {
		return nil, err
	}
	return r, nil
}

func compile(table Table, alias Alias, place where, rank int32) rule {
	compiled := rule{
		canonical: alias.Canonical, slot: SlotOf(alias.Canonical), kind: alias.Kind, factor: alias.Factor, inverse: alias.Inverse,
		reads: alias.Reads, spans: alias.SpanPrefixes, system: table.System, where: place, rank: rank,
	}
	if compiled.kind == 0 {
		compiled.kind = kinds[alias.Canonical]
	}
	if alias.Words != nil {
		compiled.reads = func(text string) string {
			if alias.Reads != nil {
				text = alias.Reads(text)
			}
			return alias.Words[text]
		}
	}
	compiled.readOnly = readOnly(alias.Canonical, compiled.kind)
	for _, prefix := range table.KeyPrefixes {
		if strings.HasPrefix(alias.Source, prefix) {
			compiled.evidence = true
		}
	}
	return compiled
}

func (r *Reader) add(source string, compiled rule) {
	entry := r.keys.ensure(source)
	entry.rules = append(entry.rules, compiled)
}

// Resource reads a resource's attributes into f.
func (r *Reader) Resource(attrs pcommon.Map, f *Facts) {
	f.begin()
	r.collect(attrs, onResource, "", f)
	f.Systems |= r.recognise(attrs)
	r.settle(f)
}

// recognise finds the clients that a resource alone gives away.
func (r *Reader) recognise(attrs pcommon.Map) System {
	var found System
	// Erlang's resource may say service_name, with an unknown_service beside.
	services := [...]string{stringAttr(attrs, ServiceName), stringAttr(attrs, "service_name")}
	for i := range r.tables {
		t := &r.tables[i]
		for _, known := range t.Services {
			beginning, open := strings.CutSuffix(known, "*")
			for _, service := range services {
				if service == known || open && strings.HasPrefix(service, beginning) {
					found |= t.System
				}
			}
		}
		if len(t.Signature) > 0 && hasAll(attrs, t.Signature) {
			found |= t.System
		}
	}
	return found
}

func stringAttr(attrs pcommon.Map, key string) string {
	v, ok := attrs.Get(key)
	if !ok || v.Type() != pcommon.ValueTypeStr {
		return ""
	}
	return v.Str()
}

func hasAll(attrs pcommon.Map, keys []string) bool {
	for _, key := range keys {
		if _, ok := attrs.Get(key); !ok {
			return false
		}
	}
	return true
}

// Scope returns the clients that an instrumentation scope's name gives away.
func (r *Reader) Scope(name string) System {
	if name == "" {
		return 0
	}
	var found System
	for i := range r.tables {
		for _, prefix := range r.tables[i].Scopes {
			if strings.HasPrefix(name, prefix) {
				found |= r.tables[i].System
			}
		}
	}
	return found
}

// Metric returns the clients that a metric's name gives away.
func (r *Reader) Metric(name string) System {
	var found System
	for i := range r.tables {
		for _, prefix := range r.tables[i].MetricPrefixes {
			if strings.HasPrefix(name, prefix) {
				found |= r.tables[i].System
			}
		}
	}
	return found
}

// Span reads a span into f. Known is what the span's resource and scope gave
// away. A rule of a client's applies only where the client is recognised: by
// those, by a key in the client's own name space, or by the span's name.
func (r *Reader) Span(known System, span ptrace.Span, f *Facts) {
	f.begin()
	f.Systems = known
	attrs, name := span.Attributes(), span.Name()
	r.collect(attrs, onSpan, name, f)
	matched, number := r.name(name, span.ParentSpanID().IsEmpty(), attrs, f.Systems)
	if matched != nil {
		f.Systems |= matched.system
		f.name = matched
	}
	r.settle(f)
	r.timeFirstToken(span, f)
	completeInput(f)
	if matched == nil {
		disown(f)
		return
	}
	f.setName(slotPhase, matched.Phase)
	f.setName(slotOperation, matched.Operation)
	f.setName(slotRole, matched.Role)
	if matched.number != 0 {
		f.setInt(matched.number, number)
	}
	if f.At(slotLoss) != nil {
		f.setName(slotLossScope, matched.LossScope)
	}
	disown(f)
}

// disown takes the text from a phase that the span inherited: it is an
// ancestor's, and who counted it would count the ancestor twice.
func disown(f *Facts) {
	source := f.At(slotSource)
	if source == nil || !strings.Contains(source.text(), InheritedPhase) {
		return
	}
	if phase := f.At(slotPhase); phase != nil && phase.Own {
		phase.Text, phase.Inherited = "", true
	}
}

// Point reads a metric point's attributes into f.
func (r *Reader) Point(known System, attrs pcommon.Map, f *Facts) {
	f.begin()
	f.Systems = known
	r.collect(attrs, onPoint, "", f)
	r.settle(f)
}

// Record reads a log record's attributes into f, by the rules for spans.
func (r *Reader) Record(known System, attrs pcommon.Map, f *Facts) {
	f.begin()
	f.Systems = known
	r.collect(attrs, onSpan, "", f)
	r.settle(f)
}

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

// name finds the rule for a span's name among the clients recognised so far,
// and those that the name itself identifies. Exact names are tried first.
func (r *Reader) name(name string, root bool, attrs pcommon.Map, known System) (*nameRule, int64) {
	if !r.filter.passes(name) {
		return nil, 0
	}
	exact := r.exact[name]
	for i := range exact {
		if exact[i].holds(root, attrs, known) {
			return &exact[i], 0
		}
	}
	for i := range r.affixes {
		rule := &r.affixes[i]
		if rule.system&known == 0 && !rule.Identifies {
			continue
		}
		if rule.Match == Prefix && strings.HasPrefix(name, rule.Text) ||
			rule.Match == Suffix && len(name) > len(rule.Text) && strings.HasSuffix(name, rule.Text) {
			return rule, 0
		}
	}
	for i := range r.numbered {
		rule := &r.numbered[i]
		tail, ok := strings.CutPrefix(name, rule.Text)
		if !ok {
			continue
		}
		if n, ok := digits(tail); ok && rule.holds(root, attrs, known) {
			return rule, n
		}
	}
	return nil, 0
}

// holds says whether a rule whose name fits applies to a span.
func (n *nameRule) holds(root bool, attrs pcommon.Map, known System) bool {
	if n.Identifies || n.system&known != 0 {
		return true
	}
	if len(n.Evidence) == 0 {
		return false
	}
	wanted := 1
	if !root {
		wanted = nestedEvidence
	}
	var seen uint32 // a bit for each Evidence
	for key := range attrs.All() {
		for i, evidence := range n.Evidence {
			last := evidence[len(evidence)-1]
			if key == evidence || (last == '.' || last == '_') && strings.HasPrefix(key, evidence) {
				seen |= 1 << i
			}
		}
		if bits.OnesCount32(seen) >= wanted {
			return true
		}
	}
	return false
}
