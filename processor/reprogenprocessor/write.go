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
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/incident"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/redact"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/store"
)

// work writes until Shutdown, and then what is left until the deadline. A select takes
// any case that is ready: a full queue does not hide that the deadline has passed, because
// that is asked first.
func (r *recorder) work() {
	for r.aborted.Err() == nil {
		select {
		case i := <-r.queue.Ready():
			r.write(i)
		case <-r.handed:
			if len(r.queue.Ready()) == 0 {
				return
			}
		}
	}
}

// write makes an artifact. Errors are counted and not returned.
func (r *recorder) write(i *incident.Incident) {
	r.working.Add(1)
	defer r.working.Add(-1)
	r.queue.Release(i)
	defer r.incidents.Done(i)
	ctx := context.Background()
	begun := time.Now()
	f := r.kinds.FromFailure(i.Failure)
	if !r.cfg.CaptureContent {
		f = artifact.WithoutContent(f)
	}
	err := r.writeFiles(ctx, f)
	r.telemetry.ProcessorReproGenWriteDuration.Record(ctx, time.Since(begun).Seconds(), r.own)
	switch {
	case err == nil:
	case errors.Is(err, store.ErrExists):
		r.groups.Withdrawn(f.Fingerprint, f.Variant.ID)
		r.telemetry.ProcessorReproGenDeduplicated.Add(ctx, 1, r.own)
	default:
		r.groups.Suppressed(f.Fingerprint, f.Variant.ID)
	}
}

// writeFiles writes the files of an artifact and its group's summary.
func (r *recorder) writeFiles(ctx context.Context, f *failure.Failure) error {
	files, f, err := r.build(ctx, f)
	if err != nil {
		return err
	}
	name := store.ArtifactName(f.SeenAt, f.Span.TraceID, f.Span.SpanID)
	err = r.disk.Write(f.Fingerprint, name, f.SentBy, files.All())
	if errors.Is(err, store.ErrExists) {
		return err
	}
	if err != nil {
		r.failed(ctx, err)
		return err
	}
	r.telemetry.ProcessorReproGenWritten.Add(ctx, 1, r.own)
	r.redacted(ctx, files.Redactions)
	r.summaries.Written(f, name)
	r.enforce()
	r.diskBytes.Store(r.disk.Bytes())
	r.logger.Info("Wrote a reproduction artifact",
		zap.String("kind", string(f.Kind)), zap.String("path", f.Fingerprint+"/"+name))
	r.emit(ctx, f, name, files)
	return nil
}

// failed counts a write that failed.
func (r *recorder) failed(ctx context.Context, err error) {
	reason := dropWriteError
	if errors.Is(err, store.ErrNoSpace) {
		reason = dropNoSpace
	}
	r.dropped(ctx, 1, reason)
	r.warn("An artifact could not be written", err)
}

func (r *recorder) redacted(ctx context.Context, paths []redact.Path) {
	for _, p := range paths {
		r.telemetry.ProcessorReproGenRedactions.Add(ctx, 1,
			metric.WithAttributes(r.id, attribute.String("rule", p.Rule)))
	}
}

// build renders a failure; where the call cannot be written safely, without
// it.
func (r *recorder) build(ctx context.Context, f *failure.Failure) (artifact.Files, *failure.Failure, error) {
	files, err := r.artifacts.Build(f)
	if err == nil {
		return files, f, nil
	}
	reason, drop := failure.UnsafeOutput, dropUnsafeOutput
	if errors.Is(err, artifact.ErrTooLarge) {
		reason, drop = failure.TooLargeOutput, dropTooLarge
	}
	r.dropped(ctx, 1, drop)
	f = artifact.WithoutCall(f, reason)
	files, err = r.artifacts.Build(f)
	return files, f, err
}

// enforce removes what exceeds the retention limits.
func (r *recorder) enforce() {
	if removed := r.summaries.Enforce(r.now()); removed > 0 {
		r.telemetry.ProcessorReproGenRemoved.Add(context.Background(), int64(removed), r.own)
		r.diskBytes.Store(r.disk.Bytes())
	}
}
