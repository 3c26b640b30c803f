package mlviewexporter

import (
	"context"
	"io"
	"time"

	"go.opentelemetry.io/collector/exporter"
	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/archive"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/model"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/page"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/report"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// reportWriter writes the report of each run that has settled.
type reportWriter struct {
	*model.Store
	set       exporter.Settings
	telemetry *telemetry
	archive   *archive.Archive
	// done are when the runs settled whose report is written.
	done   map[string]time.Time
	failed lastError
}

// write writes the reports that are due. After an error it tries again the next
// time. It logs an error when it changes.
func (w *reportWriter) write(ctx context.Context) {
	settled := make(map[string]time.Time)
	var failed error
	for _, run := range w.Settled() {
		if settled[run.Key] = run.Since; w.done[run.Key].Equal(run.Since) {
			continue
		}
		if !w.archive.Written(run.Key).After(run.Since) {
			if err := w.writeRun(ctx, &run); err != nil {
				failed = err
				delete(settled, run.Key)
				w.telemetry.builder.ExporterMlViewReportsErrors.Add(ctx, 1, w.telemetry.own)
			}
		}
	}
	w.done = settled
	if w.failed.differs(failed) {
		w.set.Logger.Warn("A report of a run could not be written. The page tries again.", zap.Error(failed))
	}
}

// writeRun writes the report of a run in all forms.
func (w *reportWriter) writeRun(ctx context.Context, run *runs.Settled) error {
	made, ok := page.ReportOf(w.Store, run.Key, "")
	if !ok {
		return nil // the run has left the page
	}
	forms := mlattr.Mapped(report.Forms, func(form report.Form) archive.Form {
		return archive.Form{Ending: form.Name, Write: func(to io.Writer) error { return form.Write(made, to) }}
	})
	err := w.archive.Write(run.Key, made.Slight(), archive.Share{Path: run.Path, Again: run.Again}, forms...)
	if err == nil {
		w.telemetry.builder.ExporterMlViewReportsWritten.Add(ctx, 1, w.telemetry.own)
	}
	return err
}

// close writes the reports that are due a last time.
func (w *reportWriter) close() {
	w.write(context.Background())
	if err := w.archive.Close(); err != nil {
		w.set.Logger.Warn("The directory of reports could not be closed.", zap.Error(err))
	}
}
