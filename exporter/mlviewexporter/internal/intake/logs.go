package intake

import (
	"strconv"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/reproductions"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// eventArtifact is the name of repro_gen's log records of reproductions.
const eventArtifact = "repro.artifact"

// maxEventsOfRequest limits the records of one request that are read. Errors of
// GPUs and reproductions are rare.
const maxEventsOfRequest = 10_000

// readEvents returns the records that the page shows. concluded reports whether
// ml_metrics of this collector has written them, fleet whether a collector has: records
// about problems and changes that a client has sent are ignored, and so are its commands.
func readEvents(ld plog.Logs, concluded, fleet bool) (events []input.Event) {
	for _, rl := range ld.ResourceLogs().All() {
		attrs := rl.Resource().Attributes()
		for _, sl := range rl.ScopeLogs().All() {
			for _, record := range sl.LogRecords().All() {
				if len(events) >= maxEventsOfRequest {
					return events
				}
				switch name := record.EventName(); {
				case name == mlattr.GPUXIDEvent:
					events = append(events, readXID(attrs, record))
				case name == mlattr.EventChange && (concluded || fleet):
					events = append(events, readChange(attrs, record))
				case name == mlattr.Problem && (concluded || fleet):
					events = append(events, readProblem(attrs, record))
				case name == eventArtifact:
					events = append(events, readArtifact(attrs, record, fleet))
				}
			}
		}
	}
	return events
}

// at returns the time of a record in UTC, that of its observation if it has none.
func at(record plog.LogRecord) time.Time {
	t := record.Timestamp()
	if t == 0 {
		t = record.ObservedTimestamp()
	}
	return time.Unix(0, instant(t)).UTC()
}

func readXID(resource pcommon.Map, record plog.LogRecord) input.Event {
	e := input.Event{Time: at(record), XID: &api.XID{Time: at(record)}}
	for _, attrs := range [...]pcommon.Map{resource, record.Attributes()} {
		for key, v := range attrs.All() {
			switch key {
			case mlattr.HardwareID:
				e.GPU = text(v)
			case mlattr.HostName:
				e.Host = text(v)
			case mlattr.GPUXIDCode:
				if code, ok := mlattr.ReadInt(v); ok {
					e.XID.Code = strconv.FormatInt(code, 10)
				}
			}
		}
	}
	e.XID.Message = sentence(record.Body())
	return e
}

// readArtifact reads a record of repro_gen. Its command is read if it comes from a
// collector.
func readArtifact(resource pcommon.Map, record plog.LogRecord, fleet bool) input.Event {
	seen := at(record)
	var artifact reproductions.Record
	e := input.Event{Time: seen, Failure: &api.Failure{LastSeen: &seen, Service: textOf(resource, mlattr.ServiceName)}}
	readTexts(record, map[string]*string{"repro.artifact.kind": &e.Failure.Kind, mlattr.HostName: &artifact.Host}, func(key string, v pcommon.Value) {
		switch key {
		case attrFingerprint:
			e.Failure.Key, _ = mlattr.ReadID(v)
		case "repro.artifact.path":
			artifact.Artifact = sentence(v)
		case "repro.artifact.directory":
			artifact.Directory = sentence(v)
		case mlattr.ErrorType:
			e.Failure.Class = mlattr.ErrorClass(text(v))
		}
	})
	if body := record.Body(); fleet && body.Type() == pcommon.ValueTypeMap {
		if report, ok := body.Map().Get("report.md"); ok {
			artifact.Report = []byte(sentence(report))
		}
		artifact.Describe(e.Failure)
	}
	if id := record.TraceID(); !id.IsEmpty() {
		e.Failure.TraceID = id.String()
	}
	return e
}
