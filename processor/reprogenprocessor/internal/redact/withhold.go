package redact

import (
	"slices"
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

// Rule returns what is kept of a value, which is at a path and the member of a key.
type Rule func(w *Withholder, at, key string, v any) any

// Tree returns what a rule keeps of a call's tree, and what was withheld.
func Tree(tree jsontree.Object, keep Rule) (jsontree.Object, []Withheld) {
	var w Withholder
	out, _ := keep(&w, "payload", "", tree).(jsontree.Object)
	return out, w.Withheld
}

// All is the Rule that withholds a value.
func All(w *Withholder, at, _ string, v any) any { return w.Withhold(at, v) }

// Members returns the Rule by which each member of an object is kept by the rule of its
// key, or else by another. Without one it is left out.
func Members(rules map[string]Rule, others Rule) Rule {
	return func(w *Withholder, at, _ string, v any) any {
		object, ok := v.(jsontree.Object)
		if !ok {
			return w.Withhold(at, v)
		}
		out := jsontree.Object{}
		for _, m := range object {
			rule, known := rules[m.Key]
			if !known {
				rule = others
			}
			if rule != nil {
				out = append(out, jsontree.Member{Key: m.Key, Value: rule(w, at+"."+m.Key, m.Key, m.Value)})
			}
		}
		return out
	}
}

// Each returns the Rule by which each element of a list is kept by a rule.
func Each(rule Rule) Rule {
	return func(w *Withholder, at, key string, v any) any {
		list, ok := v.(jsontree.Array)
		if !ok {
			return w.Withhold(at, v)
		}
		out := make(jsontree.Array, len(list))
		for i, e := range list {
			out[i] = rule(w, at+"["+strconv.Itoa(i)+"]", key, e)
		}
		return out
	}
}

// Texts returns the Rule that keeps the texts that fit.
func Texts(fit func(text string) bool) Rule {
	return func(w *Withholder, at, _ string, v any) any {
		if text, ok := v.(string); ok && fit(text) {
			return v
		}
		return w.Withhold(at, v)
	}
}

// Numbers is the Rule that keeps null, booleans and numbers.
func Numbers(w *Withholder, at, _ string, v any) any {
	switch v.(type) {
	case bool, jsontree.Number:
		return v
	}
	return w.Withhold(at, v)
}

// OneOf returns the Rule that keeps these words.
func OneOf(words ...string) Rule {
	return Texts(func(text string) bool { return slices.Contains(words, text) })
}

// Withhold notes a value at a path and returns Mark for it; null stays.
func (w *Withholder) Withhold(at string, v any) any {
	if v == nil {
		return nil
	}
	w.Withheld = append(w.Withheld, Withheld{Path: at, Type: typeOf(v)})
	return Mark
}

// settings are the members of calls whose numbers are no content.
var settings = content.Words(`
		temperature top_p max_tokens max_completion_tokens n seed presence_penalty frequency_penalty top_logprobs
		status port epoch step rank world_size timeout schema version`)

// Settings is the Rule that keeps null, booleans, and the numbers of known keys.
func Settings(w *Withholder, at, key string, v any) any {
	_, isNumber := v.(jsontree.Number)
	if _, isBool := v.(bool); isBool || isNumber && settings[key] {
		return v
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
