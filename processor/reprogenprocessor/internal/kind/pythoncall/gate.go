package pythoncall

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind"
)

var entryForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*(\.\*|:[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*)?$`)

// never lists the modules that no entry opens: what they define evaluates or
// builds code from its arguments.
var never = map[string]bool{"builtins": true, "types": true, "__main__": true, "__builtin__": true}

// CheckEntry returns an error if entry is not a valid entry of allowed_modules. The
// error shows the valid forms.
func CheckEntry(entry string) error {
	if !entryForm.MatchString(entry) {
		return fmt.Errorf(`%q is not "pkg.mod" (what that module defines), "pkg.mod.*" (the module and all below it) or "pkg.mod:name" (one callable)`, entry)
	}
	module, _, _ := strings.Cut(entry, ":")
	top, _, _ := strings.Cut(module, ".")
	if never[top] {
		return fmt.Errorf(`%q names the module %q, whose callables evaluate or build code: it cannot be allowed; name a module of the application`, entry, top)
	}
	return nil
}

// entryFor returns the entry that permits the call of a SPEC and that the
// operator's entries do not have, or "" if these permit it by its names or
// nothing does. The script decides likewise (modules.py.tmpl).
func entryFor(spec jsontree.Object) string {
	call, gates := kind.Member(spec, "payload"), kind.Member(spec, "gates")
	module, function := cmp.Or(call.Text("python_module"), call.Text("library")), call.Text("function")
	entry := module + ":" + function
	if CheckEntry(entry) != nil || permits(texts(gates, "allowed_modules"), texts(gates, "narrow"), module, function) {
		return ""
	}
	return entry
}

// permits reports whether entries permit a call by its names.
func permits(entries, narrow []string, module, function string) bool {
	if slices.Contains(entries, module+":"+function) {
		return true
	}
	listed := slices.Contains(entries, module)
	covered := slices.ContainsFunc(entries, func(entry string) bool {
		above, ok := strings.CutSuffix(entry, ".*")
		return ok && (module == above || strings.HasPrefix(module, above+"."))
	})
	special := func(prefix string) func(string) bool {
		return func(part string) bool { return strings.HasPrefix(part, prefix) }
	}
	top, _, _ := strings.Cut(module, ".")
	return (listed || covered && !slices.ContainsFunc(strings.Split(module, "."), special("__"))) &&
		!slices.ContainsFunc(strings.Split(function, "."), special("_")) && slices.Contains(narrow, top)
}

func texts(o jsontree.Object, key string) []string {
	v, _ := o.Lookup(key)
	list, _ := v.(jsontree.Array)
	out := make([]string, 0, len(list))
	for _, v := range list {
		text, _ := v.(string)
		out = append(out, text)
	}
	return out
}
