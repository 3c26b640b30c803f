package mlsampleprocessor

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processorhelper"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/processor/mlsampleprocessor/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/processor/mlsampleprocessor/internal/sample"
)

// NewFactory returns the factory of ml_sample. A logs instance releases the steps
// that the traces instances with its component id keep for a failure, a metrics
// instance removes the exemplars of spans that they drop.
func NewFactory() processor.Factory {
	running := new(shared.Registry[*instances])
	of := func(id component.ID) instancesOfID {
		return running.Use(id, func() (*instances, error) { return new(instances), nil })
	}
	return processor.NewFactory(
		metadata.Type,
		createDefaultConfig,
		processor.WithTraces(func(_ context.Context, set processor.Settings, cfg component.Config, next consumer.Traces) (processor.Traces, error) {
			return newSampling(set, cfg.(*Config), next, of(set.ID))
		}, metadata.TracesStability),
		processor.WithLogs(func(ctx context.Context, set processor.Settings, cfg component.Config, next consumer.Logs) (processor.Logs, error) {
			w := &watch{of: of(set.ID)}
			return processorhelper.NewLogs(ctx, set, cfg, next, w.processLogs,
				processorhelper.WithCapabilities(consumer.Capabilities{MutatesData: false}),
				processorhelper.WithStart(w.of.Start), processorhelper.WithShutdown(w.of.Shutdown))
		}, metadata.LogsStability),
		processor.WithMetrics(func(ctx context.Context, set processor.Settings, cfg component.Config, next consumer.Metrics) (processor.Metrics, error) {
			w := &watch{of: of(set.ID), dryRun: cfg.(*Config).DryRun}
			return processorhelper.NewMetrics(ctx, set, cfg, next, w.processMetrics,
				processorhelper.WithStart(w.of.Start), processorhelper.WithShutdown(w.of.Shutdown))
		}, metadata.MetricsStability),
	)
}

func createDefaultConfig() component.Config {
	return &Config{Config: sample.Config{
		Steps:    sample.Steps{OneIn: 100, SlowQuantile: 0.99, Slow: 3, First: 5, Before: 20},
		Calls:    sample.Calls{OneIn: 100, SlowQuantile: 0.99, Slow: 3},
		Wait:     30 * time.Second,
		MaxBytes: 256 << 20,
	}}
}
