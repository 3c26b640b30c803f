package mllinesconnector

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector/internal/origin"
)

// records passes log records on, with the run, the service and the rank of the file that
// they are from.
type records struct {
	component.StartFunc
	component.ShutdownFunc
	next consumer.Logs
}

// Capabilities says that requests are not changed.
func (*records) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

// ConsumeLogs passes a copy of the records on.
func (r *records) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	out := plog.NewLogs()
	for _, rl := range ld.ResourceLogs().All() {
		// The records of a resource may be from several files, one after the other.
		file, open := "", false
		var to plog.LogRecordSlice
		for _, sl := range rl.ScopeLogs().All() {
			open = false
			for _, record := range sl.LogRecords().All() {
				if of := pathOf(record.Attributes()); !open || of != file {
					file, open = of, true
					into := out.ResourceLogs().AppendEmpty()
					rl.Resource().CopyTo(into.Resource())
					for key, v := range origin.Of(rl.Resource().Attributes(), file).Resource.All() {
						v.CopyTo(into.Resource().Attributes().PutEmpty(key))
					}
					into.SetSchemaUrl(rl.SchemaUrl())
					scope := into.ScopeLogs().AppendEmpty()
					sl.Scope().CopyTo(scope.Scope())
					scope.SetSchemaUrl(sl.SchemaUrl())
					to = scope.LogRecords()
				}
				record.CopyTo(to.AppendEmpty())
			}
		}
	}
	return r.next.ConsumeLogs(ctx, out)
}

// pathOf returns the path of the file that a record is from, or "".
func pathOf(attrs pcommon.Map) string { return textOf(attrs, origin.FilePath) }

func textOf(attrs pcommon.Map, key string) string {
	if v, ok := attrs.Get(key); ok && v.Type() == pcommon.ValueTypeStr {
		return v.Str()
	}
	return ""
}
