package mllinesconnector

import (
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// appendTo moves the process's spans, with its resource.
func (p *process) appendTo(td ptrace.Traces) {
	if p.noted = false; p.Made() == 0 {
		return
	}
	rs := td.ResourceSpans().AppendEmpty()
	attrs := rs.Resource().Attributes()
	p.stream.origin.Resource.CopyTo(attrs)
	if !p.stream.origin.HasService {
		attrs.PutStr(mlattr.ServiceName, p.Name())
	}
	if p.rank >= 0 {
		attrs.PutInt(mlattr.RankGlobal, p.rank)
	}
	ss := rs.ScopeSpans().AppendEmpty()
	ss.Scope().SetName(metadata.ScopeName)
	p.MoveTo(ss.Spans())
}
