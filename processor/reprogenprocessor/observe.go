package reprogenprocessor

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/sender"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/attr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/detect"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/gpustate"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/group"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/incident"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind/genaichat"
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

const maxVersion = 256

// observer finds failures in batches and decides what becomes of each.
type observer struct {
	*account
	kinds     kind.Registry
	detector  detect.Detector
	groups    *group.Counters
	incidents *incident.Tracker
	gpus      *gpustate.State
	serial    atomic.Uint64 // the last incident's id
}

// observeTraces looks at a batch of spans for failures and for what belongs to
// earlier ones. It never blocks and never fails.
func (o *observer) observeTraces(ctx context.Context, td ptrace.Traces) {
	b := o.detector.Traces(td, share.SenderOf(sender.From(ctx)), o.now())
	if len(b.Failed) == 0 && len(b.Calls) == 0 && !b.MayBelong {
		return
	}
	o.dropped(ctx, b.Dropped, dropBatchLimit)
	for i := range b.Calls {
		if group := o.incidents.AddCall(&b.Calls[i], o.now()); group != "" {
			mark(b.Calls[i].Span.Attributes(), group, true)
		}
	}
	chosen, others := detect.Choose(o.kinds, b.Failed)
	// What earlier batches brought is read before this one is noted: of its own
	// spans the choice is made.
	consequence := make([]bool, len(chosen))
	for i := range chosen {
		c := &chosen[i]
		failed, ofRequest := o.groups.HasFailedChild(c.Key(), c.ParentKey())
		consequence[i] = failed && !o.kinds.HasExplanation(c.Span) && (!ofRequest || !attr.IsModelCall(c.Span.Attributes()))
	}
	for i := range others {
		o.groups.ChildFailed(others[i].ParentKey(), attr.IsRequest(others[i].Span.Attributes()) || o.kinds.Explains(others[i].Span))
	}
	mayBelong := b.MayBelong
	for i := range chosen {
		mayBelong = o.observeFailure(ctx, &chosen[i], consequence[i]) || mayBelong
	}
	if mayBelong {
		o.incidents.AddSpans(td)
	}
	o.endOfBatch()
}

// observeLogs looks at a batch of log records for exceptions. It never blocks and
// never fails.
func (o *observer) observeLogs(ctx context.Context, ld plog.Logs) {
	by := share.SenderOf(sender.From(ctx))
	if o.cfg.CaptureContent {
		o.keepRecorded(ld, by)
	}
	b := o.detector.Logs(ld, by, o.now())
	if len(b.Failed) == 0 {
		return
	}
	o.dropped(ctx, b.Dropped, dropBatchLimit)
	for i := range b.Failed {
		if c := &b.Failed[i]; !c.OfLoader() {
			o.observeRecord(ctx, c)
		}
	}
	o.endOfBatch()
}

// keepRecorded keeps what log records have of calls, each until its span is written.
func (o *observer) keepRecorded(ld plog.Logs, by share.Sender) {
	for _, rl := range ld.ResourceLogs().All() {
		origin := (&detect.Candidate{Resource: rl.Resource(), Sender: by}).Origin()
		for _, sl := range rl.ScopeLogs().All() {
			for _, record := range sl.LogRecords().All() {
				if key := (failure.SpanKey{Trace: record.TraceID(), Span: record.SpanID()}); !key.Trace.IsEmpty() && !key.Span.IsEmpty() {
					o.incidents.AddRecorded(key, genaichat.Recorded(record), origin, o.now())
				}
			}
		}
	}
}

// observeRecord takes an exception's record for the failed span that it is about.
func (o *observer) observeRecord(ctx context.Context, c *detect.Candidate) {
	if c.IsFailure() {
		o.observeFailure(ctx, c, false)
		return
	}
	if c.Span.TraceID().IsEmpty() || c.Span.SpanID().IsEmpty() {
		return
	}
	if id, ok := o.incidents.WaitingAt(c.Key()); ok {
		o.improve(id, incident.FromRecord(o.describe(c, nil), c), c)
		return
	}
	o.incidents.AddException(c, o.now())
}

// endOfBatch hands on the incidents that do not wait.
func (o *observer) endOfBatch() {
	if o.cfg.SiblingWait == 0 {
		o.incidents.Release(o.now(), false)
	}
}

// describe works out the kind of a failure, its group and its variant. It reads nothing but
// the span and its resource, so that the span can be marked before any file
// exists. recorded is the span of another trace that has the call, or nil.
func (o *observer) describe(c *detect.Candidate, recorded *incident.Recording) *failure.Failure {
	resource := c.Resource.Attributes()
	f := &failure.Failure{
		Error: c.Err, Trigger: c.Trigger, SentBy: c.Origin(), Service: c.Service(), SeenAt: o.now(),
		Version: snapshot.Text(mlattr.FirstText(resource, mlattr.ServiceVersion), maxVersion),
		Rank:    incident.RankOf(c.Span.Attributes(), resource),
	}
	caller := c.Span
	if recorded != nil {
		caller = recorded.Span
	}
	f.Replay = o.kinds.Read(caller)
	if recorded != nil && recorded.From.TraceID != snapshot.HexTrace(c.Span.TraceID()) {
		f.PayloadFrom = &recorded.From
	}
	if o.kinds.Get(f.Kind).ForeignFrames {
		f.Error.Cause.Frames = nil
	}
	ofRequest := attr.IsRequest(c.Span.Attributes()) || attr.IsModelCall(c.Span.Attributes())
	f.Fingerprint = group.Fingerprint(f, c.Span, resource, ofRequest, o.cfg.CaptureContent)
	f.Variant = group.VariantOf(f, c.Span.Attributes(), resource, o.cfg.CaptureContent)
	return f
}

