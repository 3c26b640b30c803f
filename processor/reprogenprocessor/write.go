package reprogenprocessor

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/artifact"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/group"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/incident"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/store"
)

// disk is where artifacts and summaries are kept. It is safe for concurrent use.
type disk interface {
	WriteGroup(store.Group) error
	Write(fingerprint, name string, origin share.Origin, files []store.File) error
	Add(fingerprint, name string, files []store.File) error
	Enforce(now time.Time, path func(share.Origin) share.Path) ([]store.Artifact, error)
	Bytes() int64
	Close() error
}

// writer writes artifacts, and keeps the groups' summaries on disk as groups has them.
type writer struct {
	*account
	kinds     kind.Registry
	groups    *group.Counters
	incidents *incident.Tracker
	artifacts *artifact.Builder
	disk      disk // opened by Start, unless a test has set another
	outlets   shared.Outlets
	working   atomic.Int64 // artifacts that are being written

	// summaries is held from the making of a group's summary until it is on disk, so
	// that of two writers none leaves the older one there.
	summaries sync.Mutex
}

// write makes an artifact. Errors are counted and not returned.
func (w *writer) write(i *incident.Incident) {
	w.working.Add(1)
	defer w.working.Add(-1)
	w.incidents.Begin(i)
	defer w.incidents.Done(i)
	ctx := context.Background()
	begun := time.Now()
	f := *i.Failure
	f.Recorded, _ = w.incidents.Recorded.Get(i.Span, w.now())
	f = *w.kinds.FromFailure(&f)
	if !w.cfg.CaptureContent {
		f = *artifact.WithoutContent(&f)
	}
	err := w.writeFiles(ctx, &f)
	w.telemetry.ProcessorReproGenWriteDuration.Record(ctx, time.Since(begun).Seconds(), w.own)
	switch {
	case err == nil:
	case errors.Is(err, store.ErrExists):
		w.groups.Withdrawn(&f)
		w.telemetry.ProcessorReproGenDeduplicated.Add(ctx, 1, w.own)
	default:
		w.groups.Suppressed(&f)
	}
}

// writeFiles writes the files of an artifact and its group's summary.
func (w *writer) writeFiles(ctx context.Context, f *failure.Failure) error {
	files, f, err := w.build(ctx, f)
	if err != nil {
		return err
	}
	name := store.ArtifactName(f.SeenAt, f.Span.TraceID, f.Span.SpanID)
	err = w.disk.Write(f.Fingerprint, name, f.SentBy, files.All())
	if errors.Is(err, store.ErrExists) {
		return err
	}
	if err != nil {
		reason := dropWriteError
		if errors.Is(err, store.ErrNoSpace) {
			reason = dropNoSpace
		}
		w.dropped(ctx, 1, reason)
		w.warn("An artifact could not be written", err)
		return err
	}
	w.telemetry.ProcessorReproGenWritten.Add(ctx, 1, w.own)
	for _, p := range files.Redactions {
		w.telemetry.ProcessorReproGenRedactions.Add(ctx, 1, metric.WithAttributes(w.id, attribute.String("rule", p.Rule)))
	}
	w.summarise(f, name)
	w.enforce()
	w.logger.Info("Wrote a reproduction artifact",
		zap.String("kind", string(f.Kind)), zap.String("path", f.Fingerprint+"/"+name))
	w.emit(ctx, f, name, files)
	return nil
}

// build renders a failure; where the call cannot be written safely, without
// it.
func (w *writer) build(ctx context.Context, f *failure.Failure) (artifact.Files, *failure.Failure, error) {
	files, err := w.artifacts.Build(f)
	if err == nil {
		return files, f, nil
	}
	reason := failure.UnsafeOutput
	if errors.Is(err, artifact.ErrTooLarge) {
		reason = failure.TooLargeOutput
	}
	w.dropped(ctx, 1, string(reason))
	f = artifact.WithoutCall(f, reason)
	files, err = w.artifacts.Build(f)
	return files, f, err
}

// summarise adds an artifact to its group's summary.
func (w *writer) summarise(f *failure.Failure, name string) {
	w.summaries.Lock()
	defer w.summaries.Unlock()
	w.writeGroup(w.groups.Written(f, name))
}

func (w *writer) writeGroup(g store.Group) {
	if err := w.disk.WriteGroup(g); err != nil {
		w.groups.Changed(g.Fingerprint)
		w.warn("The summary of a group could not be written", err)
	}
}

// flush writes the summaries that changed.
func (w *writer) flush() {
	w.summaries.Lock()
	defer w.summaries.Unlock()
	for _, g := range w.groups.TakeChanged() {
		w.writeGroup(g)
	}
}

// enforce removes what exceeds the retention limits.
func (w *writer) enforce() {
	removed, err := w.disk.Enforce(w.now(), w.groups.Path)
	if err != nil {
		w.warn("An artifact could not be removed", err)
	}
	for _, a := range removed {
		w.groups.Removed(a.Fingerprint, a.Name)
	}
	if len(removed) > 0 {
		w.telemetry.ProcessorReproGenRemoved.Add(context.Background(), int64(len(removed)), w.own)
	}
}
