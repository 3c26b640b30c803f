package vocabulary

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// enriched reads a span that ml_enrich has read into f: its canonical
// attributes, and the durations that ml_enrich reads and
// does not write. known is as for Span. The result is that of Span, at a lower
// cost.
func (r *Reader) enriched(known System, span ptrace.Span, f *Facts) {
	f.begin()
	attrs, name := span.Attributes(), span.Name()
	dynamic := 0
	for key, value := range attrs.All() {
		entry := r.keys.Find(key)
		if entry == nil {
			if strings.HasPrefix(key, ownPrefix) && dynamic < maxDynamic && addOwnPrefixed(key, value, f) {
				dynamic++
			}
			continue
		}
		if entry.own != 0 {
			f.readOwn("", entry.slot, entry.own, value)
		}
		f.Systems |= entry.evidence
		for _, i := range entry.special {
			found := &entry.rules[i]
			if !hasPrefixIn(name, found.spans) {
				continue
			}
			if found.evidence {
				f.Systems |= found.system
			}
			if unwritten(found.canonical) {
				f.pending = append(f.pending, candidate{rule: found, value: value})
			}
		}
	}
	f.Systems |= known
	if matched, _ := r.name(name, span.ParentSpanID().IsEmpty(), attrs, f.Systems); matched != nil {
		f.Systems |= matched.system
		f.name = matched
	}
	r.settle(f)
	disown(f)
}

// ownPrefix begins every canonical prefix.
const ownPrefix = "ml."

// addOwnPrefixed reads a key that begins with a canonical prefix and reports
// whether it did.
func addOwnPrefixed(key string, value pcommon.Value, f *Facts) bool {
	tail, ok := strings.CutPrefix(key, mlattr.LossTaskPrefix)
	if !ok {
		tail, ok = strings.CutPrefix(key, mlattr.ValPrefix)
	}
	if !ok || len(tail) > maxTail || !mlattr.ValidID(tail) {
		return false
	}
	f.readOwn(key, 0, table.KindDouble, value)
	return true
}

// unwritten reports whether an attribute is a duration that ml_enrich reads and
// does not write.
func unwritten(canonical string) bool {
	switch canonical {
	case mlattr.Latency, mlattr.PrefillTime, mlattr.DecodeTime:
		return true
	default:
		return false
	}
}

// forEnriched sets special and evidence.
func (k *keyRules) forEnriched() {
	for i := range k.rules {
		found := &k.rules[i]
		switch {
		case found.where&onSpan == 0:
		case unwritten(found.canonical) || found.evidence && found.spans != nil:
			k.special = append(k.special, i)
		case found.evidence:
			k.evidence |= found.system
		}
	}
}
