package intake

import (
	"math"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// maxPhrases limits the phrases that are read of one attribute, maxHeld the GPUs of a
// problem.
const maxPhrases, maxHeld = 16, 64

// readChange reads a record of ml_metrics about something new.
func readChange(resource pcommon.Map, record plog.LogRecord) input.Event {
	c := &api.Change{Time: at(record)}
	e := input.Event{Time: c.Time, Change: c}
	e.Namespace, c.Service = programOf(resource)
	for key, v := range record.Attributes().All() {
		switch key {
		case mlattr.ChangeKind:
			c.Kind = text(v)
		case mlattr.ChangeFrom:
			c.From = text(v)
		case mlattr.ChangeTo:
			c.To = text(v)
		case mlattr.RunID:
			c.RunID = text(v)
		case mlattr.HostName:
			c.Host = text(v)
		}
	}
	c.Text = sentence(record.Body())
	return e
}

// readProblem reads a record of ml_metrics about a problem. It reads no command: the
// names in one would be those that clients have sent, and it is copied to a shell.
func readProblem(resource pcommon.Map, record plog.LogRecord) input.Event {
	r := new(input.Record)
	e := input.Event{Time: at(record), Problem: r}
	e.Namespace, r.Service = programOf(resource)
	r.Onset = e.Time
	state, evident := "", e.Time
	for key, v := range record.Attributes().All() {
		switch key {
		case mlattr.Problem:
			r.Kind = text(v)
		case mlattr.ProblemID:
			r.ID = text(v)
		case mlattr.ProblemState:
			state = text(v)
		case mlattr.ProblemOnset:
			r.Onset = timeOf(v, r.Onset)
		case mlattr.ProblemEvidenceTime:
			evident = timeOf(v, evident)
		case mlattr.ProblemEndReason:
			r.EndReason = text(v)
		case mlattr.ProblemValue:
			r.Value = numberOf(v)
		case mlattr.ProblemUsual:
			r.Usual = numberOf(v)
		case mlattr.ProblemGPUs:
			r.GPUs = numberOf(v)
		case mlattr.ProblemHeld:
			r.Held = phrases(v, maxHeld)
		case mlattr.ProcessID:
			r.PID = mlattr.ReadPID(v)
		case mlattr.NVIDIAIndex:
			if index, ok := mlattr.ReadInt(v); ok && index >= 0 && index <= math.MaxUint16 {
				r.GPUIndex = &index
			}
		case mlattr.GPURecoveryAction:
			r.Recovery, _ = mlattr.ReadInt(v)
		case mlattr.ProblemGPUHours:
			r.GPUHours = numberOf(v)
		case mlattr.ProblemUnit:
			r.Unit = text(v)
		case mlattr.RunID:
			r.Run = text(v)
		case mlattr.HostName:
			r.Host = text(v)
		case mlattr.HardwareID:
			r.GPU = text(v)
		case mlattr.ProblemEvidence:
			r.Evidence = phrases(v, maxPhrases)
		case mlattr.ProblemExcluded:
			r.Excluded = phrases(v, maxPhrases)
		case mlattr.ProblemBefore:
			r.Before = phrases(v, maxPhrases)
		case mlattr.ProblemNext:
			r.Next = sentence(v)
		case mlattr.ProblemCause:
			r.Cause = text(v)
		case mlattr.ProblemShadow:
			r.Shadow = isTrue(v)
		case mlattr.RankGlobal:
			// It is what the problem is about, and no holder's.
		default:
			r.Holder.Read(key, v)
		}
	}
	switch state {
	case mlattr.ProblemUpdated:
		r.Updated = true
	case mlattr.ProblemStale:
		r.Stale = evident
	case mlattr.ProblemEnded:
		r.Ended = e.Time
	}
	return e
}

// timeOf returns a time in seconds since 1970, or another one if v is none.
func timeOf(v pcommon.Value, other time.Time) time.Time {
	// Beyond that a time in nanoseconds overflows.
	if seconds, ok, _ := mlattr.ReadDouble(v); ok && seconds > 0 && seconds < math.MaxInt64/1e9 {
		return time.Unix(0, int64(seconds*1e9)).UTC()
	}
	return other
}

// programOf returns the service.namespace and the service.name of a resource.
func programOf(resource pcommon.Map) (namespace, service string) {
	for key, v := range resource.All() {
		switch key {
		case mlattr.ServiceNamespace:
			namespace = text(v)
		case mlattr.ServiceName:
			service = text(v)
		}
	}
	return namespace, service
}

// sentence returns a text as it is, or "". The model limits it.
func sentence(v pcommon.Value) string {
	if v.Type() != pcommon.ValueTypeStr {
		return ""
	}
	return v.Str()
}

// phrases returns the first texts of a list.
func phrases(v pcommon.Value, limit int) (all []string) {
	if v.Type() != pcommon.ValueTypeSlice {
		return nil
	}
	for i := range min(v.Slice().Len(), limit) {
		if one := sentence(v.Slice().At(i)); one != "" {
			all = append(all, one)
		}
	}
	return all
}

// numberOf returns a finite number, or nil.
func numberOf(v pcommon.Value) *float64 {
	if number, ok, _ := mlattr.ReadDouble(v); ok {
		return &number
	}
	return nil
}
