package gate

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

var (
	moduleForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$`)
	pathForm   = regexp.MustCompile(`^/[^\x00-\x1f\x7f]+$`)
)

// launchers lists programs that run what their arguments name. The arguments
// are telemetry's, so an entry for one would permit everything.
var launchers = map[string]bool{
	"accelerate": true, "cProfile": true, "code": true, "coverage": true, "debugpy": true, "deepspeed": true,
	"doctest": true, "ipykernel": true, "IPython": true, "ipython": true, "jupyter": true, "pdb": true, "pip": true,
	"pytest": true, "profile": true, "py.test": true, "runpy": true, "timeit": true, "torchrun": true, "trace": true,
	"unittest": true, "venv": true, "zipapp": true, "torch": true, "ray": true, "lightning": true,
}

// CheckCommand returns an error that says what is allowed if entry is no valid
// entry of allowed_commands.
func CheckCommand(entry string) error {
	program := path.Base(entry)
	if module, ok := strings.CutPrefix(entry, "-m "); ok {
		if !moduleForm.MatchString(module) {
			return fmt.Errorf(`%q names no module: it must be "-m pkg.train"`, entry)
		}
		program, _, _ = strings.Cut(module, ".")
	} else if !pathForm.MatchString(entry) || path.Clean(entry) != entry {
		return fmt.Errorf(`%q is not "/path/of/train.py" (that file, without "..") or "-m pkg.train" (that module)`, entry)
	}
	if launchers[strings.TrimSuffix(program, ".py")] {
		return fmt.Errorf(`%q runs what its arguments name, and those are telemetry's: it cannot be allowed; name the training program itself`, entry)
	}
	return nil
}
