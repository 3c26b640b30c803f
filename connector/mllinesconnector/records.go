package mllinesconnector

import (
	"context"
	"strings"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector/internal/origin"
)

// records passes log records on, with the run, the service and the rank of the file that
// they are from.
type records struct {
	*known
	next consumer.Logs
}

// Capabilities says that requests are changed.
func (*records) Capabilities() consumer.Capabilities { return consumer.Capabilities{MutatesData: true} }

// ConsumeLogs adds what is known of the records' file to their resource. If the records of
// a resource are from several files, each file gets a resource.
func (r *records) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	all := ld.ResourceLogs()
	for i := range all.Len() {
		rl := all.At(i)
		record, ok := firstRecord(rl)
		if !ok {
			continue
		}
		first, known := strings.Clone(origin.Text(record.Attributes(), origin.FilePath)), r.origins.Of(rl.Resource().Attributes(), record.Attributes()).Resource
		of := map[string]plog.ResourceLogs{}
		for _, sl := range rl.ScopeLogs().All() {
			into := map[string]plog.LogRecordSlice{}
			sl.LogRecords().RemoveIf(func(record plog.LogRecord) bool {
				path := origin.Text(record.Attributes(), origin.FilePath)
				if path == first {
					return false
				}
				to, ok := into[path]
				if !ok {
					file, ok := of[path]
					if !ok {
						file = all.AppendEmpty()
						r.origins.Of(rl.Resource().Attributes(), record.Attributes()).Resource.CopyTo(file.Resource().Attributes())
						file.SetSchemaUrl(rl.SchemaUrl())
						of[strings.Clone(path)] = file
					}
					scope := file.ScopeLogs().AppendEmpty()
					scope.Scope().SetName(sl.Scope().Name())
					scope.Scope().SetVersion(sl.Scope().Version())
					to = scope.LogRecords()
					into[strings.Clone(path)] = to
				}
				record.MoveTo(to.AppendEmpty())
				return true
			})
		}
		known.Range(func(key string, v pcommon.Value) bool {
			if _, ok := rl.Resource().Attributes().Get(key); !ok {
				v.CopyTo(rl.Resource().Attributes().PutEmpty(key))
			}
			return true
		})
	}
	return r.next.ConsumeLogs(ctx, ld)
}

// firstRecord returns the first record of a resource, if there is one.
func firstRecord(rl plog.ResourceLogs) (record plog.LogRecord, ok bool) {
	for _, sl := range rl.ScopeLogs().All() {
		if sl.LogRecords().Len() > 0 {
			return sl.LogRecords().At(0), true
		}
	}
	return record, false
}
