package reprogenprocessor

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/sender"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/attr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/detect"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/group"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/incident"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/redact"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/snapshot"
)

// Attributes that are written.
const (
	attrArtifactFingerprint = "repro.artifact.fingerprint"
	attrArtifactPath        = "repro.artifact.path"
	attrArtifactKind        = "repro.artifact.kind"
	attrArtifactDirectory   = "repro.artifact.directory"
	attrArtifactOmitted     = "repro.artifact.omitted"
)

const attrServiceVersion = "service.version"

// candidate is a failed span with what earlier batches brought of it.
type candidate struct {
	*detect.Candidate
	// consequence is true if a span below it failed before.
	consequence bool
	// recorded is the span of another trace that has the call, or nil.
	recorded *incident.Recording
}

// observeTraces looks at a batch of spans for failures and for what belongs to
// earlier ones. It never blocks and never fails.
func (r *recorder) observeTraces(ctx context.Context, td ptrace.Traces) {
	b := r.detector.Traces(td, share.SenderOf(sender.From(ctx)), r.now())
	if len(b.Failed) == 0 && len(b.Calls) == 0 && !b.MayBelong {
		return
	}
	r.dropped(ctx, b.Dropped, dropBatchLimit)
	for i := range b.Calls {
		if group := r.incidents.AddCall(&b.Calls[i], r.now()); group != "" {
			mark(b.Calls[i].Span.Attributes(), group, true)
		}
	}
	chosen, others := detect.Choose(r.kinds, b.Failed)
	// What earlier batches brought is read before this one is noted: of its own
	// spans the choice is made.
	candidates := make([]candidate, len(chosen))
	for i := range chosen {
		c := &chosen[i]
		failed, ofRequest := r.groups.HasFailedChild(c.Key(), c.ParentKey())
		candidates[i] = candidate{Candidate: c, consequence: failed && !r.kinds.HasExplanation(c.Span) &&
			(!ofRequest || !r.kinds.IsCall(c.Span.Attributes()))}
	}
	for i := range others {
		r.groups.ChildFailed(others[i].ParentKey(), r.kinds.IsTransport(others[i].Span.Attributes()) || r.kinds.Explains(others[i].Span))
	}
	mayBelong := b.MayBelong
	for i := range candidates {
		mayBelong = r.observeFailure(ctx, &candidates[i]) || mayBelong
	}
	if mayBelong {
		r.incidents.AddSpans(td)
	}
	r.endOfBatch()
}

// observeLogs looks at a batch of log records for exceptions. It never blocks and
// never fails.
func (r *recorder) observeLogs(ctx context.Context, ld plog.Logs) {
	b := r.detector.Logs(ld, share.SenderOf(sender.From(ctx)), r.now())
	if len(b.Failed) == 0 {
		return
	}
	r.dropped(ctx, b.Dropped, dropBatchLimit)
	for i := range b.Failed {
		if c := &b.Failed[i]; !c.OfLoader() {
			r.observeRecord(ctx, c)
		}
	}
	r.endOfBatch()
}

// observeRecord takes an exception's record for the failed span that it is about.
func (r *recorder) observeRecord(ctx context.Context, c *detect.Candidate) {
	if c.IsFailure() {
		r.observeFailure(ctx, &candidate{Candidate: c})
		return
	}
	if c.Span.TraceID().IsEmpty() || c.Span.SpanID().IsEmpty() {
		return
	}
	now := r.now()
	if id, ok := r.incidents.WaitingAt(c.Key()); ok {
		one := &candidate{Candidate: c}
		r.improve(id, incident.FromRecord(r.describe(one), c), one)
		return
	}
	r.incidents.AddException(c, now)
}

// endOfBatch hands on the incidents that do not wait, or cannot wait any longer.
func (r *recorder) endOfBatch() {
	if r.incidents.DueNow() {
		r.release(r.now(), false)
	}
}

