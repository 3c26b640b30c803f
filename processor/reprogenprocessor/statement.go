package reprogenprocessor

import (
	"cmp"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/payload"
)

// attrQueryParameter is what the names of recorded parameters begin with.
const attrQueryParameter = "db.query.parameter."

// asStatement returns the failure of a database's client as its statement.
func asStatement(f *failure.Failure, cfg *Config) (*payload.Call, payload.Reason, bool) {
	a := f.Span.Attributes
	s := payload.Statement{
		Text:    cmp.Or(a.Text("db.query.text"), a.Text("db.statement")),
		System:  cmp.Or(a.Text("db.system.name"), a.Text("db.system")),
		Address: cmp.Or(a.Text("server.address"), a.Text("net.peer.name")),
		Code:    a.Text("db.response.status_code"),
	}
	if s.Text == "" || !payload.IsDatabase(s.System) {
		return nil, "", false
	}
	if name := cmp.Or(a.Text("db.namespace"), a.Text("db.name")); name != "" {
		s.Address += "/" + name
	}
	for _, m := range a {
		if name, ok := strings.CutPrefix(m.Key, attrQueryParameter); ok && name != "" {
			s.Parameters = append(s.Parameters, jsontree.Member{Key: name, Value: m.Value})
		}
	}
	if f.Weight >= maxCopyBytes || anyCut(cfg, s.Text) || anyCut(cfg, s.Parameters) {
		return nil, payload.Truncated, true
	}
	call, reason := payload.OfStatement(s, cfg.MaxPayloadBytes)
	return call, reason, true
}
