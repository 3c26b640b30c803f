package payload

import (
	"cmp"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

// parameterPrefix is what the names of a statement's recorded parameters begin
// with.
const parameterPrefix = "db.query.parameter."

// StatementOf returns a database's statement with its parameters and what is known
// of the database, or nil, by the names of the semantic conventions and those from
// before 1.26. It is shown to a person, and never run.
func StatementOf(a jsontree.Object) jsontree.Object {
	query := cmp.Or(a.Text("db.query.text"), a.Text("db.statement"))
	if strings.TrimSpace(query) == "" {
		return nil
	}
	parameters := jsontree.Object{}
	for _, m := range a {
		if name, ok := strings.CutPrefix(m.Key, parameterPrefix); ok && name != "" {
			parameters = append(parameters, jsontree.Member{Key: name, Value: m.Value})
		}
	}
	return jsontree.Of(
		"system", cmp.Or(a.Text("db.system.name"), a.Text("db.system")),
		"address", cmp.Or(a.Text("server.address"), a.Text("net.peer.name")),
		"database", cmp.Or(a.Text("db.namespace"), a.Text("db.name")),
		"code", a.Text("db.response.status_code"),
		"query", query,
		"parameters", parameters,
	)
}
