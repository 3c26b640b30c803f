package mlviewexporter

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/intake"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// NewFactory returns the factory of the ml_view exporter.
func NewFactory() exporter.Factory {
	views := new(shared.Registry[*view]) // the instances of a component id share one page
	return exporter.NewFactory(
		metadata.Type,
		createDefaultConfig,
		exporter.WithTraces(creating(views, (*intake.Intake).ConsumeTraces, exporterhelper.NewTraces), metadata.TracesStability),
		exporter.WithMetrics(creating(views, (*intake.Intake).ConsumeMetrics, exporterhelper.NewMetrics), metadata.MetricsStability),
		exporter.WithLogs(creating(views, (*intake.Intake).ConsumeLogs, exporterhelper.NewLogs), metadata.LogsStability),
	)
}

// creating returns what creates the exporter of one signal with exporterhelper. Reading never
// fails: an error would make the sender repeat the request to all exporters of the pipeline.
// Without a queue and a timeout exporterhelper only counts what was read.
func creating[T, E any, C ~func(context.Context, T) error](
	views *shared.Registry[*view], read func(*intake.Intake, context.Context, T),
	create func(context.Context, exporter.Settings, component.Config, C, ...exporterhelper.Option) (E, error),
) func(context.Context, exporter.Settings, component.Config) (E, error) {
	return func(ctx context.Context, set exporter.Settings, cfg component.Config) (E, error) {
		use := views.Use(set.ID, func() (*view, error) { return newView(set, cfg.(*Config)) })
		consume := func(ctx context.Context, data T) error {
			read(use.Shared.intake, ctx, data)
			return nil
		}
		return create(ctx, set, cfg, consume,
			exporterhelper.WithTimeout(exporterhelper.TimeoutConfig{}),
			exporterhelper.WithStart(use.Start),
			exporterhelper.WithShutdown(use.Shutdown))
	}
}
