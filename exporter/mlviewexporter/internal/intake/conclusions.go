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
	e.Namespace, c.Service = textOf(resource, mlattr.ServiceNamespace), textOf(resource, mlattr.ServiceName)
	readTexts(record, map[string]*string{
		mlattr.ChangeKind: &c.Kind, mlattr.ChangeFrom: &c.From, mlattr.ChangeTo: &c.To, mlattr.RunID: &c.RunID, mlattr.HostName: &c.Host,
	}, nil)
	c.Text = sentence(record.Body())
	return e
}

// readProblem reads a record of ml_metrics about a problem. It reads no command: the
// names in one would be those that clients have sent, and it is copied to a shell.
func readProblem(resource pcommon.Map, record plog.LogRecord) input.Event {
	r := new(input.Record)
	e := input.Event{Time: at(record), Problem: r}
	e.Namespace, r.Service = textOf(resource, mlattr.ServiceNamespace), textOf(resource, mlattr.ServiceName)
	r.Onset = e.Time
	state, evident := "", e.Time
	numbers := map[string]**float64{
		mlattr.ProblemValue: &r.Value, mlattr.ProblemUsual: &r.Usual, mlattr.ProblemGPUs: &r.GPUs, mlattr.ProblemGPUHours: &r.GPUHours,
	}
	lists := map[string]*[]string{mlattr.ProblemEvidence: &r.Evidence, mlattr.ProblemExcluded: &r.Excluded, mlattr.ProblemBefore: &r.Before}
	readTexts(record, map[string]*string{
		mlattr.Problem: &r.Kind, mlattr.ProblemID: &r.ID, mlattr.ProblemState: &state, mlattr.ProblemEndReason: &r.EndReason,
		mlattr.ProblemUnit: &r.Unit, mlattr.ProblemCause: &r.Cause,
		mlattr.RunID: &r.Run, mlattr.HostName: &r.Host, mlattr.HardwareID: &r.GPU,
	}, func(key string, v pcommon.Value) {
		switch key {
		case mlattr.ProblemOnset:
			r.Onset = timeOf(v, r.Onset)
		case mlattr.ProblemEvidenceTime:
			evident = timeOf(v, evident)
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
		case mlattr.ProblemNext:
			r.Next = sentence(v)
		case mlattr.ProblemShadow:
			r.Shadow = isTrue(v)
		case mlattr.RankGlobal:
			// It is what the problem is about, and no holder's.
		default:
			if number := numbers[key]; number != nil {
				*number = numberOf(v)
			} else if list := lists[key]; list != nil {
				*list = phrases(v, maxPhrases)
			} else {
				r.Holder.Read(key, v)
			}
		}
	})
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

// readTexts reads the attributes of a record that are texts, and calls other with the others.
func readTexts(record plog.LogRecord, texts map[string]*string, other func(key string, v pcommon.Value)) {
	for key, v := range record.Attributes().All() {
		if of := texts[key]; of != nil {
			*of = text(v)
		} else if other != nil {
			other(key, v)
		}
	}
}

// textOf returns an attribute as text, "" if there is none.
func textOf(attrs pcommon.Map, key string) string {
	if v, ok := attrs.Get(key); ok {
		return text(v)
	}
	return ""
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
