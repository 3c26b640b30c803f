package mlenrichprocessor

import (
	"context"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/pdata/plog"
)

// take keeps those of a batch's records whose state says that they wait, as far
// as there is room, and takes them out of the logs. The states of the others say
// afterwards that they do not wait.
func (w *waitingLogs) take(ctx context.Context, ld plog.Logs, b *batch, states []recordState) {
	kept := w.admit(ctx, sizes(ld, b, states), states)
	if kept == nil {
		return
	}
	next := 0
	var ordinal int32
	ld.ResourceLogs().RemoveIf(func(rl plog.ResourceLogs) bool {
		took := false
		rl.ScopeLogs().RemoveIf(func(sl plog.ScopeLogs) bool {
			before := sl.LogRecords().Len()
			sl.LogRecords().RemoveIf(func(record plog.LogRecord) bool {
				ordinal++
				if next == len(kept.records) || kept.records[next].state.ordinal != ordinal-1 {
					return false
				}
				to := &kept.records[next]
				to.record = plog.NewLogRecord()
				record.MoveTo(to.record)
				to.state.attrs = to.record.Attributes()
				next++
				return true
			})
			took = took || sl.LogRecords().Len() < before
			return before > 0 && sl.LogRecords().Len() == 0
		})
		return took && rl.ScopeLogs().Len() == 0
	})
	if w.queue.add(kept) {
		w.signal()
		return
	}
	// Nobody may send to a processor that is shut down. Its records are not lost
	// all the same.
	w.send(ctx, kept.all(), releasedShutdown)
}

// sizes lists the records that are to wait, with copies of what they share and
// with what all of it takes.
func sizes(ld plog.Logs, b *batch, states []recordState) []waitingRecord {
	var marshaler plog.ProtoMarshaler
	var wanted []waitingRecord
	next := 0
	var ordinal int32
	for i, rl := range ld.ResourceLogs().All() {
		var resource *waitingResource
		for _, sl := range rl.ScopeLogs().All() {
			var scope *waitingScope
			for _, record := range sl.LogRecords().All() {
				ordinal++
				for next < len(states) && (states[next].ordinal < ordinal-1 || !states[next].waits) {
					next++
				}
				if next == len(states) {
					return wanted
				}
				if states[next].ordinal != ordinal-1 {
					continue
				}
				if resource == nil {
					resource = &waitingResource{logs: plog.NewResourceLogs(), run: b.resources[i].run, process: b.resources[i].process}
					rl.Resource().CopyTo(resource.logs.Resource())
					resource.logs.SetSchemaUrl(rl.SchemaUrl())
					resource.size = marshaler.ResourceLogsSize(resource.logs) + waitingOverhead
				}
				if scope == nil {
					scope = &waitingScope{resource: resource, logs: plog.NewScopeLogs()}
					sl.Scope().CopyTo(scope.logs.Scope())
					scope.logs.SetSchemaUrl(sl.SchemaUrl())
					scope.size = marshaler.ScopeLogsSize(scope.logs) + waitingOverhead
				}
				wanted = append(wanted, waitingRecord{
					state: states[next], scope: scope, size: marshaler.LogRecordSize(record) + waitingOverhead,
				})
			}
		}
	}
	return wanted
}

// admit chooses those for which there is room, in their order, and counts the
// others. It returns nil where there is room for none.
func (w *waitingLogs) admit(ctx context.Context, wanted []waitingRecord, states []recordState) *waitingBatch {
	info := client.FromContext(ctx)
	kept := &waitingBatch{until: w.store.now().Add(w.limits.wait), info: info}
	w.queue.reserve(kept, wanted, metadataSize(info.Metadata))
	next := 0
	for i := range states {
		states[i].waits = next < len(kept.records) && kept.records[next].state.ordinal == states[i].ordinal
		if states[i].waits {
			next++
		}
	}
	if over := len(wanted) - kept.left; over > 0 {
		w.count(ctx, over, releasedOverflow)
	}
	if kept.left == 0 {
		return nil
	}
	return kept
}

// metadataSize is what a sender's metadata take. With include_metadata a client
// decides how much that is.
func metadataSize(m client.Metadata) (size int) {
	for key := range m.Keys() {
		size += len(key)
		for _, value := range m.Get(key) {
			size += len(value)
		}
	}
	return size
}
