package artifact

import (
	"strconv"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

// part is a part of a script, and the condition under which a script has it.
type part struct {
	name   string
	needed func(facts) bool
}

// facts are what the choice of parts depends on, beside the kind.
type facts struct {
	// tagged reports whether an argument is more than plain JSON, or may become
	// so on the command line.
	tagged bool
	// torch and numpy report whether an argument is a tensor or an array.
	torch, numpy bool
	// dotted reports whether the call is that of a class's or an instance's
	// member.
	dotted bool
	// remote reports whether the payload lies somewhere else.
	remote bool
	// redacted reports whether something was withheld.
	redacted bool
	// template reports whether the expected message is known by its template
	// alone.
	template bool
	// numeric reports whether the failure is a number that a call returns.
	numeric bool
	// environment and variables report whether versions and environment
	// variables were recorded.
	environment, variables bool
}

func always(facts) bool { return true }

func not(condition func(facts) bool) func(facts) bool {
	return func(f facts) bool { return !condition(f) }
}

func tagged(f facts) bool    { return f.tagged || f.remote }
func tensors(f facts) bool   { return f.torch || f.numpy || f.remote }
func torch(f facts) bool     { return f.torch || f.remote }
func numpy(f facts) bool     { return f.numpy || f.remote }
func dotted(f facts) bool    { return f.dotted || f.remote }
func remote(f facts) bool    { return f.remote }
func variables(f facts) bool { return f.variables }

// The parts that every script has, around those of its kind. The first has
// the hole, which is inside the only string literal with three single quotes.
var (
	partsBefore = []part{{"start", always}, {"output", always}, {"set", func(f facts) bool { return f.redacted }}}
	partsAfter  = []part{{"environment", func(f facts) bool { return f.environment }}, {"main", always}}
)

// partsOfReplay are the parts of every kind that can be replayed.
var partsOfReplay = []part{
	{"judging", always}, {"fits", func(f facts) bool { return f.template }}, {"guard", always}, {"landlock", always},
	{"child", always}, {"parent", always}, {"apply", variables}, {"noapply", not(variables)}, {"plain", always},
}

// partsOf lists each kind's own parts, in the order of the script.
var partsOf = map[failure.Kind][]part{
	failure.PythonCall: {
		{"tags", tagged}, {"source", tagged}, {"values", not(tagged)}, {"modules", always}, {"members", dotted},
		{"nomembers", not(dotted)}, {"numbers", func(f facts) bool { return f.numeric }}, {"call", always},
		{"tensors", tensors}, {"torch", torch}, {"numpy", numpy}, {"files", remote}, {"connect", remote}, {"remote", remote},
	},
	failure.PythonCode:  {{"files", always}, {"code", always}},
	failure.GenAIChat:   {{"source", always}, {"connect", always}, {"address", always}, {"chat", always}},
	failure.TrainStep:   {{"files", always}, {"train", always}},
	failure.HTTPRequest: {{"files", always}, {"connect", always}, {"address", always}, {"request", always}},
	failure.Context:     {},
}

// chosenParts returns the names of a script's parts in their order.
func chosenParts(kind failure.Kind, f facts) []string {
	lists := [][]part{partsBefore, partsOf[kind], partsOfReplay, partsAfter}
	if kind == failure.Context {
		lists = [][]part{partsBefore, partsAfter}
	}
	var names []string
	for _, list := range lists {
		for _, p := range list {
			if p.needed(f) {
				names = append(names, p.name)
			}
		}
	}
	return names
}

// factsOf reads a spec.
func factsOf(spec jsontree.Object) facts {
	list, _ := spec.Lookup("redacted")
	redacted, _ := list.(jsontree.Array)
	_, isRemote := spec.Lookup("payload_ref")
	expect, env := member(spec, "expect"), member(spec, "env")
	trigger := expect.Text("trigger")
	f := facts{
		remote: isRemote, redacted: len(redacted) > 0, environment: len(env) > 0, template: expect.Text("message_template") != "",
		numeric: trigger == "nan" || trigger == "inf",
		dotted:  strings.Contains(member(spec, "payload").Text("function"), "."),
	}
	for _, m := range env {
		f.variables = f.variables || strings.HasPrefix(m.Key, "repro.env.")
	}
	for _, r := range redacted {
		entry, _ := r.(jsontree.Object)
		f.tagged = f.tagged || strings.HasPrefix(entry.Text("path"), "payload")
	}
	f.look(member(spec, "payload"))
	return f
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
		tag, isTagged := v.Lookup("__type__")
		if isTagged {
			f.tagged = true
			f.lookAtTensor(tag, v.Text("framework"))
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

func (f *facts) lookAtTensor(tag any, framework string) {
	switch {
	case tag != "tensor" && tag != "ndarray":
	case framework == "torch" || framework == "" && tag == "tensor":
		f.torch = true
	case framework == "numpy" || framework == "" && tag == "ndarray":
		f.numpy = true
	default: // a script that says which frameworks there are
		f.torch, f.numpy = true, true
	}
}
