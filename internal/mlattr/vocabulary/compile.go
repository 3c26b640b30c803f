package vocabulary

import (
	"cmp"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/clients"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// Ranks order the rules of one canonical attribute; the lowest wins. Those of
// the tables lie between rankAlias and rankName.
const (
	rankOwn     = 0
	rankUser    = 1
	rankAlias   = 2
	rankName    = 1 << 20
	rankDerived = 1 << 21
)

// where says what a rule applies to, as a bit mask.
type where uint8

const (
	onResource where = 1 << iota
	onSpan
	onPoint
	anywhere = onResource | onSpan | onPoint
	// onRecord is a log record, to which the rules for spans apply.
	onRecord = onSpan | 1<<3
)

// rule is one compiled Alias.
type rule struct {
	canonical string // of a prefix rule the beginning; slot is zero then
	slot      Slot
	kind      table.Kind
	readOnly  bool
	factor    float64
	offset    int64
	inverse   bool
	reads     func(string) string // nil where the value is the client's
	spans     []string
	system    System // zero holds for everyone
	evidence  bool   // the key alone identifies the system
	where     where
	rank      int32
}

// keyRules are the meanings of one attribute key.
type keyRules struct {
	own   table.Kind // not zero: the key is canonical itself
	slot  Slot       // of the key itself
	rules []rule
	// fields are the rules for the fields of a value that is a map, or the JSON
	// of one.
	fields []fieldRule
	// special are the indexes of the rules that Enriched applies: attributes
	// that ml_enrich reads and does not write, and keys that identify a client
	// on some spans. evidence are the clients that the key identifies on any
	// span.
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
	table.FirstToken
	system System
}

type prefixRule struct {
	prefix string
	rule   rule
}

type nameRule struct {
	table.NameRule
	system System
	number Slot // of NameRule.Number
}

// NewReader returns a Reader for the options, which have been checked: an alias names one
// of Aliasable, and a metric alias one of MeasureNames with a unit of that.
func NewReader(options Options) *Reader {
	r := &Reader{
		keys: mlattr.NewKeyTable[keyRules](256), exact: mlattr.NewKeyTable[[]nameRule](128), events: mlattr.NewKeyTable[table.EventKind](32),
	}
	for name, kind := range kinds {
		if !onlyRead(name) {
			entry := r.keys.Ensure(name)
			entry.own, entry.slot = kind, SlotOf(name)
		}
	}
	for _, prefix := range []string{mlattr.LossTaskPrefix, mlattr.ValPrefix} {
		r.prefixes = append(r.prefixes, prefixRule{prefix: prefix,
			rule: rule{kind: table.KindDouble, where: onSpan, rank: rankOwn}})
	}
	for source, canonical := range options.Aliases {
		kind := kinds[canonical]
		if canonical == mlattr.User {
			kind = table.KindSecret
		}
		slot := SlotOf(canonical)
		compiled := rule{canonical: slotNames[slot], slot: slot, kind: kind,
			readOnly: readOnly(canonical, kind), where: anywhere, rank: rankUser}
		if kind == table.KindSeconds {
			compiled.factor = table.UnitFactors[table.DimensionTime][unitOfName(source)]
		}
		r.add(source, compiled)
	}
	rank := int32(rankAlias)
	for _, client := range Tables() {
		if client.System != 0 && client.System&options.Systems == 0 {
			continue
		}
		r.tables = append(r.tables, client)
		for _, part := range []struct {
			aliases []table.Alias
			where   where
		}{{client.Resource, onResource}, {client.Span, onSpan}, {client.Point, onPoint}} {
			for _, alias := range part.aliases {
				r.add(alias.Source, compile(client, alias, part.where, rank))
				rank++
			}
		}
		for _, alias := range client.SpanPrefixes {
			r.prefixes = append(r.prefixes, prefixRule{prefix: alias.Prefix, rule: rule{
				canonical: alias.Canonical, kind: table.KindDouble, system: client.System, where: onSpan, rank: rank}})
			rank++
		}
		for _, alias := range client.SpanMaps {
			entry := r.keys.Ensure(alias.Source)
			for _, field := range alias.Fields {
				compiled := compile(client, field, onSpan, rank)
				compiled.evidence = true
				entry.fields = append(entry.fields, fieldRule{path: field.Source, rule: compiled})
				rank++
			}
		}
		for _, event := range client.Events {
			*r.events.Ensure(event.Name) = event.Kind
		}
		for _, event := range client.FirstTokens {
			r.firstTokens = append(r.firstTokens, firstToken{event, client.System})
			r.streams |= client.System
		}
		for _, name := range client.Names {
			compiled := nameRule{NameRule: name, system: client.System, number: SlotOf(name.Number)}
			r.filter.add(name.Match, name.Text)
			if name.Match == table.Exact {
				rules := r.exact.Ensure(name.Text)
				*rules = append(*rules, compiled)
			} else {
				r.parts = append(r.parts, compiled)
			}
		}
	}
	for _, p := range r.prefixes {
		r.begins[p.prefix[0]] = true
	}
	r.keys.Values((*keyRules).forEnriched)
	r.compileMetrics(options.Metrics)
	return r
}

func compile(client Vocabulary, alias table.Alias, item where, rank int32) rule {
	compiled := rule{
		canonical: alias.Canonical, slot: SlotOf(alias.Canonical), kind: cmp.Or(alias.Kind, kinds[alias.Canonical]), factor: alias.Factor, offset: alias.Offset, inverse: alias.Inverse,
		reads: clients.Reads[alias.Reads], spans: alias.SpanPrefixes, system: client.System, where: item, rank: rank,
	}
	if reads := compiled.reads; alias.Words != nil {
		compiled.reads = func(text string) string {
			if reads != nil {
				text = reads(text)
			}
			return alias.Words[text]
		}
	}
	compiled.readOnly = readOnly(alias.Canonical, compiled.kind)
	for _, prefix := range client.KeyPrefixes {
		if strings.HasPrefix(alias.Source, prefix) {
			compiled.evidence = true
		}
	}
	return compiled
}

func (r *Reader) add(source string, compiled rule) {
	entry := r.keys.Ensure(source)
	entry.rules = append(entry.rules, compiled)
}
