package trainstep

import (
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/internal/content"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

var (
	moduleForm = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$`)
	pathForm   = regexp.MustCompile(`^/[^\x00-\x1f\x7f]+$`)
)

// launchers lists programs that run what their arguments name. The arguments
// are telemetry's, so an entry for one would permit everything.
var launchers = content.Words(`
		accelerate accelerate-launch code colossalai coverage cProfile ddtrace ddtrace-run debugpy
		deepspeed doctest fire horovod horovodrun ipykernel IPython ipython jupyter kernprof
		lightning memory_profiler nbconvert opentelemetry opentelemetry-instrument papermill pdb
		pip profile py.test pyinstrument pytest ray runpy scalene timeit torch torchrun trace
		unittest venv viztracer zipapp`)

// runsArguments reports whether a program runs what its arguments name.
func runsArguments(program string) bool { return launchers[program] || vocabulary.IsRunner(program) }

// CheckCommand returns an error if entry is not a valid entry of allowed_commands.
// The error shows the valid forms.
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
	// Debian's pytest-3 and pip3.11 are no other programs.
	plain := strings.TrimRight(strings.TrimSuffix(program, ".py"), "0123456789.")
	if runsArguments(strings.TrimSuffix(program, ".py")) || runsArguments(strings.TrimSuffix(plain, "-")) {
		return fmt.Errorf(`%q runs what its arguments name, and those are telemetry's: it cannot be allowed; name the training program itself`, entry)
	}
	return nil
}
