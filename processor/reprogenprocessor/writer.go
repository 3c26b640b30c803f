package reprogenprocessor

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/artifact"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/payload"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/redact"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/store"
)

// work writes until Shutdown, and then what is left until the deadline.
func (r *recorder) work() {
	for !r.stopping() {
		select {
		case i := <-r.queue:
			r.write(i)
		case i := <-r.rewrites:
			r.rewrite(i)
		case <-r.stop:
		}
	}
	<-r.told
	for {
		select {
		case <-r.abort:
			return
		default:
		}
		select {
		case i := <-r.queue:
			r.write(i)
		default:
			return
		}
	}
}

// stopping is asked before each wait, because a select takes any case that is
// ready: a full queue must not hide that the deadline has passed.
func (r *recorder) stopping() bool {
	select {
	case <-r.stop:
		return true
	default:
		return false
	}
}

// write makes an artefact. Whatever goes wrong is counted and stays here.
func (r *recorder) write(i *incident) {
	r.working.Add(1)
	defer r.working.Add(-1)
	r.unreserve(i)
	ctx := context.Background()
	begun := time.Now()
	f := r.tell(i)
	name, err := r.writeFiles(ctx, f)
	r.telemetry.ProcessorReproGenWriteDuration.Record(ctx, time.Since(begun).Seconds(), r.own)
	switch {
	case err == nil:
		r.book.wrote(i, name)
	case errors.Is(err, store.ErrExists):
		r.book.lost(i)
		r.ledger.withdrew(f.Fingerprint, f.Variant.ID)
		r.telemetry.ProcessorReproGenDeduplicated.Add(ctx, 1, r.own)
	default:
		r.book.lost(i)
		r.ledger.gaveUp(f.Fingerprint, f.Variant.ID)
	}
}

// tell returns what of an incident may be written.
func (r *recorder) tell(i *incident) *failure.Failure {
	f := withoutCall(r.book.tell(i, r.now()), r.cfg)
	r.around(f)
	if !r.cfg.CaptureContent {
		f = artifact.WithoutContent(f)
	}
	return f
}

// writeFiles writes the files of an artefact and its group's summary.
func (r *recorder) writeFiles(ctx context.Context, f *failure.Failure) (name string, err error) {
	files, f, err := r.build(ctx, f)
	if err != nil {
		return "", err
	}
	name = store.ArtifactName(f.SeenAt, f.Span.TraceID, f.Span.SpanID)
	err = r.disk.Write(f.Fingerprint, name, f.SentBy, []store.File{
		{Name: artifact.ScriptName, Content: files.Script},
		{Name: artifact.TraceName, Content: files.Trace},
		{Name: artifact.ReportName, Content: files.Report},
	})
	if errors.Is(err, store.ErrExists) {
		return "", err
	}
	if err != nil {
		r.failed(ctx, "An artefact could not be written", err)
		return "", err
	}
	r.telemetry.ProcessorReproGenWritten.Add(ctx, 1, r.own)
	r.redacted(ctx, files.Redactions)
	if n := len(f.Withheld); n > 0 {
		r.telemetry.ProcessorReproGenRedactions.Add(ctx, int64(n), metric.WithAttributes(r.id, attribute.String("rule", "content")))
	}
	r.summarize(f, name)
	r.enforce()
	r.diskBytes.Store(r.disk.Bytes())
	r.logger.Info("Wrote a reproduction artefact",
		zap.String("kind", string(f.Kind)), zap.String("path", f.Fingerprint+"/"+name))
	r.emit(ctx, f, name, files)
	return name, nil
}

// summarize notes an artefact in its group's summary.
func (r *recorder) summarize(f *failure.Failure, name string) {
	r.summaries.Lock()
	defer r.summaries.Unlock()
	old, _ := r.disk.ReadGroup(f.Fingerprint)
	group := r.ledger.wrote(f, name, old)
	if err := r.disk.WriteGroup(group); err != nil {
		r.ledger.markDirty(f.Fingerprint)
		r.warn("The summary of a group could not be written", err)
	}
}

// failed counts a write that failed.
func (r *recorder) failed(ctx context.Context, message string, err error) {
	reason := dropWriteError
	if errors.Is(err, store.ErrNoSpace) {
		reason = dropNoSpace
	}
	r.dropped(ctx, 1, reason)
	r.warn(message, err)
}

func (r *recorder) redacted(ctx context.Context, paths []redact.Path) {
	for _, p := range paths {
		r.telemetry.ProcessorReproGenRedactions.Add(ctx, 1,
			metric.WithAttributes(r.id, attribute.String("rule", p.Rule)))
	}
}

// rewrite puts what has come since into an artefact's trace.json.
func (r *recorder) rewrite(i *incident) {
	defer r.working.Add(-1)
	ctx := context.Background()
	f := r.tell(i)
	content, redactions := artifact.BuildTrace(f)
	err := r.disk.Replace(f.Fingerprint, i.file, artifact.TraceName, content)
	switch {
	case errors.Is(err, store.ErrGone):
		r.book.lost(i)
	case err != nil:
		r.warn("An artefact could not be enriched", err)
	default:
		r.telemetry.ProcessorReproGenEnriched.Add(ctx, 1, r.own)
		r.redacted(ctx, redactions)
		r.diskBytes.Store(r.disk.Bytes())
	}
}

// build renders a failure; where the call cannot be written safely, without
// it.
func (r *recorder) build(ctx context.Context, f *failure.Failure) (artifact.Files, *failure.Failure, error) {
	gates := artifact.Gates{
		AllowedModules: r.cfg.AllowedModules, AllowedCommands: r.cfg.AllowedCommands, AllowedHosts: r.cfg.AllowedHosts,
	}
	files, err := artifact.Build(f, gates, r.cfg.MaxArtifactBytes)
	if err == nil {
		return files, f, nil
	}
	reason, drop := payload.UnsafeOutput, dropUnsafeOutput
	if errors.Is(err, artifact.ErrTooLarge) {
		reason, drop = payload.TooLargeOutput, dropTooLarge
	}
	r.dropped(ctx, 1, drop)
	f = artifact.WithoutCall(f, reason)
	files, err = artifact.Build(f, gates, r.cfg.MaxArtifactBytes)
	return files, f, err
}

// enforce removes what passes the retention limits.
func (r *recorder) enforce() {
	removed, err := r.disk.Enforce(r.now(), r.standings.Path)
	if err != nil {
		r.warn("An artefact could not be removed", err)
	}
	for _, a := range removed {
		r.ledger.removed(a.Fingerprint, a.Name)
	}
	if len(removed) > 0 {
		r.telemetry.ProcessorReproGenRemoved.Add(context.Background(), int64(len(removed)), r.own)
		r.diskBytes.Store(r.disk.Bytes())
	}
}

// flush writes the summaries that changed, and what is known of groups without
// an artefact, which have no folder.
func (r *recorder) flush() {
	r.flushGroups()
	if groups, changed := r.ledger.takeCounts(); changed {
		if err := r.disk.WriteCounts(groups); err != nil {
			r.ledger.markCounts()
			r.warn("The counts of failures without an artefact could not be written", err)
		}
	}
}

func (r *recorder) flushGroups() {
	r.summaries.Lock()
	defer r.summaries.Unlock()
	for _, g := range r.ledger.takeDirty() {
		if err := r.disk.WriteGroup(g); err != nil {
			r.ledger.markDirty(g.Fingerprint)
			r.warn("The summary of a group could not be written", err)
		}
	}
}
