package reprogenprocessor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/artifact"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/detect"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/redact"
)

const (
	// maxEmittedBytes bounds the files of one record: what logs go through
	// and to is made for lines, and 256 KiB is the least that common stores
	// take.
	maxEmittedBytes = 256 << 10
	// emitTimeout is how long a pipeline may take for a record.
	emitTimeout = 5 * time.Second

	emittedEvent = "repro.artifact"
	emittedScope = "github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor"
)

var errNoOutlet = errors.New("no logs pipeline names this processor")

// emit sends an artifact as a log record, if the configuration asks for it.
func (w *writer) emit(ctx context.Context, f *failure.Failure, name string, files artifact.Files) {
	if !w.cfg.EmitLog {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, emitTimeout)
	defer cancel()
	if route := f.Resource.Text(mlattr.Route); route != "" {
		ctx = client.NewContext(ctx, client.Info{Metadata: client.NewMetadata(map[string][]string{mlattr.RouteMetadata: {route}})})
	}
	sent, err := w.outlets.Send(ctx, w.recordOf(f, name, files))
	if !sent {
		err = errNoOutlet
	}
	if err != nil {
		w.dropped(ctx, 1, dropEmit)
		w.warn("An artifact could not be sent as a log record", err)
	}
}

// recordOf makes the log record of an artifact. All of it is redacted but the route:
// the record takes that of the failed span, which left with it.
func (w *writer) recordOf(f *failure.Failure, name string, files artifact.Files) plog.Logs {
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	rl.Resource().Attributes().PutStr(mlattr.ServiceName, redact.Text(f.Service))
	mlattr.PutText(rl.Resource().Attributes(), mlattr.Route, f.Resource.Text(mlattr.Route))
	sl := rl.ScopeLogs().AppendEmpty()
	sl.Scope().SetName(emittedScope)
	record := sl.LogRecords().AppendEmpty()
	record.SetEventName(emittedEvent)
	record.SetTimestamp(pcommon.NewTimestampFromTime(f.SeenAt))
	shared.FinishRecord(record, pcommon.NewTimestampFromTime(w.now()), plog.SeverityNumberInfo, "")
	record.SetTraceID(detect.HexID[pcommon.TraceID](f.Span.TraceID))
	record.SetSpanID(detect.HexID[pcommon.SpanID](f.Span.SpanID))
	attributes := record.Attributes()
	attributes.PutStr(attrArtifactFingerprint, f.Fingerprint)
	attributes.PutStr(attrArtifactPath, f.Fingerprint+"/"+name)
	attributes.PutStr(attrArtifactKind, string(f.Kind))
	// Where a reader of the record finds the files.
	if directory, err := filepath.Abs(w.cfg.Directory); err == nil {
		attributes.PutStr(attrArtifactDirectory, directory)
	}
	if host, err := os.Hostname(); err == nil {
		attributes.PutStr(mlattr.HostName, host)
	}
	mlattr.PutText(attributes, mlattr.ErrorType, redact.Text(f.Error.Type))
	body := record.Body().SetEmptyMap()
	room := maxEmittedBytes
	for _, file := range files.All() {
		if len(file.Content) > room {
			omitted, known := attributes.GetOrPutEmpty(attrArtifactOmitted)
			if !known {
				omitted.SetEmptySlice()
			}
			omitted.Slice().AppendEmpty().SetStr(file.Name)
			continue
		}
		room -= len(file.Content)
		body.PutStr(file.Name, string(file.Content))
	}
	return ld
}
