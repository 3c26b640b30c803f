package incident

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/detect"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/snapshot"
)

// maxRecording is the number of bytes of a recording: a call, and what describes
// it.
const maxRecording = failure.MaxCallBytes + 2<<10

// Recording is the call of a span that did not fail itself: a server of calls
// answers one that raised, and its own span succeeds; the caller's span has the
// error and not the call. The two have an id in common.
type Recording struct {
	// Span has the attributes of the call, and nothing else but its ids.
	Span ptrace.Span
	// From names the span.
	From failure.Origin
}

// AddCall keeps the call of a span that did not fail, if something may still refer
// to it, and adds it to the incident that waits for it. It returns that incident's
// group, or "".
func (tr *Tracker) AddCall(c *detect.Candidate, now time.Time) (group string) {
	correlation := CorrelationOf(c.Span.Attributes())
	id, waits := tr.find(func(i *Incident) bool {
		return correlation != "" && i.Correlation == correlation && i.Failure.Call == nil
	})
	if !waits {
		// A log record may have shown that this span failed.
		id, waits = tr.WaitingAt(c.Key())
	}
	if correlation == "" && !waits {
		return ""
	}
	rec, weight := recordingOf(c, tr.kinds)
	if correlation != "" && weight <= maxRecording {
		names := int64(len(correlation) + len(rec.From.Service) + len(rec.From.Name))
		tr.Calls.Put(correlation, rec, weight+names+snapshot.SpanOverhead, c.Origin(), now)
	}
	if !waits {
		return ""
	}
	replay := tr.kinds.Read(rec.Span)
	if weight > maxRecording {
		// The copy may be without some of the arguments: that is another call.
		replay = failure.Replay{Kind: failure.Context, Reason: failure.TooLarge}
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	i, waits := tr.waiting[id]
	if !waits {
		return ""
	}
	if f := *i.Failure; f.Call == nil && (replay.Call != nil || replay.Reason == failure.TooLarge) {
		if f.Replay = replay; f.Call != nil {
			f.Weight += f.Call.Weight
			tr.bytes += int64(f.Call.Weight)
		}
		if f.Span.TraceID != rec.From.TraceID {
			f.PayloadFrom = &rec.From
		}
		i.Failure = &f
	}
	return i.Failure.Fingerprint
}

// recordingOf copies the attributes of a span's call, and returns the number of
// bytes that they take.
func recordingOf(c *detect.Candidate, kinds kind.Registry) (Recording, int64) {
	copier := snapshot.New()
	rec := Recording{Span: ptrace.NewSpan(), From: failure.Origin{
		Service: c.Service(),
		Name:    copier.Text(c.Span.Name(), snapshot.MaxValue),
		TraceID: snapshot.HexTrace(c.Span.TraceID()),
		SpanID:  snapshot.HexSpan(c.Span.SpanID()),
	}}
	// Nothing but these is read of a call, and what is not weighed would have
	// no bound.
	var weight int64
	for _, name := range kinds.CallAttributes() {
		if v, ok := c.Span.Attributes().Get(name); ok {
			size, ok := mlattr.Size(v, int(maxRecording-weight))
			if weight += snapshot.ValueOverhead + int64(size); ok {
				mlattr.Copy(v, rec.Span.Attributes().PutEmpty(name), size)
			}
		}
	}
	return rec, weight
}

// AddRecorded keeps what a log record has of the call of its span. What comes again, and what
// comes after more than is read of a call, is not kept.
func (tr *Tracker) AddRecorded(key failure.SpanKey, parts []failure.Recorded, origin share.Origin, now time.Time) {
	if len(parts) == 0 {
		return
	}
	tr.mu.Lock()
	defer tr.mu.Unlock()
	known, _ := tr.Recorded.Get(key, now)
	all, weight := slices.Clip(known), int64(snapshot.SpanOverhead)
	for _, part := range slices.Concat(known, parts) {
		if weight > maxRecording {
			break
		}
		weight += int64(len(part.Key)+len(part.Text)) + snapshot.ValueOverhead
		if !slices.Contains(all, part) {
			all = append(all, part)
		}
	}
	tr.Recorded.Put(key, all, weight, origin, now)
}

// AddException keeps the error of a log record until its span fails.
func (tr *Tracker) AddException(c *detect.Candidate, now time.Time) {
	weight := int64(len(c.Err.Type) + len(c.Err.Message) + len(c.Err.Stack) + snapshot.SpanOverhead)
	tr.Exceptions.Put(c.Key(), c.Err, weight, c.Origin(), now)
}
