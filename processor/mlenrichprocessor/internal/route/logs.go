package route

import (
	"go.opentelemetry.io/collector/pdata/plog"
)

// divideLogs gives every resource one route.
func divideLogs(ld plog.Logs, gpus *GPUs) {
	list, p := ld.ResourceLogs(), partition{budget: newBudget(), gpus: &gpuRoutes{all: gpus}}
	for i := range list.Len() {
		rl := list.At(i)
		if !p.begin(rl.Resource(), func() int { return sizeOfRecords(rl) }) {
			continue
		}
		for _, sl := range rl.ScopeLogs().All() {
			for _, log := range sl.LogRecords().All() {
				p.ofGPU = ofGPUError(log)
				p.see(log.Attributes())
			}
		}
		stays := p.stays()
		if p.several() {
			moveRecords(list, rl, &p, stays)
		}
		p.write(rl.Resource().Attributes(), stays)
	}
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

// targetRecords is where the records of one run go.
type targetRecords struct {
	resource plog.ResourceLogs
	scope    plog.ScopeLogs
	// of is the number of the scope that scope is a copy of, from 1.
	of int
}

// moveRecords moves the records of other runs than the one that stays to copies of
// their resource at the end of the list.
func moveRecords(list plog.ResourceLogsSlice, rl plog.ResourceLogs, p *partition, stays string) {
	targets := make(map[string]*targetRecords, len(p.runs))
	scope := 0
	rl.ScopeLogs().RemoveIf(func(sl plog.ScopeLogs) bool {
		scope++
		before := sl.LogRecords().Len()
		sl.LogRecords().RemoveIf(func(log plog.LogRecord) bool {
			p.ofGPU = ofGPUError(log)
			run := p.of(log.Attributes())
			if run == stays {
				return false
			}
			to := targets[run]
			if to == nil {
				to = &targetRecords{resource: list.AppendEmpty()}
				rl.Resource().CopyTo(to.resource.Resource())
				to.resource.SetSchemaUrl(rl.SchemaUrl())
				p.write(to.resource.Resource().Attributes(), run)
				targets[run] = to
			}
			if to.of != scope {
				to.of, to.scope = scope, to.resource.ScopeLogs().AppendEmpty()
				sl.Scope().CopyTo(to.scope.Scope())
				to.scope.SetSchemaUrl(sl.SchemaUrl())
			}
			log.MoveTo(to.scope.LogRecords().AppendEmpty())
			return true
		})
		return before > 0 && sl.LogRecords().Len() == 0
	})
}
