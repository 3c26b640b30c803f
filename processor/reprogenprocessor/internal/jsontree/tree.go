// Package jsontree holds JSON as it was written: members in their order,
// numbers with their digits, duplicates noticed. encoding/json's maps and
// floats lose all three, and a reproduction needs them.
package jsontree

import (
	"slices"
	"strconv"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// A value of a tree is nil, a bool, a Number, a string, an Array or an Object.
type (
	// Number is a JSON number with the digits that it was written with.
	Number string
	// Array is a JSON array.
	Array []any
	// Object is a JSON object, its members in the order of the text.
	Object []Member
	// Member is one member of an Object.
	Member struct {
		Key   string
		Value any
	}
)

// Of returns an object of alternating keys, which are strings, and values.
func Of(pairs ...any) Object {
	o := make(Object, 0, len(pairs)/2)
	for pair := range slices.Chunk(pairs, 2) {
		o = append(o, Member{Key: pair[0].(string), Value: pair[1]})
	}
	return o
}

// OfKnown returns an object like Of, without the members of which nothing is known:
// those that are nil or empty.
func OfKnown(pairs ...any) Object {
	return slices.DeleteFunc(Of(pairs...), func(m Member) bool {
		switch v := m.Value.(type) {
		case string:
			return v == ""
		case Array:
			return len(v) == 0
		case Object:
			return len(v) == 0
		}
		return m.Value == nil
	})
}

// MarshalJSON writes the object as Encode does.
func (o Object) MarshalJSON() ([]byte, error) { return Encode(o), nil }

// Lookup returns the value of the member with exactly this key.
func (o Object) Lookup(key string) (any, bool) {
	if m := o.find(key); m != nil {
		return m.Value, true
	}
	return nil, false
}

// Set replaces the value of the member with this key, if there is one.
func (o Object) Set(key string, v any) {
	if m := o.find(key); m != nil {
		m.Value = v
	}
}

func (o Object) find(key string) *Member {
	return mlattr.Find(o, func(m *Member) bool { return m.Key == key })
}

// Without returns a copy without the members with these keys.
func (o Object) Without(keys ...string) Object {
	return slices.DeleteFunc(slices.Clone(o), func(m Member) bool { return slices.Contains(keys, m.Key) })
}

// Text returns the member's value if it is a string, and "" otherwise.
func (o Object) Text(key string) string { return member[string](o, key) }

// Object returns the member's value if it is an object, and nil otherwise.
func (o Object) Object(key string) Object { return member[Object](o, key) }

// Array returns the member's value if it is an array, and nil otherwise.
func (o Object) Array(key string) Array { return member[Array](o, key) }

func member[T any](o Object, key string) T {
	v, _ := o.Lookup(key)
	value, _ := v.(T)
	return value
}

// Texts returns an array of texts.
func Texts(texts []string) Array {
	return mlattr.Mapped(texts, func(text string) any { return text })
}

// Int returns i as a Number.
func Int(i int64) Number { return Number(strconv.FormatInt(i, 10)) }

// Float returns f as a Number, or as the tagged object that stands for a
// value that JSON has no number for.
func Float(f float64) any {
	text := strconv.FormatFloat(f, 'g', -1, 64)
	if name, ok := specials[text]; ok {
		return special(name)
	}
	return Number(text)
}

func special(name string) Object {
	return Of("__type__", "special_float", "__schema__", Number("1"), "value", name)
}
