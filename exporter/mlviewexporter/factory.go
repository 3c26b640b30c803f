package mlviewexporter

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// NewFactory returns the factory of the ml_view exporter.
func NewFactory() exporter.Factory {
	f := &factory{shared: new(shared.Registry[*view])}
	return exporter.NewFactory(
		metadata.Type,
		createDefaultConfig,
		exporter.WithTraces(f.createTraces, metadata.TracesStability),
		exporter.WithMetrics(f.createMetrics, metadata.MetricsStability),
		exporter.WithLogs(f.createLogs, metadata.LogsStability),
	)
}

// factory makes instances that share one page for each component id.
type factory struct {
	shared *shared.Registry[*view]
}

func (f *factory) createTraces(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Traces, error) {
	i := f.newInstance(set, cfg)
	return exporterhelper.NewTraces(ctx, set, cfg, i.consumeTraces, i.options()...)
}

func (f *factory) createMetrics(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Metrics, error) {
	i := f.newInstance(set, cfg)
	return exporterhelper.NewMetrics(ctx, set, cfg, i.consumeMetrics, i.options()...)
}

func (f *factory) createLogs(ctx context.Context, set exporter.Settings, cfg component.Config) (exporter.Logs, error) {
	i := f.newInstance(set, cfg)
	return exporterhelper.NewLogs(ctx, set, cfg, i.consumeLogs, i.options()...)
}

func (f *factory) newInstance(set exporter.Settings, cfg component.Config) *instance {
	return &instance{shared: f.shared, set: set, cfg: cfg.(*Config)}
}

// options are those of all signals. Without a queue and a timeout the helper
// only counts what was read.
func (i *instance) options() []exporterhelper.Option {
	return []exporterhelper.Option{
		exporterhelper.WithTimeout(exporterhelper.TimeoutConfig{}),
		exporterhelper.WithStart(i.start),
		exporterhelper.WithShutdown(i.shutdown),
	}
}

// instance is the exporter of one signal. Its methods to consume always return
// nil: an error would make the sender repeat the request to all exporters of the
// pipeline.
type instance struct {
	shared  *shared.Registry[*view]
	set     exporter.Settings
	cfg     *Config
	view    *view
	release shared.Release
}

func (i *instance) start(ctx context.Context, host component.Host) (err error) {
	i.view, i.release, err = i.shared.Acquire(ctx, host, i.set.ID, func() (*view, error) {
		return newView(i.set, i.cfg)
	})
	return err
}

// shutdown does nothing without start.
func (i *instance) shutdown(ctx context.Context) error {
	if i.release == nil {
		return nil
	}
	return i.release(ctx)
}

func (i *instance) consumeTraces(ctx context.Context, td ptrace.Traces) error {
	i.view.intake.ConsumeTraces(ctx, td)
	return nil
}

func (i *instance) consumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	i.view.intake.ConsumeMetrics(ctx, md)
	return nil
}

func (i *instance) consumeLogs(ctx context.Context, ld plog.Logs) error {
	i.view.intake.ConsumeLogs(ctx, ld)
	return nil
}
