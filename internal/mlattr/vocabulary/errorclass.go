package vocabulary

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

var errorPrints = func() (all []func(string) (table.PrintedError, bool)) {
	for _, t := range Tables() {
		if t.PrintsError != nil {
			all = append(all, t.PrintsError)
		}
	}
	return all
}()

// ReadPrintedError reads an error from a client's own print of it, which is text
// of any length and content. It returns false for any other text.
func ReadPrintedError(text string) (table.PrintedError, bool) {
	for _, reads := range errorPrints {
		if e, ok := reads(text); ok {
			return e, true
		}
	}
	return table.PrintedError{}, false
}
