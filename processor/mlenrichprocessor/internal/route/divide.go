package route

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// divideTraces gives every resource one route.
func divideTraces(td ptrace.Traces) {
	p := partition{budget: newBudget()}
	divideItems(td.ResourceSpans(), &p, ptrace.ResourceSpans.ScopeSpans, ptrace.ScopeSpans.Spans, func(ptrace.Span) {})
}

// divideLogs gives every resource one route.
func divideLogs(ld plog.Logs, gpus *GPUs) {
	p := partition{budget: newBudget(), gpus: gpus}
	look := func(log plog.LogRecord) { p.ofGPU = ofGPUError(log) }
	divideItems(ld.ResourceLogs(), &p, plog.ResourceLogs.ScopeLogs, plog.ScopeLogs.LogRecords, look)
}

// divideItems gives every resource of a list one route. look is called with an item before the
// partition sees it.
func divideItems[R resource[R], S scope, I item[I], RL slice[R], SL slice[S], IL slice[I]](
	list RL, p *partition, scopes func(R) SL, items func(S) IL, look func(I),
) {
	see := func(from R) {
		for i := range scopes(from).Len() {
			all := items(scopes(from).At(i))
			for j := range all.Len() {
				look(all.At(j))
				p.see(all.At(j).Attributes())
			}
		}
	}
	divide(list, p, func(from R) int { return sizeOf(from, scopes(from)) }, see, func(from R, stays string) {
		to := newCopies(from, p, list.AppendEmpty, func(to R) S { return scopes(to).AppendEmpty() })
		move(to, stays, scopes(from), items, func(one I) string {
			look(one)
			return p.of(one.Attributes())
		})
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
