// Package reproductions reads the directory of repro_gen.
package reproductions

import (
	"context"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/model"
)

// Reader reads a directory.
type Reader struct{}

// Open returns a Reader of the directory.
func Open(string) *Reader { return &Reader{} }

// Failures returns the groups of failures.
func (*Reader) Failures(context.Context) ([]model.Failure, error) { return nil, nil }

// Report returns the report of a group.
func (*Reader) Report(string) ([]byte, bool) { return nil, false }
