package vocabulary

import (
	"math/bits"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// nestedEvidence is how many keys of NameRule.Evidence a span with a parent
// needs. A step of another program may have an everyday name and one everyday
// attribute.
const nestedEvidence = 2

// recognise returns the clients that a resource identifies.
func (r *Reader) recognise(attrs pcommon.Map) System {
	var found System
	// Erlang's resource may have the name under service_name and an
	// unknown_service under service.name.
	services := [...]string{mlattr.FirstText(attrs, mlattr.ServiceName), mlattr.FirstText(attrs, "service_name")}
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

func hasAll(attrs pcommon.Map, keys []string) bool {
	for _, key := range keys {
		if _, ok := attrs.Get(key); !ok {
			return false
		}
	}
	return true
}

// Scope returns the clients that the name of an instrumentation scope
// identifies.
func (r *Reader) Scope(name string) System {
	if name == "" {
		return 0
	}
	return r.byPrefix(name, func(t *table.Table) []string { return t.Scopes })
}

// Metric returns the clients that the name of a metric identifies.
func (r *Reader) Metric(name string) System {
	return r.byPrefix(name, func(t *table.Table) []string { return t.MetricPrefixes })
}

// byPrefix returns the clients of which a name has one of the prefixes.
func (r *Reader) byPrefix(name string, prefixes func(*table.Table) []string) (found System) {
	for i := range r.tables {
		for _, prefix := range prefixes(&r.tables[i].Table) {
			if strings.HasPrefix(name, prefix) {
				found |= r.tables[i].System
			}
		}
	}
	return found
}

// name returns the rule for a span's name, and the number at its end where the
// rule is a Numbered one. It considers the known clients and the rules that
// identify their client. Exact names go first. It returns nil where no rule
// applies.
func (r *Reader) name(name string, root bool, attrs pcommon.Map, known System) (*nameRule, int64) {
	if exact := r.exact.Find(name); exact != nil {
		for i := range *exact {
			if rule := &(*exact)[i]; rule.holds(root, attrs, known) {
				return rule, 0
			}
		}
	}
	if !r.filter.passes(name) {
		return nil, 0
	}
	for i := range r.parts {
		rule := &r.parts[i]
		if number, ok := rule.matches(name); ok && rule.holds(root, attrs, known) {
			return rule, number
		}
	}
	return nil, 0
}

// matches reports whether a rule for a part of a name has it, and the number at its end
// where the rule is a Numbered one.
func (n *nameRule) matches(name string) (number int64, ok bool) {
	switch n.Match {
	case table.Suffix:
		return 0, len(name) > len(n.Text) && strings.HasSuffix(name, n.Text)
	case table.Numbered:
		tail, ok := strings.CutPrefix(name, n.Text)
		if !ok {
			return 0, false
		}
		return mlattr.ReadDigits(tail)
	default:
		return 0, strings.HasPrefix(name, n.Text)
	}
}

// holds reports whether a rule whose text matches the name applies to a span.
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
