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
			to := newCopies(rl, &p, list.AppendEmpty, func(to plog.ResourceLogs) plog.ScopeLogs { return to.ScopeLogs().AppendEmpty() })
			move(to, stays, rl.ScopeLogs(), plog.ScopeLogs.LogRecords, func(log plog.LogRecord) string {
				p.ofGPU = ofGPUError(log)
				return p.of(log.Attributes())
			})
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
