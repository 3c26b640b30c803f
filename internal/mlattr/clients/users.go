package clients

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// Users is the vocabulary of the semantic conventions for users of a program.
// It is no client's and holds for every resource, span and log record. A
// client's own name for its user goes before it.
//
// It has no rules for metrics: the user.id of a GPU's series is the owner of a
// process, and a user on each point would make a series each.
func Users() table.Table {
	aliases := []table.Alias{
		{Source: "user.id", Canonical: mlattr.User, Kind: table.KindSecret},
		{Source: "enduser.id", Canonical: mlattr.User, Kind: table.KindSecret},
		{Source: "enduser.pseudo.id", Canonical: mlattr.User, Kind: table.KindSecret},
	}
	return table.Table{
		Name:     "users",
		Title:    "Users",
		Page:     "https://github.com/open-telemetry/semantic-conventions/blob/v1.41.1/docs/registry/attributes/user.md",
		Resource: aliases,
		Span:     aliases,
	}
}
