package redact

import (
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

// Redactor withholds secrets and notes where. The zero value is ready to use.
// It is not safe for concurrent use.
type Redactor struct {
	// Paths lists, in the order found, where something was withheld.
	Paths []Path
}

// Path is one place where something was withheld.
type Path struct {
	// Where is the dotted path in the tree, with indices in brackets.
	Where string
	// Rule is the name of the rule.
	Rule string
}

// Text returns s with what looks like a secret replaced by <REDACTED:rule>.
func Text(s string) string {
	var r Redactor
	return r.Text("", s)
}

// Text works like the function Text and notes the place.
func (r *Redactor) Text(where, s string) string {
	s = r.plain(where, s)
	decoded := withoutEncoded(s)
	if decoded != s {
		r.note(where, encodedRule)
	}
	return decoded
}

// plain withholds what can be read as it stands.
func (r *Redactor) plain(where, s string) string {
	lower := strings.ToLower(s)
	for _, rule := range valueRules {
		if !slices.ContainsFunc(rule.hints, func(h string) bool { return strings.Contains(lower, h) }) {
			continue
		}
		replaced := replaceAll(rule, s)
		if replaced == s {
			continue
		}
		s = replaced
		r.note(where, rule.name)
	}
	return s
}

func replaceAll(rule valueRule, s string) string {
	replacement := mark(rule.name)
	if rule.pattern.NumSubexp() > 0 {
		replacement = "${1}" + replacement
	}
	if rule.name == "url_password" {
		replacement += "@"
	}
	return rule.pattern.ReplaceAllString(s, replacement)
}

func mark(rule string) string { return "<REDACTED:" + rule + ">" }

func (r *Redactor) note(where, rule string) {
	r.Paths = append(r.Paths, Path{Where: where, Rule: rule})
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
	out := make(jsontree.Array, len(a))
	for i, v := range a {
		at := where + "[" + strconv.Itoa(i) + "]"
		if i > 0 && secretFlag(a[i-1]) && withheld(v, "") {
			r.note(at, "argument")
			out[i] = mark("argument")
			continue
		}
		// A pair list is a dictionary in other clothes: ["password", "x"].
		if key, ok := pairKey(a); i == 1 && ok && SecretKey(key) && withheld(v, key) {
			r.note(at, "key")
			out[i] = mark("key")
			continue
		}
		out[i] = r.Tree(at, v)
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
			at = where + "." + key
		}
		isValue := named != "" && strings.EqualFold(m.Key, "value")
		if SecretKey(m.Key) && withheld(m.Value, m.Key) || isValue && withheld(m.Value, named) {
			r.note(at, "key")
			out[i] = jsontree.Member{Key: key, Value: mark("key")}
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
		if strings.EqualFold(m.Key, "name") || strings.EqualFold(m.Key, "key") {
			if name, ok := m.Value.(string); ok && SecretKey(name) {
				return name
			}
		}
	}
	return ""
}

func pairKey(a jsontree.Array) (string, bool) {
	if len(a) != 2 {
		return "", false
	}
	key, ok := a[0].(string)
	return key, ok
}

func secretFlag(v any) bool {
	s, ok := v.(string)
	return ok && strings.HasPrefix(s, "-") && SecretKey(s)
}

// withheld reports whether the value under a secret's key can be one: nothing
// and a switch are not, and a number called a token is a count or an index.
func withheld(v any, key string) bool {
	switch v := v.(type) {
	case nil, bool:
		return false
	case string:
		return v != ""
	case jsontree.Number:
		return !strings.HasSuffix(strings.ToLower(key), "token")
	}
	return true
}
