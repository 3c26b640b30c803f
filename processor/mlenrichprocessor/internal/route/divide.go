package route

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// divideTraces gives every resource one route.
func divideTraces(td ptrace.Traces) {
	p := partition{budget: newBudget()}
	divide(td.ResourceSpans(), &p, ptrace.ResourceSpans.ScopeSpans, ptrace.ScopeSpans.Spans, signal[ptrace.ResourceSpans, ptrace.ScopeSpans, ptrace.Span]{
		size: func(from ptrace.ResourceSpans) int { return sizeOf(from, from.ScopeSpans()) },
		see:  func(span ptrace.Span) { p.see(span.Attributes()) },
		run:  func(span ptrace.Span) string { return p.of(span.Attributes()) },
	})
}

// divideLogs gives every resource one route.
func divideLogs(ld plog.Logs, gpus *GPUs) {
	p := partition{budget: newBudget(), gpus: gpus}
	attributes := func(log plog.LogRecord) pcommon.Map {
		p.ofGPU = log.EventName() == mlattr.GPUXIDEvent
		return log.Attributes()
	}
	divide(ld.ResourceLogs(), &p, plog.ResourceLogs.ScopeLogs, plog.ScopeLogs.LogRecords, signal[plog.ResourceLogs, plog.ScopeLogs, plog.LogRecord]{
		size: func(from plog.ResourceLogs) int { return sizeOf(from, from.ScopeLogs()) },
		see:  func(log plog.LogRecord) { p.see(attributes(log)) },
		run:  func(log plog.LogRecord) string { return p.of(attributes(log)) },
	})
}

// sizeOf returns the size of a resource and its scopes in bytes, without the items, as it is
// encoded, which is the same for spans and log records.
func sizeOf[R resource[R], S scope, SL slice[S]](from R, scopes SL) int {
	shell := ptrace.NewResourceSpans()
	from.Resource().CopyTo(shell.Resource())
	for i := range scopes.Len() {
		scopes.At(i).Scope().CopyTo(shell.ScopeSpans().AppendEmpty().Scope())
	}
	return (&ptrace.ProtoMarshaler{}).ResourceSpansSize(shell)
}

// signal is how a partition sees the items of a signal.
type signal[R, S, I any] struct {
	// size returns the encoded size of a resource and its scopes, without what is divided.
	size func(R) int
	// see lets the partition see an item, and run returns the run by which it is divided.
	see func(I)
	run func(I) string
	// apart, which may be nil, makes items of a scope that belong to several runs items of one.
	apart func(scope S, stays string)
}

// divide gives every resource of a list one route. The items of other runs than the one that
// stays move to copies of their resource at the end of the list, one for each run.
func divide[R resource[R], S scope, I item[I], RL slice[R], SL slice[S], IL slice[I]](
	list RL, p *partition, scopes func(R) SL, items func(S) IL, of signal[R, S, I],
) {
	for i := range list.Len() {
		from := list.At(i)
		if !p.begin(from.Resource(), func() int { return of.size(from) }) {
			continue
		}
		all := scopes(from)
		for j := range all.Len() {
			list := items(all.At(j))
			for k := range list.Len() {
				of.see(list.At(k))
			}
		}
		stays := p.stays()
		if len(p.runs) > 1 {
			copies, number := make(map[string]*resourceCopy[R, S], len(p.runs)), 0
			all.RemoveIf(func(scope S) bool {
				number++
				had := items(scope).Len() > 0
				if of.apart != nil {
					of.apart(scope, stays)
				}
				items(scope).RemoveIf(func(one I) bool {
					run := of.run(one)
					if run == stays {
						return false
					}
					to, known := copies[run]
					if !known {
						to = &resourceCopy[R, S]{resource: list.AppendEmpty()}
						from.Resource().CopyTo(to.resource.Resource())
						to.resource.SetSchemaUrl(from.SchemaUrl())
						p.write(to.resource.Resource().Attributes(), run)
						copies[run] = to
					}
					if to.of != number {
						to.of, to.scope = number, scopes(to.resource).AppendEmpty()
						scope.Scope().CopyTo(to.scope.Scope())
						to.scope.SetSchemaUrl(scope.SchemaUrl())
					}
					one.MoveTo(items(to.scope).AppendEmpty())
					return true
				})
				return had && items(scope).Len() == 0
			})
		}
		p.write(from.Resource().Attributes(), stays)
	}
}

// slice is what the slices of all signals have.
type slice[E any] interface {
	Len() int
	At(int) E
	AppendEmpty() E
	RemoveIf(func(E) bool)
}

// resource is what the resources of all signals have, and scope their scopes.
type (
	resource[R any] interface {
		Resource() pcommon.Resource
		schema
		MoveTo(R)
	}
	scope interface {
		Scope() pcommon.InstrumentationScope
		schema
	}
	schema interface {
		SchemaUrl() string
		SetSchemaUrl(string)
	}
)

// item is what spans, log records, metrics and points of all types have.
type item[I any] interface{ MoveTo(I) }

// resourceCopy is where the items of one run go.
type resourceCopy[R resource[R], S scope] struct {
	resource R
	scope    S
	// of is the number of the scope that scope is a copy of, from 1.
	of int
}
