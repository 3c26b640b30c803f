package pythoncall

import (
	"fmt"
	"regexp"
	"strings"
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
