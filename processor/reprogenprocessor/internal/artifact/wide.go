package artifact

import (
	_ "embed"

	"github.com/otelcol-ml/otelcol-ml/internal/content"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

//go:embed wide.txt
var wideText string

// wide lists the packages that hold shells, loaders, writers and evaluators
// under plain names, or functions that call what a configuration names. An
// entry of allowed_modules for such a package permits nothing; "pkg.mod:name"
// permits one callable.
var wide = func() map[string]bool {
	names := content.Words(wideText)
	for _, name := range vocabulary.Packages() {
		names[name] = true
	}
	return names
}()

// isNarrow reports whether an entry for a top-level package permits what the
// package defines. A package with an accelerator in C, such as _pickle, is as
// wide as that.
func isNarrow(top string) bool {
	return !wide[top] && !wide["_"+top] && !wide["_py"+top]
}
