// Package redact withholds secrets in trees of values, and notes where; and, if the user
// asks for it, what a program worked on in attributes. Its rules are those of
// internal/content.
package redact

import (
	"strconv"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/internal/content"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/attr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

// Redactor withholds secrets and notes where. The zero value is ready to use.
// It is not safe for concurrent use.
type Redactor struct {
	// Paths lists, in the order found, where something was withheld.
	Paths []Path
}

// Path is where a value was withheld.
type Path struct {
	// Where is the dotted path in the tree, with indices in brackets, to the
	// member at which it is longer than maxPath.
	Where string
	// Rule is the name of the rule.
	Rule string
}

// maxPath is the length in bytes from which a path gets no longer. Each of many
// values below a long key has a path.
const maxPath = 512

// below returns the path of a member or an element of what is at where.
func below(where, step string) string {
	if len(where) >= maxPath {
		return where
	}
	return where + attr.Cut(step, maxPath)
}

// Text returns s with what looks like a secret replaced by <REDACTED:rule>.
func Text(s string) string {
	var r Redactor
	return r.Text("", s)
}

// Text is the function Text, and notes where it withheld something.
func (r *Redactor) Text(where, s string) string {
	s, rules := content.Redact(s)
	for _, rule := range rules {
		r.withhold(where, rule)
	}
	return s
}

// withhold notes where a value is withheld, and returns what stands for it.
func (r *Redactor) withhold(where, rule string) (mark string) {
	r.Paths = append(r.Paths, Path{Where: where, Rule: rule})
	return content.Mark(rule)
}

// Tree returns a copy of v without secrets. Members are judged by their key
// and by their value, keys by their form, and an element after a flag such as
// "--api-key" by the flag.
func (r *Redactor) Tree(where string, v any) any {
	switch v := v.(type) {
	case string:
		return r.Text(where, v)
	case jsontree.Array:
		return r.array(where, v)
	case jsontree.Object:
		return r.object(where, v)
	default:
		return v
	}
}

func (r *Redactor) array(where string, a jsontree.Array) any {
	out, paired := make(jsontree.Array, len(a)), ""
	if len(a) == 2 {
		paired, _ = a[0].(string)
	}
	for i, v := range a {
		at := below(where, "["+strconv.Itoa(i)+"]")
		switch {
		case i > 0 && isArgument(a[i-1], v):
			out[i] = r.withhold(at, "argument")
		// A pair list is a dictionary in other clothes: ["password", "x"].
		case i == 1 && content.IsSecretKey(paired) && withheld(v, paired):
			out[i] = r.withhold(at, "key")
		default:
			out[i] = r.Tree(at, v)
		}
	}
	return out
}

func (r *Redactor) object(where string, o jsontree.Object) any {
	out := make(jsontree.Object, len(o))
	named := nameOf(o)
	for i, m := range o {
		key := r.Text(where, m.Key)
		at := key
		if where != "" {
			at = below(where, "."+key)
		}
		isValue := named != "" && strings.EqualFold(m.Key, "value")
		if content.IsSecretKey(m.Key) && withheld(m.Value, m.Key) || isValue && withheld(m.Value, named) {
			out[i] = jsontree.Member{Key: key, Value: r.withhold(at, "key")}
			continue
		}
		out[i] = jsontree.Member{Key: key, Value: r.Tree(at, m.Value)}
	}
	return out
}

// nameOf returns the name of a secret that an object gives a value to:
// {"name": "password", "value": "x"} is a member in other clothes.
func nameOf(o jsontree.Object) string {
	for _, m := range o {
		isName := strings.EqualFold(m.Key, "name") || strings.EqualFold(m.Key, "key")
		if name, _ := m.Value.(string); isName && content.IsSecretKey(name) {
			return name
		}
	}
	return ""
}

// isArgument reports whether v is the value of a secret's flag before it.
func isArgument(flag, v any) bool {
	name, ok := flag.(string)
	return ok && strings.HasPrefix(name, "-") && content.IsSecretKey(name) && withheld(v, name)
}

// withheld reports whether the value under a secret's key can be one.
func withheld(v any, key string) bool {
	switch v := v.(type) {
	case nil, bool:
		return false
	case string:
		return content.IsSecret(key, v)
	case jsontree.Number:
		return content.IsSecret(key, string(v))
	}
	return true
}
