// Package route lets a load balancer send all that belongs to one run to one
// gateway. It writes mlattr.Route on every resource, after it has split the
// resources whose spans, points or records belong to several runs, and sends
// what has one route in one call, with the route as client metadata.
package route

import (
	"cmp"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// unknown is the route of a resource that names neither a run nor a service nor
// a host. Without a route, a load balancer would look into each point for it.
const unknown = "unknown"

// What the resources that are added to one request may cost. Spans beyond the
// limits stay with those that have no run.
const (
	maxCopies      = 256
	maxCopiedBytes = 4 << 20
)

// budget is what may still be copied for one request.
type budget struct{ copies, bytes int }

func newBudget() *budget { return &budget{copies: maxCopies, bytes: maxCopiedBytes} }

// take reports whether another copy of a resource fits.
func (b *budget) take(size int) bool {
	if b.copies == 0 || b.bytes < size {
		return false
	}
	b.copies--
	b.bytes -= size
	return true
}

// runOf returns the run that attributes name, or "".
func runOf(attrs pcommon.Map) string { return mlattr.IDAt(attrs, mlattr.RunID) }

// isInferred reports whether attributes mark their run as inferred.
func isInferred(attrs pcommon.Map) bool {
	v, ok := attrs.Get(mlattr.RunInferred)
	return ok && v.Type() == pcommon.ValueTypeBool && v.Bool()
}

// fallback returns the route of a resource without a run.
func fallback(attrs pcommon.Map) string {
	return cmp.Or(mlattr.TextAt(attrs, mlattr.ServiceName), mlattr.TextAt(attrs, mlattr.HostName), unknown)
}

// partition divides the items of one resource by run. The zero value is not
// ready for use.
type partition struct {
	// gpus has the routes of GPUs, and ofGPU reports whether the items that come next
	// may be about one. byGPU is true if any item has its run from its GPU.
	gpus         *GPUs
	ofGPU, byGPU bool

	resource pcommon.Resource
	budget   *budget
	// size returns the size of a copy of the resource, with its scopes.
	size func() int
	// own is the run that the resource names, or "".
	own string
	// first and firstInferred are of the first item, and last is the run of the
	// item that was seen last.
	first         string
	firstInferred bool
	last          string
	seen          bool
	// runs is nil unless the items are of different runs. It has the runs that
	// items are divided by, and whether each was inferred.
	runs map[string]bool
	// copied is the result of size, or 0 before it was called.
	copied int
}

// begin makes the partition that of a resource. It returns false for a resource
// that has a route: an ml_enrich before this one has divided it.
func (p *partition) begin(resource pcommon.Resource, size func() int) bool {
	attrs := resource.Attributes()
	if _, routed := attrs.Get(mlattr.Route); routed {
		return false
	}
	own := runOf(attrs)
	*p = partition{gpus: p.gpus, resource: resource, budget: p.budget, size: size, own: own, first: own}
	return true
}

// runOf returns the run that an item names, else that of the resource, else the run
// whose route its GPU has, or "".
func (p *partition) runOf(attrs pcommon.Map) string {
	run := cmp.Or(runOf(attrs), p.own)
	if run != "" || !p.ofGPU {
		return run
	}
	if of := gpuOf(attrs, p.resource.Attributes()); of.id != "" {
		run = p.gpus.run(of)
		p.byGPU = p.byGPU || run != ""
	}
	return run
}

// see takes the attributes of the next item in.
func (p *partition) see(attrs pcommon.Map) {
	run := p.runOf(attrs)
	switch {
	case !p.seen:
		p.seen, p.first, p.firstInferred = true, run, isInferred(attrs)
	case run == p.last:
	case p.runs == nil && run == p.first:
	default:
		p.divide(run, attrs)
	}
	p.last = run
}

// divide adds a run to those that items are divided by, if the budget has room
// for another copy of the resource. Else its items stay with those that name no
// run, and if there were none of these so far, the items of the first run do too.
func (p *partition) divide(run string, attrs pcommon.Map) {
	if p.runs == nil {
		p.runs = map[string]bool{p.first: p.firstInferred}
		p.copied = p.size()
	}
	if _, known := p.runs[run]; known {
		return
	}
	if p.budget.take(p.copied) {
		p.runs[run] = isInferred(attrs)
		return
	}
	if _, known := p.runs[p.own]; !known {
		delete(p.runs, p.first)
		p.runs[p.own] = false
	}
}

// stays returns the run whose items stay with the resource: the resource's own,
// or none, if there are such items, else the first.
func (p *partition) stays() string {
	if _, known := p.runs[p.own]; known {
		return p.own
	}
	return p.first
}

// of returns the run by which an item is divided from others.
func (p *partition) of(attrs pcommon.Map) string {
	run := p.runOf(attrs)
	if _, known := p.runs[run]; known && run != "" {
		return run
	}
	return p.own
}

// write adds the route to the resource, or to a copy of it, for the items of a run, or of
// none if run is "". The resource gets the run as well, unless it names one, or items have it
// from their GPU: they are not of that run.
func (p *partition) write(attrs pcommon.Map, run string) {
	if run == "" {
		attrs.PutStr(mlattr.Route, fallback(attrs))
		return
	}
	inferred := p.runs[run]
	if p.runs == nil {
		inferred = p.firstInferred
	}
	if _, named := attrs.Get(mlattr.RunID); !named && !p.byGPU {
		attrs.PutStr(mlattr.RunID, run)
		attrs.PutBool(mlattr.RunSplit, true)
		if inferred {
			attrs.PutBool(mlattr.RunInferred, true)
		}
	}
	attrs.PutStr(mlattr.Route, run)
}
