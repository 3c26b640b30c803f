package mlviewexporter

import (
	"context"
	"io"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/archive"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/page"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/report"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// writeReports writes the reports that are due. After an error it tries again the next
// time. It logs an error when it changes.
func (v *view) writeReports(ctx context.Context) {
	settled := make(map[string]time.Time)
	var failed error
	for _, run := range v.Settled() {
		if settled[run.Key] = run.Since; v.done[run.Key].Equal(run.Since) || v.archive.Written(run.Key).After(run.Since) {
			continue
		}
		if err := v.writeReport(ctx, &run); err != nil {
			failed = err
			delete(settled, run.Key)
			v.telemetry.builder.ExporterMlViewReportsErrors.Add(ctx, 1, v.telemetry.own)
		}
	}
	v.done = settled
	if v.unwritten.differs(failed) {
		v.set.Logger.Warn("A report of a run could not be written. The page tries again.", zap.Error(failed))
	}
}

// writeReport writes the report of a run in all forms.
func (v *view) writeReport(ctx context.Context, run *runs.Settled) error {
	made, ok := page.ReportOf(v.Store, run.Key, "")
	if !ok {
		return nil // the run has left the page
	}
	forms := mlattr.Mapped(report.Forms, func(form report.Form) archive.Form {
		return archive.Form{Ending: form.Name, Write: func(to io.Writer) error { return form.Write(made, to) }}
	})
	err := v.archive.Write(run.Key, made.Slight(), archive.Share{Path: run.Path, Again: run.Again}, forms...)
	if err == nil {
		v.telemetry.builder.ExporterMlViewReportsWritten.Add(ctx, 1, v.telemetry.own)
	}
	return err
}

// closeReports writes the reports that are due a last time.
func (v *view) closeReports() {
	v.writeReports(context.Background())
	if err := v.archive.Close(); err != nil {
		v.set.Logger.Warn("The directory of reports could not be closed.", zap.Error(err))
	}
}
