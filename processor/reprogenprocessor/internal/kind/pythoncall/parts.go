package pythoncall

import (
	"cmp"
	"strings"
	"unicode/utf8"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/payload"
)

// parts is a call whose client sent each part of it by itself.
type parts struct {
	// Library stands for Module where that is "".
	Library, Module, Function string
	// CallType is "" where none was sent.
	CallType string
	// Named is the qualified name of the function that the conventions' code
	// attributes give, or "". It completes Module and Function.
	Named string
	// Args is an array and Kwargs an object; nil is none.
	Args, Kwargs any
	// Size is the number of bytes that Args and Kwargs came in.
	Size int
	// Lossy is true where a character of them had to be replaced.
	Lossy bool
}

// ofParts makes a call of its parts. Exactly one of its results is set.
func ofParts(p parts) (*payload.Call, payload.Reason) {
	tree := jsontree.Object{}
	for _, m := range [...]jsontree.Member{
		{Key: "library", Value: p.Library}, {Key: "python_module", Value: p.Module}, {Key: "function", Value: p.Function},
		{Key: "args", Value: p.Args}, {Key: "kwargs", Value: p.Kwargs}, {Key: "call_type", Value: p.CallType},
	} {
		if m.Value != nil && m.Value != "" {
			tree = append(tree, m)
		}
	}
	return callOf(tree, p.Lossy, p.Size, p.Named)
}

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
