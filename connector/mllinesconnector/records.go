package mllinesconnector

import (
	"context"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector/internal/origin"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// records passes log records on, with the run, the service and the rank of the file that
// they are from.
type records struct {
	origins
	next consumer.Logs
}

// Capabilities says that requests are changed.
func (*records) Capabilities() consumer.Capabilities { return consumer.Capabilities{MutatesData: true} }

// ConsumeLogs adds what is known of the records' file to their resource. If the records of
// a resource are from several files, each further file gets a resource.
func (r *records) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	all := ld.ResourceLogs()
	for i := range all.Len() {
		rl, files := all.At(i), map[string]plog.ResourceLogs{}
		var first *origin.Origin // added last: what is of the first file is not of the others
		for _, sl := range rl.ScopeLogs().All() {
			into := map[string]plog.LogRecordSlice{}
			sl.LogRecords().RemoveIf(func(record plog.LogRecord) bool {
				path := mlattr.FirstText(record.Attributes(), origin.FilePath)
				file := shared.Entry(files, path, func() plog.ResourceLogs {
					of := r.Shared.Of(rl.Resource().Attributes(), record.Attributes())
					if first == nil {
						first = of
						return rl
					}
					file := all.AppendEmpty()
					rl.Resource().Attributes().CopyTo(file.Resource().Attributes())
					file.SetSchemaUrl(rl.SchemaUrl())
					of.AddTo(file.Resource().Attributes())
					return file
				})
				if file == rl {
					return false
				}
				to := shared.Entry(into, path, func() plog.LogRecordSlice {
					scope := file.ScopeLogs().AppendEmpty()
					scope.Scope().SetName(sl.Scope().Name())
					scope.Scope().SetVersion(sl.Scope().Version())
					return scope.LogRecords()
				})
				record.MoveTo(to.AppendEmpty())
				return true
			})
		}
		if first != nil {
			first.AddTo(rl.Resource().Attributes())
		}
	}
	return r.next.ConsumeLogs(ctx, ld)
}
