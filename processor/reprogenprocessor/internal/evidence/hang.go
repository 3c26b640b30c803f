// Package evidence gathers what the host of a run that hangs knows: where its processes
// wait, what its GPUs do, what the collectives' libraries recorded. A minute later the
// run may be gone, and with it all of that.
package evidence

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/flightrecorder"
)

// Hang is a problem of ml_metrics that says that a run waits. Its form in JSON is a row of ml_view.
type Hang struct {
	// ID is the problem's, Kind its kind.
	ID, Kind string
	// Run, Service, Job and Container say whose processes wait, "" if unknown.
	Run                     string `json:"run_id"`
	Service, Job, Container string
	// Text says what is wrong in one sentence, Evidence why, and Next where to look.
	Text     string `json:"subject"`
	Next     string
	Evidence []string
	// Onset is since when it hangs, Detected when that was concluded, or heard.
	Onset    time.Time `json:"since"`
	Detected time.Time
	// Elsewhere reports whether a gateway has concluded it, perhaps of other hosts.
	Elsewhere bool
}

// maxEvidence bounds the sentences that are read of a record, and maxSentence each, in bytes.
const maxEvidence, maxSentence = 32, 1024

// WaitEvent is the name of the nccl receiver's log records that say a Verdict.
const WaitEvent = "pytorch.flight_recorder.wait"

// Verdict says which ranks of a run wait for which, by dumps. Run is "" if it is unknown.
type Verdict struct {
	Run, Text string
	At        time.Time
}

// Verdict returns what a gateway says of the dumps of the run, and whether it says it.
func (h *Hang) Verdict() (said Verdict, ok bool) {
	var sentences []string
	for _, one := range h.Evidence {
		if text, of := strings.CutPrefix(one, flightrecorder.EvidencePrefix); of && text != "" {
			sentences = append(sentences, text)
		}
	}
	return Verdict{h.Run, flightrecorder.Join(sentences), h.Detected}, len(sentences) > 0 && strings.Contains(sentences[0], " wait")
}

// VerdictOf returns what a log record of a WaitEvent says.
func VerdictOf(record plog.LogRecord) Verdict {
	return Verdict{mlattr.CutText(mlattr.FirstText(record.Attributes(), mlattr.RunID), maxSentence), oneLine(record.Body().Str()), record.Timestamp().AsTime()}
}

// HangOf returns the hang that begins, as a log record of ml_metrics says, and whether it says one.
func HangOf(resource pcommon.Map, record plog.LogRecord) (h Hang, ok bool) {
	if record.EventName() != mlattr.Problem {
		return Hang{}, false
	}
	attrs := record.Attributes()
	text := func(key string) string { return mlattr.CutText(mlattr.FirstText(attrs, key), maxSentence) }
	if !slices.Contains(mlattr.Hangs(), text(mlattr.Problem)) || text(mlattr.ProblemState) != mlattr.ProblemBegan {
		return Hang{}, false
	}
	h = Hang{
		ID: text(mlattr.ProblemID), Kind: text(mlattr.Problem), Run: text(mlattr.RunID), Service: text(mlattr.ServiceName),
		Job: text(mlattr.SlurmJobID), Container: text(mlattr.ContainerID), Next: text(mlattr.ProblemNext),
		Detected: record.Timestamp().AsTime(), Text: mlattr.CutText(record.Body().Str(), maxSentence),
	}
	h.Service = cmp.Or(mlattr.FirstText(resource, mlattr.ServiceName), h.Service)
	if onset, ok := attrs.Get(mlattr.ProblemOnset); ok && onset.Type() == pcommon.ValueTypeDouble {
		h.Onset = time.UnixMilli(int64(onset.Double() * 1000)).UTC()
	}
	if list, ok := attrs.Get(mlattr.ProblemEvidence); ok && list.Type() == pcommon.ValueTypeSlice {
		for i := range min(list.Slice().Len(), maxEvidence) {
			if one := list.Slice().At(i); one.Type() == pcommon.ValueTypeStr {
				h.Evidence = append(h.Evidence, mlattr.CutText(one.Str(), maxSentence))
			}
		}
	}
	return h, h.ID != ""
}
