package mlguardprocessor

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processorhelper"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/bounds"
	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/identity"
	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/withhold"
)

// NewFactory returns the factory of ml_guard.
func NewFactory() processor.Factory {
	identities := new(shared.Registry[*identity.Filter]) // what the instances with one component id share
	return processor.NewFactory(
		metadata.Type,
		createDefaultConfig,
		processor.WithTraces(func(ctx context.Context, set processor.Settings, cfg component.Config, next consumer.Traces) (processor.Traces, error) {
			g, err := newGuard(set, cfg.(*Config), identities, "traces")
			if err != nil {
				return nil, err
			}
			// It fails only without a function, as for the other signals.
			passed, _ := consumer.NewTraces(g.inParts(next.ConsumeTraces), consumer.WithCapabilities(next.Capabilities()))
			return processorhelper.NewTraces(ctx, set, cfg, passed, g.processTraces, g.options(g.changesTraces())...)
		}, metadata.TracesStability),
		processor.WithMetrics(func(ctx context.Context, set processor.Settings, cfg component.Config, next consumer.Metrics) (processor.Metrics, error) {
			g, err := newGuard(set, cfg.(*Config), identities, "metrics")
			if err != nil {
				return nil, err
			}
			passed, _ := consumer.NewMetrics(passing(g, pmetric.Metrics.DataPointCount, next.ConsumeMetrics), consumer.WithCapabilities(next.Capabilities()))
			return processorhelper.NewMetrics(ctx, set, cfg, passed, g.processMetrics, g.options(!g.onlyOut)...)
		}, metadata.MetricsStability),
		processor.WithLogs(func(ctx context.Context, set processor.Settings, cfg component.Config, next consumer.Logs) (processor.Logs, error) {
			g, err := newGuard(set, cfg.(*Config), identities, "logs")
			if err != nil {
				return nil, err
			}
			passed, _ := consumer.NewLogs(passing(g, plog.Logs.LogRecordCount, next.ConsumeLogs), consumer.WithCapabilities(next.Capabilities()))
			return processorhelper.NewLogs(ctx, set, cfg, passed, g.processLogs, g.options(!g.onlyOut)...)
		}, metadata.LogsStability),
	)
}

func createDefaultConfig() component.Config {
	return &Config{
		Bounds:     bounds.Default(),
		RetryAfter: 5 * time.Second,
		Identities: configoptional.Default(identity.DefaultConfig()),
		Content:    configoptional.Default(withhold.Config{}),
		Out:        configoptional.Default(OutConfig{WhenRefused: Drop, MaxSize: 4_190_000}),
	}
}
