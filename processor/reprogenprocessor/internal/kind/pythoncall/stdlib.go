package pythoncall

import (
	_ "embed"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/internal/content"
)

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
