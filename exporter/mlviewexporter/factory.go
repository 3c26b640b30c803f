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
		exporter.WithTraces(func(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Traces, error) {
			read, options := instance(views, set, cfg, (*intake.Intake).ConsumeTraces)
			return exporterhelper.NewTraces(ctx, set, cfg, read, options...)
		}, metadata.TracesStability),
		exporter.WithMetrics(func(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Metrics, error) {
			read, options := instance(views, set, cfg, (*intake.Intake).ConsumeMetrics)
			return exporterhelper.NewMetrics(ctx, set, cfg, read, options...)
		}, metadata.MetricsStability),
		exporter.WithLogs(func(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Logs, error) {
			read, options := instance(views, set, cfg, (*intake.Intake).ConsumeLogs)
			return exporterhelper.NewLogs(ctx, set, cfg, read, options...)
		}, metadata.LogsStability),
	)
}

// instance returns the exporter of one signal: what reads its data, and its options. Reading
// never fails: an error would make the sender repeat the request to all exporters of the
// pipeline. Without a queue and a timeout exporterhelper only counts what was read.
func instance[T any](
	views *shared.Registry[*view], set exporter.Settings, cfg component.Config, read func(*intake.Intake, context.Context, T),
) (func(context.Context, T) error, []exporterhelper.Option) {
	use := views.Use(set.ID, func() (*view, error) { return newView(set, cfg.(*Config)) })
	consume := func(ctx context.Context, data T) error {
		read(use.Shared.intake, ctx, data)
		return nil
	}
	return consume, []exporterhelper.Option{
		exporterhelper.WithTimeout(exporterhelper.TimeoutConfig{}),
		exporterhelper.WithStart(use.Start),
		exporterhelper.WithShutdown(use.Shutdown),
	}
}
