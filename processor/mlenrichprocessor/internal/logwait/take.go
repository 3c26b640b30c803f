package logwait

import (
	"context"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/pdata/plog"
)

// Take moves records, which are in order, out of their request to let them
// wait. It returns those for which there is no memory: they stay in the request.
func (w *Waiter[S]) Take(ctx context.Context, ld plog.Logs, wanted []Record[S]) (refused []Record[S]) {
	p := &part[S]{until: w.now().Add(w.config.Wait), info: client.FromContext(ctx)}
	for _, r := range w.queue.reserve(p, measure(ld, wanted), metadataSize(p.info.Metadata)) {
		refused = append(refused, r.Record)
	}
	if len(refused) > 0 {
		w.count(ctx, len(refused), reasonOverflow)
	}
	if p.left == 0 {
		return refused
	}
	p.moveFrom(ld)
	if w.queue.add(p) {
		w.signal()
		return refused
	}
	// Nobody may send to a processor that is shut down. Its records are not
	// lost all the same.
	w.send(ctx, p.all(), reasonShutdown)
	return refused
}

// moveFrom moves the records of the part out of their request, and removes
// scopes and resources that become empty.
func (p *part[S]) moveFrom(ld plog.Logs) {
	next, ordinal := 0, -1
	ld.ResourceLogs().RemoveIf(func(rl plog.ResourceLogs) bool {
		moved := false
		rl.ScopeLogs().RemoveIf(func(sl plog.ScopeLogs) bool {
			before := sl.LogRecords().Len()
			sl.LogRecords().RemoveIf(func(log plog.LogRecord) bool {
				ordinal++
				if next == len(p.records) || p.records[next].Ordinal != ordinal {
					return false
				}
				to := &p.records[next]
				to.log = plog.NewLogRecord()
				log.MoveTo(to.log)
				to.Attrs = to.log.Attributes()
				next++
				return true
			})
			moved = moved || sl.LogRecords().Len() < before
			return before > 0 && sl.LogRecords().Len() == 0
		})
		return moved && rl.ScopeLogs().Len() == 0
	})
}

// measure returns the records with their sizes, and with copies of the
// resources and scopes that they share.
func measure[S any](ld plog.Logs, wanted []Record[S]) []waitingRecord[S] {
	var marshaler plog.ProtoMarshaler
	list := make([]waitingRecord[S], 0, len(wanted))
	ordinal := -1
	for _, rl := range ld.ResourceLogs().All() {
		var resource *waitingResource
		for _, sl := range rl.ScopeLogs().All() {
			var scope *waitingScope
			for _, log := range sl.LogRecords().All() {
				ordinal++
				if len(list) == len(wanted) {
					return list
				}
				r := &wanted[len(list)]
				if r.Ordinal != ordinal {
					continue
				}
				if resource == nil {
					resource = &waitingResource{logs: plog.NewResourceLogs()}
					rl.Resource().CopyTo(resource.logs.Resource())
					resource.logs.SetSchemaUrl(rl.SchemaUrl())
					resource.size = marshaler.ResourceLogsSize(resource.logs) + overhead
				}
				if scope == nil {
					scope = &waitingScope{resource: resource, logs: plog.NewScopeLogs()}
					sl.Scope().CopyTo(scope.logs.Scope())
					scope.logs.SetSchemaUrl(sl.SchemaUrl())
					scope.size = marshaler.ScopeLogsSize(scope.logs) + overhead
				}
				list = append(list, waitingRecord[S]{Record: *r, scope: scope, size: marshaler.LogRecordSize(log) + overhead})
			}
		}
	}
	return list
}

// metadataSize returns the size of a sender's metadata. With include_metadata a
// client decides how much that is.
func metadataSize(m client.Metadata) (size int) {
	for key := range m.Keys() {
		size += len(key)
		for _, value := range m.Get(key) {
			size += len(value)
		}
	}
	return size
}