// observeFailure decides what becomes of a failure. It is copied only if an
// artifact is wanted: of a flood of equal errors, nearly all are only counted. The
// span or record is marked with its group, and with the group's folder only if
// there is one or will be. It reports whether an incident was opened.
func (o *observer) observeFailure(ctx context.Context, c *detect.Candidate, consequence bool) (opened bool) {
	now := o.now()
	if c.Err.Stack == "" && !c.FromLog {
		if e, ok := o.incidents.Exceptions.Get(c.Key(), now); ok {
			c.Err = detect.MergedError(e, c.Err)
		}
	}
	var recorded *incident.Recording
	if correlation := incident.CorrelationOf(c.Span.Attributes()); correlation != "" && !o.kinds.HasCall(c.Span) {
		if call, ok := o.incidents.Calls.Get(correlation, now); ok {
			recorded = &call
		}
	}
	n := incident.New(o.serial.Add(1), o.describe(c, recorded), c, o.kinds)
	d := o.admit(ctx, n, consequence, now)
	switch d.Verdict {
	case group.Consequence:
		return false // the failure began further down, and was counted there
	case group.Repeated:
		o.improve(d.Incident, n, c)
		mark(c.Attributes(), d.Fingerprint, d.HasFolder)
		return false
	case group.Wanted:
		opened = o.open(ctx, n, c, now)
	}
	if d.Verdict != group.RateLimited {
		for _, i := range o.incidents.Supersede(n) {
			o.groups.Withdrawn(i.Failure)
			o.telemetry.ProcessorReproGenDeduplicated.Add(ctx, 1, o.own)
		}
	}
	mark(c.Attributes(), d.Fingerprint, d.HasFolder || opened)
	return opened
}

// admit counts a failure and decides whether it gets an artifact.
func (o *observer) admit(ctx context.Context, n *incident.Incident, consequence bool, now time.Time) group.Decision {
	d := o.groups.Admit(n, consequence, o.incidents.Waits, now)
	switch d.Verdict {
	case group.Counted:
		o.telemetry.ProcessorReproGenDeduplicated.Add(ctx, 1, o.own)
	case group.RateLimited:
		o.dropped(ctx, 1, dropRateLimited)
	case group.Wanted:
	default:
		return d
	}
	o.telemetry.ProcessorReproGenCandidates.Add(ctx, 1, o.own)
	return d
}

// open copies a failure and opens its incident, unless the queue or the memory is
// full.
func (o *observer) open(ctx context.Context, n *incident.Incident, c *detect.Candidate, now time.Time) bool {
	o.copy(n.Failure, c)
	err := o.incidents.Open(n, now)
	if err == nil {
		return true
	}
	reason := dropQueueFull
	if errors.Is(err, incident.ErrMemory) {
		reason = dropMemory
	}
	o.groups.Suppressed(n.Failure)
	o.dropped(ctx, 1, reason)
	return false
}

// improve adds to an incident that waits what another span or record of it has.
func (o *observer) improve(id uint64, n *incident.Incident, c *detect.Candidate) {
	if o.incidents.Improves(id, n) {
		o.copy(n.Failure, c)
		o.incidents.Improve(id, n)
		if n.Failure.Call != nil {
			o.groups.FoundCall(n)
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
	text := strings.ToLower(f.Error.Type + " " + f.Error.Message)
	return slices.Contains([]string{"oom", "timeout", "crash"}, f.Trigger) ||
		slices.ContainsFunc(gpuWords, func(w string) bool { return strings.Contains(text, w) })
}

// copy keeps the failed span, its resource and the state of its GPU: later, its process
// has left that.
func (o *observer) copy(f *failure.Failure, c *detect.Candidate) {
	copier := snapshot.Without(o.kinds.IsPayload)
	f.Span = copier.Span(c.Span, c.Scope)
	if c.FromLog {
		f.Span.Kind = "Log"
	}
	f.Resource = copier.Attributes(c.Resource.Attributes())
	f.Weight = copier.Used() + len(f.Error.Type) + len(f.Error.Message) + len(f.Error.Stack)
	if f.Call != nil {
		f.Weight += f.Call.Weight
	}
	if isOfGPU(f) {
		f.GPUs = o.gpus.Own(runOf(c), f.Rank, c.FailedAt(f.SeenAt))
		for _, line := range f.GPUs {
			f.Weight += len(line)
		}
	}
}

// runOf returns the run of a failure, or "": that which the span names, else that of its process,
// which is also the run of the process's GPUs, else the span's job.
func runOf(c *detect.Candidate) string {
	ofResource, ofSpan := vocabulary.Classify(c.Resource.Attributes(), c.Scope, c.Span)
	for _, run := range [...]func() (id string, inferred bool){ofSpan.NamedRun, ofResource.Run, ofSpan.Run} {
		if id, _ := run(); id != "" {
			return id
		}
	}
	return ""
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
