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
	f := &factory{}
	return exporter.NewFactory(
		metadata.Type,
		createDefaultConfig,
		exporter.WithTraces(f.createTraces, metadata.TracesStability),
		exporter.WithMetrics(f.createMetrics, metadata.MetricsStability),
		exporter.WithLogs(f.createLogs, metadata.LogsStability),
	)
}

// factory makes instances that share one page for each component id.
type factory struct{ views shared.Registry[*view] }

func (f *factory) createTraces(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Traces, error) {
	read, options := instance(f, set, cfg, (*intake.Intake).ConsumeTraces)
	return exporterhelper.NewTraces(ctx, set, cfg, read, options...)
}

func (f *factory) createMetrics(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Metrics, error) {
	read, options := instance(f, set, cfg, (*intake.Intake).ConsumeMetrics)
	return exporterhelper.NewMetrics(ctx, set, cfg, read, options...)
}

func (f *factory) createLogs(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Logs, error) {
	read, options := instance(f, set, cfg, (*intake.Intake).ConsumeLogs)
	return exporterhelper.NewLogs(ctx, set, cfg, read, options...)
}

// instance returns the exporter of one signal: what reads its data, and its options. Reading
// never fails: an error would make the sender repeat the request to all exporters of the
// pipeline. Without a queue and a timeout exporterhelper only counts what was read.
func instance[T any](
	f *factory, set exporter.Settings, cfg component.Config, read func(*intake.Intake, context.Context, T),
) (func(context.Context, T) error, []exporterhelper.Option) {
	use := f.views.Use(set.ID, func() (*view, error) { return newView(set, cfg.(*Config)) })
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
