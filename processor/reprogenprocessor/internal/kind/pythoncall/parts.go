package pythoncall

import (
	"cmp"
	"strings"
	"unicode/utf8"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/payload"
)

// callOf makes a call of its tree, and completes its target by a qualified name. Exactly
// one of its results is set.
func callOf(tree jsontree.Object, lossy bool, size int, named string) (*payload.Call, payload.Reason) {
	args, _ := tree.Lookup("args")
	_, isList := args.(jsontree.Array)
	kwargs, _ := tree.Lookup("kwargs")
	_, isMap := kwargs.(jsontree.Object)
	if args != nil && !isList || kwargs != nil && !isMap {
		return nil, payload.Invalid
	}
	call := &payload.Call{
		Tree: tree, Module: cmp.Or(tree.Text("python_module"), tree.Text("library")), Function: tree.Text("function"),
		Lossy: lossy, Weight: payload.WeightPerByte * size,
	}
	if call.Module == "" || call.Function == "" {
		if call = completed(call, named); call == nil {
			return nil, payload.NoTarget
		}
	}
	return call, ""
}

// completed returns the call with what it lacks of its target taken from a
// qualified name, or nil if the name has no module or contradicts the
// call.
func completed(c *payload.Call, named string) *payload.Call {
	var module, function string
	ok := false
	switch {
	case named == "":
	case c.Module != "":
		module = c.Module
		function, ok = strings.CutPrefix(named, c.Module+".")
	case c.Function != "":
		function = c.Function
		module, ok = strings.CutSuffix(named, "."+c.Function)
	default:
		module, function, ok = splitName(named)
	}
	if !ok || module == "" || function == "" {
		return nil
	}
	out := *c
	out.Module, out.Function = module, function
	out.Tree = jsontree.Of("python_module", module, "function", function)
	for _, m := range c.Tree {
		if m.Key != "python_module" && m.Key != "function" {
			out.Tree = append(out.Tree, m)
		}
	}
	out.Weight += 4 * len(named)
	return &out
}

// splitName takes a qualified name apart where Python's naming says that the
// module ends: before the first class, or else before the last name. What is
// defined inside of a function has no name that leads to it.
func splitName(named string) (module, function string, ok bool) {
	if !utf8.ValidString(named) || strings.ContainsAny(named, "<>:/ ") {
		return "", "", false
	}
	names := strings.Split(named, ".")
	at := len(names) - 1
	for i, name := range names {
		if i > 0 && strings.TrimLeft(name, "_") != "" && strings.TrimLeft(name, "_")[0] >= 'A' && strings.TrimLeft(name, "_")[0] <= 'Z' {
			at = i
			break
		}
	}
	return strings.Join(names[:at], "."), strings.Join(names[at:], "."), at > 0
}
