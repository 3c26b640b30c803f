package pythoncall

import (
	"cmp"
	"embed"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/python"
)

//go:embed script/*.py.tmpl
var files embed.FS

// facts are what the choice of parts depends on.
type facts struct {
	// tagged reports whether an argument is more than plain JSON, or may become
	// so on the command line.
	tagged bool
	// torch and numpy report whether an argument is a tensor or an array.
	torch, numpy bool
	// devices are those of tensors that were not on the CPU.
	devices []string
}

// scriptParts returns the parts of a call's script.
func scriptParts(spec jsontree.Object) []string {
	var f facts
	call := spec.Object("payload")
	_, remote := spec.Lookup("payload_ref")
	trigger := spec.Object("expect").Text("trigger")
	for _, r := range spec.Array("redacted") {
		entry, _ := r.(jsontree.Object)
		f.tagged = f.tagged || strings.HasPrefix(entry.Text("path"), "payload")
	}
	f.look(call)
	var parts kind.Parts
	dotted := strings.Contains(call.Text("function"), ".") || remote
	parts.Add(f.tagged || remote, "tags", "source")
	parts.Add(!f.tagged && !remote, "values")
	parts.Add(true, "modules")
	parts.Add(dotted, "members")
	parts.Add(!dotted, "nomembers")
	parts.Add(trigger == "nan" || trigger == "inf", "numbers")
	parts.Add(true, "call")
	parts.Add(f.torch || f.numpy || remote, "tensors")
	parts.Add(f.torch || remote, "torch")
	parts.Add(f.numpy || remote, "numpy")
	parts.Add(remote, "files", "connect", "remote")
	return parts
}

// look notes the tags in a payload.
func (f *facts) look(v any) {
	switch v := v.(type) {
	case jsontree.Number:
		// Python writes what is beyond a float's range as inf, which is no literal.
		_, err := strconv.ParseFloat(string(v), 64)
		f.tagged = f.tagged || err != nil
	case jsontree.Array:
		for _, element := range v {
			f.look(element)
		}
	case jsontree.Object:
		if tag, isTagged := v.Lookup("__type__"); isTagged {
			f.tagged = true
			f.lookAtTensor(tag, v.Text("framework"))
			if device := v.Text("device"); accelerator.MatchString(device) && !slices.Contains(f.devices, device) {
				f.devices = append(f.devices, device)
			}
		}
		for _, m := range v {
			switch m.Key {
			case "__needs_ref__", "__needs_stream_ref__", "__ffi_unserializable__":
				f.tagged = true
			}
			f.look(m.Value)
		}
	}
}

// accelerator is the form of a device that a machine may lack.
var accelerator = regexp.MustCompile(`^(cuda|mps|xpu)(:[0-9]{1,3})?$`)

func (f *facts) lookAtTensor(tag any, framework string) {
	switch {
	case tag != "tensor" && tag != "ndarray":
	case framework == "torch" || framework == "" && tag == "tensor":
		f.torch = true
	case framework == "numpy" || framework == "" && tag == "ndarray":
		f.numpy = true
	default: // a script that lists the frameworks that there are
		f.torch, f.numpy = true, true
	}
}

func flags(spec jsontree.Object) string {
	if _, remote := spec.Lookup("payload_ref"); remote {
		return " --payload FILE"
	}
	return kind.SetFlag(spec, "payload.args", "payload.kwargs", "payload.python_module", "payload.library", "payload.function")
}

// needs returns what a call needs beside flags: a module that does not come with
// Python, the frameworks of its tensors, and their devices.
func needs(spec jsontree.Object) []string {
	var out []string
	var f facts
	call := spec.Object("payload")
	f.look(call)
	if module := cmp.Or(call.Text("python_module"), call.Text("library")); CheckEntry(module) == nil && !comesWithPython(module) {
		out = append(out, "Python module "+module)
	}
	if f.torch {
		out = append(out, "PyTorch")
	}
	if f.numpy {
		out = append(out, "NumPy")
	}
	return append(out, mlattr.Mapped(f.devices, func(device string) string { return "device " + device + " (--device auto takes another)" })...)
}

// head writes a call in one line, or with a line for each argument.
func head(h *kind.Head, spec jsontree.Object) {
	call := spec.Object("payload")
	if call == nil {
		h.Add("call", "recorded at "+spec.Object("payload_ref").Text("uri"))
		return
	}
	target := cmp.Or(call.Text("python_module"), call.Text("library")) + "." + call.Text("function")
	if call.Text("call_type") == "module_attr" {
		h.Add("attribute", target)
		return
	}
	arguments := argumentsOf(call)
	whole := target + "(" + strings.Join(arguments, ", ") + ")"
	if len(python.Spelled(whole, false)) <= kind.MaxHeadText {
		h.Add("call", whole)
		return
	}
	h.Add("call", target+"(")
	for i, a := range arguments {
		arguments[i] = "    " + a + ","
	}
	h.List("", arguments, kind.MaxHeadLines-3)
	h.Add("", ")")
}

func argumentsOf(call jsontree.Object) (arguments []string) {
	args, _ := call.Lookup("args")
	if list, ok := args.(jsontree.Array); ok {
		arguments = mlattr.Mapped(list, python.Text)
	} else if args != nil {
		arguments = append(arguments, "*"+python.Text(args))
	}
	kwargs, _ := call.Lookup("kwargs")
	if object, ok := kwargs.(jsontree.Object); ok && !python.IsTagged(object) {
		arguments = append(arguments, mlattr.Mapped(object, func(m jsontree.Member) string { return m.Key + "=" + python.Text(m.Value) })...)
	} else if kwargs != nil {
		arguments = append(arguments, "**"+python.Text(kwargs))
	}
	return arguments
}
