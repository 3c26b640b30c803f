package intake

import (
	"cmp"
	"math"
	"strconv"
	"strings"
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
	return time.Unix(0, instant(cmp.Or(record.Timestamp(), record.ObservedTimestamp()))).UTC()
}

func readXID(resource pcommon.Map, record plog.LogRecord) input.Event {
	e := input.Event{XID: &api.XID{Time: at(record)}}
	texts := map[string]*string{mlattr.HardwareID: &e.GPU, mlattr.HostName: &e.Host}
	for _, attrs := range [...]pcommon.Map{resource, record.Attributes()} {
		readTexts(attrs, texts, func(key string, v pcommon.Value) {
			if code, ok := mlattr.ReadInt(v); ok && key == mlattr.GPUXIDCode {
				e.XID.Code = strconv.FormatInt(code, 10)
			}
		})
	}
	e.XID.Message = strings.TrimPrefix(record.Body().Str(), "XID "+e.XID.Code+": ")
	return e
}

// readArtifact reads a record of repro_gen. Its command is read if it comes from a
// collector.
func readArtifact(resource pcommon.Map, record plog.LogRecord, fleet bool) input.Event {
	seen := at(record)
	var artifact reproductions.Record
	e := input.Event{Failure: &api.Failure{LastSeen: &seen, Service: mlattr.TextAt(resource, mlattr.ServiceName)}}
	texts := map[string]*string{"repro.artifact.kind": &e.Failure.Kind, mlattr.HostName: &artifact.Host}
	readTexts(record.Attributes(), texts, func(key string, v pcommon.Value) {
		switch key {
		case attrFingerprint:
			e.Failure.Key, _ = mlattr.ReadID(v)
		case "repro.artifact.path":
			artifact.Artifact = v.Str()
		case "repro.artifact.directory":
			artifact.Directory = v.Str()
		case mlattr.ErrorType:
			e.Failure.Class = mlattr.ErrorClass(text(v))
		}
	})
	if body := record.Body(); fleet && body.Type() == pcommon.ValueTypeMap {
		if report, ok := body.Map().Get("report.md"); ok {
			artifact.Report = []byte(report.Str())
		}
		artifact.Describe(e.Failure)
	}
	e.Failure.TraceID = record.TraceID().String()
	return e
}

// readChange reads a record of ml_metrics about something new.
func readChange(resource pcommon.Map, record plog.LogRecord) input.Event {
	c := &api.Change{Time: at(record)}
	e := input.Event{Change: c}
	e.Namespace, c.Service = mlattr.TextAt(resource, mlattr.ServiceNamespace), mlattr.TextAt(resource, mlattr.ServiceName)
	readTexts(record.Attributes(), map[string]*string{
		mlattr.ChangeKind: &c.Kind, mlattr.ChangeFrom: &c.From, mlattr.ChangeTo: &c.To, mlattr.RunID: &c.RunID, mlattr.HostName: &c.Host,
	}, nil)
	c.Text = record.Body().Str()
	return e
}

// readProblem reads a record of ml_metrics about a problem. It reads no command: the
// names in one would be those that clients have sent, and it is copied to a shell.
func readProblem(resource pcommon.Map, record plog.LogRecord) input.Event {
	noted := at(record)
	r := &input.Record{Onset: noted}
	r.Namespace, r.Service = mlattr.TextAt(resource, mlattr.ServiceNamespace), mlattr.TextAt(resource, mlattr.ServiceName)
	state, message, evident := "", "", noted
	numbers := map[string]**float64{
		mlattr.ProblemValue: &r.Value, mlattr.ProblemUsual: &r.Usual, mlattr.ProblemGPUs: &r.GPUs, mlattr.ProblemGPUHours: &r.GPUHours,
	}
	lists := map[string]*[]string{
		mlattr.ProblemEvidence: &r.Evidence, mlattr.ProblemExcluded: &r.Excluded, mlattr.ProblemBefore: &r.Before,
	}
	readTexts(record.Attributes(), map[string]*string{
		mlattr.Problem: &r.Kind, mlattr.ProblemID: &r.ID, mlattr.ProblemState: &state, mlattr.ProblemEndReason: &r.EndReason,
		mlattr.ProblemUnit: &r.Unit, mlattr.ProblemCause: &r.Cause,
		mlattr.RunID: &r.Run, mlattr.HostName: &r.Host, mlattr.HardwareID: &r.GPU, mlattr.ExceptionMessage: &message,
	}, func(key string, v pcommon.Value) {
		switch key {
		case mlattr.ProblemOnset:
			r.Onset = timeOf(v, r.Onset)
		case mlattr.ProblemEvidenceTime:
			evident = timeOf(v, evident)
		case mlattr.ProblemHeld:
			r.Held = phrases(v)
		case mlattr.ProcessID:
			r.PID = mlattr.ReadPID(v)
		case mlattr.NVIDIAIndex:
			if index, ok := mlattr.ReadInt(v); ok && index >= 0 && index <= math.MaxUint16 {
				r.GPUIndex = &index
			}
		case mlattr.GPURecoveryAction:
			r.Recovery, _ = mlattr.ReadInt(v)
		case mlattr.ProblemNext:
			r.Next = v.Str()
		case mlattr.RankGlobal:
			// It is what the problem is about, and no holder's.
		default:
			if number := numbers[key]; number != nil {
				if value, ok, _ := mlattr.ReadDouble(v); ok {
					*number = &value
				}
			} else if list := lists[key]; list != nil {
				*list = phrases(v)
			} else {
				r.Holder.Read(key, v)
			}
		}
	})
	if message != "" && len(r.Evidence) > 0 {
		r.Evidence[0] += ": " + message
	}
	switch state {
	case mlattr.ProblemUpdated:
		r.Updated = true
	case mlattr.ProblemStale:
		r.Stale = evident
	case mlattr.ProblemEnded:
		r.Ended = noted
	}
	return input.Event{Problem: r}
}

// timeOf returns a time in seconds since 1970, or another one if v is none.
func timeOf(v pcommon.Value, other time.Time) time.Time {
	// Beyond that a time in nanoseconds overflows.
	if seconds, ok, _ := mlattr.ReadDouble(v); ok && seconds > 0 && seconds < math.MaxInt64/1e9 {
		return time.Unix(0, int64(seconds*1e9)).UTC()
	}
	return other
}

// readTexts reads the attributes that are texts, and calls other with the others.
func readTexts(attrs pcommon.Map, texts map[string]*string, other func(key string, v pcommon.Value)) {
	for key, v := range attrs.All() {
		if of := texts[key]; of != nil {
			*of = text(v)
		} else if other != nil {
			other(key, v)
		}
	}
}

// phrases returns the texts of a list. The model limits them.
func phrases(v pcommon.Value) (all []string) {
	if v.Type() != pcommon.ValueTypeSlice {
		return nil
	}
	for _, item := range v.Slice().All() {
		if one := item.Str(); one != "" {
			all = append(all, one)
		}
	}
	return all
}
