// Package statement recognises the failures of database statements. No script runs
// one: their artifacts show the statement to a person.
package statement

import (
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind"
)

// New returns the kind. It has no calls, so its artifacts are of the kind context.
func New() *kind.Kind {
	return &kind.Kind{
		Name: failure.Context,
		FromFailure: func(f *failure.Failure) (*failure.Call, failure.Reason, bool) {
			return nil, failure.Statement, failure.StatementOf(f.Span.Attributes) != nil
		},
	}
}
