package redact

import (
	"strconv"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/internal/content"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

// Withheld is a part of a call whose content was withheld.
type Withheld struct {
	// Path is the dotted path, with indices in brackets: payload.args[0].
	Path string
	// Type names what was there: "str", "list of 3".
	Type string
}

// Withholder replaces the content of a call by Mark.
type Withholder struct {
	// Withheld lists what was replaced.
	Withheld []Withheld
}

// Tree returns a call's tree in which only null, booleans and known numbers are
// kept, and what was withheld.
func Tree(tree jsontree.Object) (jsontree.Object, []Withheld) {
	w := &Withholder{}
	out := make(jsontree.Object, len(tree))
	for i, m := range tree {
		out[i] = jsontree.Member{Key: m.Key, Value: w.NumberOrMark("payload."+m.Key, m.Key, m.Value)}
	}
	return out, w.Withheld
}

// Withhold notes a value at a path and returns Mark for it; null stays.
func (w *Withholder) Withhold(at string, v any) any {
	if v == nil {
		return nil
	}
	w.Withheld = append(w.Withheld, Withheld{Path: at, Type: typeOf(v)})
	return Mark
}

// numbers are the members of calls whose numbers are settings and not content.
var numbers = content.Words(`
		temperature top_p max_tokens max_completion_tokens n seed presence_penalty frequency_penalty top_logprobs
		status port epoch step rank world_size timeout schema version`)

// NumberOrMark keeps null, booleans, and the numbers of known keys, and withholds
// any other value.
func (w *Withholder) NumberOrMark(at, key string, v any) any {
	switch v.(type) {
	case nil, bool:
		return v
	case jsontree.Number:
		if numbers[key] {
			return v
		}
	}
	return w.Withhold(at, v)
}

// typeOf names a value's type as Python does, and how many it holds.
func typeOf(v any) string {
	switch v := v.(type) {
	case bool:
		return "bool"
	case string:
		return "str"
	case jsontree.Number:
		if strings.ContainsAny(string(v), ".eE") {
			return "float"
		}
		return "int"
	case jsontree.Array:
		return "list of " + strconv.Itoa(len(v))
	case jsontree.Object:
		switch kind := v.Text("__type__"); kind {
		case "":
			return "dict of " + strconv.Itoa(len(v))
		case "special_float":
			return "float"
		case "tuple", "set", "frozenset", "bytes", "complex", "datetime", "date", "time", "atom", "int", "dict", "tensor", "ndarray":
			return kind
		}
	}
	return "object"
}
