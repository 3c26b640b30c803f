package route

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// divideTraces gives every resource one route.
func divideTraces(td ptrace.Traces) {
	p := partition{budget: newBudget()}
	see := func(rs ptrace.ResourceSpans) {
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				p.see(span.Attributes())
			}
		}
	}
	divide(td.ResourceSpans(), &p, sizeOfSpans, see, func(rs ptrace.ResourceSpans, stays string) {
		to := newCopies(rs, &p, td.ResourceSpans().AppendEmpty, func(to ptrace.ResourceSpans) ptrace.ScopeSpans { return to.ScopeSpans().AppendEmpty() })
		move(to, stays, rs.ScopeSpans(), ptrace.ScopeSpans.Spans, func(span ptrace.Span) string { return p.of(span.Attributes()) })
	})
}

// sizeOfSpans returns the encoded size of a resource and its scopes in bytes,
// without the spans.
func sizeOfSpans(rs ptrace.ResourceSpans) int {
	shell := ptrace.NewResourceSpans()
	rs.Resource().CopyTo(shell.Resource())
	for _, ss := range rs.ScopeSpans().All() {
		ss.Scope().CopyTo(shell.ScopeSpans().AppendEmpty().Scope())
	}
	return (&ptrace.ProtoMarshaler{}).ResourceSpansSize(shell)
}

// divideLogs gives every resource one route.
func divideLogs(ld plog.Logs, gpus *GPUs) {
	p := partition{budget: newBudget(), gpus: gpus}
	see := func(rl plog.ResourceLogs) {
		for _, sl := range rl.ScopeLogs().All() {
			for _, log := range sl.LogRecords().All() {
				p.ofGPU = ofGPUError(log)
				p.see(log.Attributes())
			}
		}
	}
	divide(ld.ResourceLogs(), &p, sizeOfRecords, see, func(rl plog.ResourceLogs, stays string) {
		to := newCopies(rl, &p, ld.ResourceLogs().AppendEmpty, func(to plog.ResourceLogs) plog.ScopeLogs { return to.ScopeLogs().AppendEmpty() })
		move(to, stays, rl.ScopeLogs(), plog.ScopeLogs.LogRecords, func(log plog.LogRecord) string {
			p.ofGPU = ofGPUError(log)
			return p.of(log.Attributes())
		})
	})
}

// sizeOfRecords returns the encoded size of a resource and its scopes in bytes,
// without the records.
func sizeOfRecords(rl plog.ResourceLogs) int {
	shell := plog.NewResourceLogs()
	rl.Resource().CopyTo(shell.Resource())
	for _, sl := range rl.ScopeLogs().All() {
		sl.Scope().CopyTo(shell.ScopeLogs().AppendEmpty().Scope())
	}
	return (&plog.ProtoMarshaler{}).ResourceLogsSize(shell)
}

// divide gives every resource of a list one route. see sees the items of a resource, and
// move moves those that do not stay.
func divide[R resource[R], L slice[R]](list L, p *partition, size func(R) int, see func(R), move func(from R, stays string)) {
	for i := range list.Len() {
		from := list.At(i)
		if !p.begin(from.Resource(), func() int { return size(from) }) {
			continue
		}
		see(from)
		stays := p.stays()
		if len(p.runs) > 1 {
			move(from, stays)
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

// item is what spans, log records and points of all types have.
type item[I any] interface {
	Attributes() pcommon.Map
	MoveTo(I)
}

// copies are the copies of a resource at the end of its list, one for each run other than
// the one whose items stay.
type copies[R resource[R], S scope] struct {
	from      R
	partition *partition
	add       func() R
	addScope  func(R) S
	byRun     map[string]*resourceCopy[R, S]
}

func newCopies[R resource[R], S scope](from R, p *partition, add func() R, addScope func(R) S) *copies[R, S] {
	return &copies[R, S]{from: from, partition: p, add: add, addScope: addScope, byRun: make(map[string]*resourceCopy[R, S], len(p.runs))}
}

// resourceCopy is where the items of one run go.
type resourceCopy[R resource[R], S scope] struct {
	resource R
	scope    S
	// of is the number of the scope that scope is a copy of, from 1.
	of int
}

// of returns the copy of a run, with a copy of the scope of that number as the last one.
func (c *copies[R, S]) of(run string, from S, number int) *resourceCopy[R, S] {
	to := c.byRun[run]
	if to == nil {
		to = &resourceCopy[R, S]{resource: c.add()}
		c.from.Resource().CopyTo(to.resource.Resource())
		to.resource.SetSchemaUrl(c.from.SchemaUrl())
		c.partition.write(to.resource.Resource().Attributes(), run)
		c.byRun[run] = to
	}
	if to.of != number {
		to.of, to.scope = number, c.addScope(to.resource)
		from.Scope().CopyTo(to.scope.Scope())
		to.scope.SetSchemaUrl(from.SchemaUrl())
	}
	return to
}

// move moves the items of other runs than the one that stays to copies of their resource.
func move[R resource[R], S scope, I item[I], SL slice[S], IL slice[I]](
	to *copies[R, S], stays string, scopes SL, items func(S) IL, run func(I) string,
) {
	number := 0
	scopes.RemoveIf(func(from S) bool {
		number++
		before := items(from).Len()
		items(from).RemoveIf(func(one I) bool {
			run := run(one)
			if run == stays {
				return false
			}
			one.MoveTo(items(to.of(run, from, number).scope).AppendEmpty())
			return true
		})
		return before > 0 && items(from).Len() == 0
	})
}
