package mlguardprocessor

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processorhelper"

	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/bounds"
	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/content"
	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/identity"
	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/metadata"
)

var capabilities = consumer.Capabilities{MutatesData: true}

// NewFactory returns the factory of ml_guard.
func NewFactory() processor.Factory {
	return processor.NewFactory(
		metadata.Type,
		createDefaultConfig,
		processor.WithTraces(createTraces, metadata.TracesStability),
		processor.WithMetrics(createMetrics, metadata.MetricsStability),
		processor.WithLogs(createLogs, metadata.LogsStability),
	)
}

func createDefaultConfig() component.Config {
	return &Config{
		Bounds:     bounds.Default(),
		RetryAfter: 5 * time.Second,
		Identities: configoptional.Default(identity.Config{}),
		Content:    configoptional.Default(content.Config{}),
	}
}

func createTraces(ctx context.Context, set processor.Settings, cfg component.Config, next consumer.Traces) (processor.Traces, error) {
	g, err := newGuard(set, cfg.(*Config))
	if err != nil {
		return nil, err
	}
	return processorhelper.NewTraces(ctx, set, cfg, nextTraces{next, g}, g.processTraces,
		processorhelper.WithCapabilities(capabilities), processorhelper.WithShutdown(g.shutdown))
}

func createMetrics(ctx context.Context, set processor.Settings, cfg component.Config, next consumer.Metrics) (processor.Metrics, error) {
	g, err := newGuard(set, cfg.(*Config))
	if err != nil {
		return nil, err
	}
	return processorhelper.NewMetrics(ctx, set, cfg, nextMetrics{next, g}, g.processMetrics,
		processorhelper.WithCapabilities(capabilities), processorhelper.WithShutdown(g.shutdown))
}

func createLogs(ctx context.Context, set processor.Settings, cfg component.Config, next consumer.Logs) (processor.Logs, error) {
	g, err := newGuard(set, cfg.(*Config))
	if err != nil {
		return nil, err
	}
	return processorhelper.NewLogs(ctx, set, cfg, nextLogs{next, g}, g.processLogs,
		processorhelper.WithCapabilities(capabilities), processorhelper.WithShutdown(g.shutdown))
}
