package pythoncall

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/internal/content"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
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
	return shared.Check(!never[top], `%q names the module %q, whose callables evaluate or build code: it cannot be allowed; name a module of the application`, entry, top)
}

//go:embed stdlib.txt
var stdlibText string

// stdlib are the modules of Python's standard library that every version from 3.10 to
// 3.14 has on Linux and macOS, by sys.stdlib_module_names. Those that distributions
// package separately, such as tkinter, are left out.
var stdlib = content.Words(stdlibText)

// comesWithPython reports whether a module, such as os.path, is part of every
// supported Python, so that nothing needs to be installed for it.
func comesWithPython(module string) bool {
	top, _, _ := strings.Cut(module, ".")
	return stdlib[top]
}