// describe works out the kind of a failure, its group and its variant. It reads nothing but
// the span and its resource, so that the span can be marked before any file
// exists.
func (r *recorder) describe(c *candidate) *failure.Failure {
	f := &failure.Failure{Error: c.Err, Trigger: c.Trigger, SentBy: c.Origin(), Service: c.Service()}
	caller := c.Span
	if c.recorded != nil {
		caller = c.recorded.Span
		if c.recorded.From.TraceID != snapshot.HexTrace(c.Span.TraceID()) {
			f.PayloadFrom = &c.recorded.From
		}
	}
	f.Kind, f.Call, f.Reason = r.kinds.Read(caller)
	if r.kinds.Get(f.Kind).ForeignFrames {
		f.Error.Cause.Frames = nil
	}
	ofRequest := r.kinds.IsTransport(c.Span.Attributes()) || r.kinds.IsCall(c.Span.Attributes())
	f.Fingerprint = group.Fingerprint(f, c.Span, c.Resource.Attributes(), ofRequest, r.cfg.CaptureContent)
	f.Variant = group.VariantOf(f, c.Span.Attributes(), c.Resource.Attributes(), r.cfg.CaptureContent)
	return f
}

// observeFailure decides what becomes of a failure. It is copied only if an
// artifact is wanted: of a flood of equal errors, nearly all are only counted. The
// span or record is marked with its group, and with the group's folder only if
// there is one or will be. It reports whether an incident was opened.
func (r *recorder) observeFailure(ctx context.Context, c *candidate) (opened bool) {
	now := r.now()
	if c.Err.Stack == "" && !c.FromLog {
		if e, ok := r.incidents.Exception(c.Key(), now); ok {
			c.Err = detect.MergedError(e, c.Err)
		}
	}
	if correlation := incident.CorrelationOf(c.Span.Attributes()); correlation != "" && !r.kinds.HasCall(c.Span) {
		if call, ok := r.incidents.Call(correlation, now); ok {
			c.recorded = &call
		}
	}
	f := r.describe(c)
	f.SeenAt = now
	n := incident.New(r.serial.Add(1), f, c.Candidate, r.kinds, now)
	d := r.admit(ctx, n, c, now)
	switch d.Verdict {
	case group.Consequence:
		return false // the failure began further down, and was counted there
	case group.Repeated:
		r.improve(d.Incident, n, c)
	case group.Wanted:
		opened = r.open(ctx, n, c, now)
		d.HasFolder = d.HasFolder || opened
	}
	if d.Verdict == group.Wanted || d.Verdict == group.Counted {
		for _, i := range r.incidents.Supersede(n) {
			r.withdrawn(ctx, i)
		}
	}
	mark(c.Attributes(), d.Fingerprint, d.HasFolder)
	return opened
}

// admit counts a failure and decides whether it gets an artifact.
func (r *recorder) admit(ctx context.Context, n *incident.Incident, c *candidate, now time.Time) group.Decision {
	o := r.occurrenceOf(n, c)
	d := r.groups.Admit(o, now)
	if d.Verdict == group.Repeated && d.Better {
		if waits, _ := r.incidents.Waits(d.Incident, n); !waits {
			// The first artifact is written. A span that can be replayed is
			// worth another one.
			o.Again = true
			d = r.groups.Admit(o, now)
		}
	}
	r.count(ctx, d.Verdict)
	return d
}

func (r *recorder) occurrenceOf(n *incident.Incident, c *candidate) group.Occurrence {
	f := n.Failure
	o := group.Occurrence{
		Fingerprint: n.Group, Service: f.Service, Origin: f.SentBy, Rank: n.Rank,
		Version: snapshot.New().Text(attr.Text(c.Resource.Attributes(), attrServiceVersion), incident.MaxID),
		Span:    c.Key(), Parent: c.ParentKey(), Correlation: n.Correlation,
		Type: mlattr.ClassName(f.Error.Type), Message: f.Error.Message,
		Consequence: c.consequence, OfRequest: n.OfRequest(), HasCall: f.Call != nil, Incident: n.ID,
		Variant: f.Variant,
	}
	if !r.cfg.CaptureContent {
		o.Service, o.Rank, o.Version = redact.Word(o.Service), redact.Word(o.Rank), redact.Word(o.Version)
	}
	return o
}

// open copies a failure and opens its incident, unless the queue or the memory is
// full.
func (r *recorder) open(ctx context.Context, n *incident.Incident, c *candidate, now time.Time) bool {
	if !r.queue.Reserve(n) {
		r.refused(ctx, n, dropQueueFull)
		return false
	}
	r.copy(n, c)
	if !r.incidents.Open(n, now) {
		r.queue.Release(n)
		r.refused(ctx, n, dropMemory)
		return false
	}
	return true
}

