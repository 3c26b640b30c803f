package payload

import (
	"strings"
	"unicode/utf8"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

// Statement is a statement of SQL as telemetry has it.
type Statement struct {
	// Text is the statement, with places for its parameters or without.
	Text string
	// System is the database's name in the semantic conventions.
	System string
	// Address is the server and the database. It is shown, and not used.
	Address string
	// Code is the database's own code for the error, or "".
	Code string
	// Parameters are the values for the places, by their names or numbers.
	Parameters jsontree.Object
}

// databases maps names of the conventions, old and new, to those whose
// statements can be run.
var databases = map[string]string{"sqlite": "sqlite", "postgresql": "postgresql", "postgres": "postgresql"}

// IsDatabase reports whether statements of a system can be run.
func IsDatabase(system string) bool { return databases[strings.ToLower(system)] != "" }

// OfStatement makes what can be replayed of a statement. Exactly one of its
// results is set.
func OfStatement(s Statement, maxBytes int) (*Call, Reason) {
	size := len(s.Text) + len(s.Address) + len(jsontree.Encode(s.Parameters))
	switch {
	case size > maxBytes:
		return nil, TooLarge
	case strings.TrimSpace(s.Text) == "":
		return nil, Invalid
	}
	return &Call{
		Tree: jsontree.Of("system", databases[strings.ToLower(s.System)], "query", s.Text, "parameters", s.Parameters,
			"address", s.Address, "code", s.Code),
		Lossy:  !utf8.ValidString(s.Text),
		Weight: weightPerByte * size,
	}, ""
}