// improve adds to an incident that waits what another span or record of it has.
func (r *recorder) improve(id uint64, n *incident.Incident, c *candidate) {
	if _, improves := r.incidents.Waits(id, n); improves {
		r.copy(n, c)
		r.incidents.Improve(id, n)
		if n.Failure.Call != nil {
			r.groups.FoundCall(r.occurrenceOf(n, c))
		}
	}
}

// gpuWords are, in lower case, what messages and classes of errors contain that concern
// GPUs, or ranks that wait for each other.
var gpuWords = []string{
	"cuda", "gpu", "nccl", "out of memory", "outofmemory", "hip error", "xla", "resource_exhausted", "accelerator",
	"gloo", "collective", "distbackenderror", "distnetworkerror", "watchdog", "timed out", "timeout",
}

// isOfGPU reports whether a failure concerns the GPU of its process.
func isOfGPU(f *failure.Failure) bool {
	switch f.Trigger {
	case "oom", "timeout", "crash":
		return true
	}
	text := strings.ToLower(f.Error.Type + " " + f.Error.Message)
	return slices.ContainsFunc(gpuWords, func(w string) bool { return strings.Contains(text, w) })
}

// copy keeps the failed span, its resource and the state of its GPU: later, its process
// has left that.
func (r *recorder) copy(n *incident.Incident, c *candidate) {
	copier := snapshot.Without(r.kinds.IsPayload)
	n.Failure.Span = copier.Span(c.Span, c.Scope)
	if c.FromLog {
		n.Failure.Span.Kind = "Log"
	}
	n.Failure.Resource = copier.Attributes(c.Resource.Attributes())
	e := n.Failure.Error
	n.Failure.Weight = copier.Used() + len(e.Type) + len(e.Message) + len(e.Stack)
	if n.Failure.Call != nil {
		n.Failure.Weight += n.Failure.Call.Weight
	}
	if isOfGPU(n.Failure) {
		// The points of GPUs have the run that ml_enrich wrote, inferred or not.
		run := attr.TextIn([]pcommon.Map{c.Span.Attributes(), c.Resource.Attributes()}, mlattr.RunID)
		n.Failure.GPUs = r.gpus.Own(cmp.Or(run, n.Run), n.Rank, n.At)
		for _, line := range n.Failure.GPUs {
			n.Failure.Weight += len(line)
		}
	}
}

// mark writes onto a span or record where its artifact is. The path that a client
// sent is removed.
func mark(attributes pcommon.Map, fingerprint string, folder bool) {
	attributes.PutStr(attrArtifactFingerprint, fingerprint)
	if folder {
		attributes.PutStr(attrArtifactPath, fingerprint)
	} else {
		attributes.Remove(attrArtifactPath)
	}
}

// refused notes that a failure for which an artifact was wanted gets none.
func (r *recorder) refused(ctx context.Context, i *incident.Incident, reason string) {
	r.groups.Suppressed(i.Group, i.Failure.Variant.ID)
	r.dropped(ctx, 1, reason)
}

// withdrawn notes that an incident which waited needs no artifact, because another
// one has everything that is known of it.
func (r *recorder) withdrawn(ctx context.Context, i *incident.Incident) {
	r.queue.Release(i)
	r.groups.Withdrawn(i.Group, i.Variant)
	r.telemetry.ProcessorReproGenDeduplicated.Add(ctx, 1, r.own)
}

// count counts what was decided about a failure.
func (r *recorder) count(ctx context.Context, v group.Verdict) {
	switch v {
	case group.Wanted:
		r.telemetry.ProcessorReproGenCandidates.Add(ctx, 1, r.own)
	case group.Counted:
		r.telemetry.ProcessorReproGenCandidates.Add(ctx, 1, r.own)
		r.telemetry.ProcessorReproGenDeduplicated.Add(ctx, 1, r.own)
	case group.RateLimited:
		r.telemetry.ProcessorReproGenCandidates.Add(ctx, 1, r.own)
		r.dropped(ctx, 1, dropRateLimited)
	}
}
