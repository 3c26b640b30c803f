package mlguardprocessor

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
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
	f := &factory{}
	return processor.NewFactory(
		metadata.Type,
		createDefaultConfig,
		processor.WithTraces(f.createTraces, metadata.TracesStability),
		processor.WithMetrics(f.createMetrics, metadata.MetricsStability),
		processor.WithLogs(f.createLogs, metadata.LogsStability),
	)
}

// factory holds what the instances with one component id share.
type factory struct {
	identities shared.Registry[*identity.Filter]
}

func createDefaultConfig() component.Config {
	return &Config{
		Bounds:     bounds.Default(),
		RetryAfter: 5 * time.Second,
		Identities: configoptional.Default(identity.DefaultConfig()),
		Content:    configoptional.Default(withhold.Config{}),
		Out:        configoptional.Default(OutConfig{WhenRefused: Drop}),
	}
}

func (f *factory) createTraces(ctx context.Context, set processor.Settings, cfg component.Config, next consumer.Traces) (processor.Traces, error) {
	g, err := newGuard(set, cfg.(*Config), &f.identities, "traces")
	if err != nil {
		return nil, err
	}
	// It fails only without a function, as for the other signals.
	passed, _ := consumer.NewTraces(passing(g, ptrace.Traces.SpanCount, next.ConsumeTraces), consumer.WithCapabilities(next.Capabilities()))
	return processorhelper.NewTraces(ctx, set, cfg, passed, g.processTraces,
		processorhelper.WithCapabilities(consumer.Capabilities{MutatesData: g.changesTraces()}),
		processorhelper.WithStart(g.start), processorhelper.WithShutdown(g.shutdown))
}

func (f *factory) createMetrics(ctx context.Context, set processor.Settings, cfg component.Config, next consumer.Metrics) (processor.Metrics, error) {
	g, err := newGuard(set, cfg.(*Config), &f.identities, "metrics")
	if err != nil {
		return nil, err
	}
	passed, _ := consumer.NewMetrics(passing(g, pmetric.Metrics.DataPointCount, next.ConsumeMetrics), consumer.WithCapabilities(next.Capabilities()))
	return processorhelper.NewMetrics(ctx, set, cfg, passed, g.processMetrics,
		processorhelper.WithCapabilities(consumer.Capabilities{MutatesData: !g.onlyOut}), processorhelper.WithStart(g.start), processorhelper.WithShutdown(g.shutdown))
}

func (f *factory) createLogs(ctx context.Context, set processor.Settings, cfg component.Config, next consumer.Logs) (processor.Logs, error) {
	g, err := newGuard(set, cfg.(*Config), &f.identities, "logs")
	if err != nil {
		return nil, err
	}
	passed, _ := consumer.NewLogs(passing(g, plog.Logs.LogRecordCount, next.ConsumeLogs), consumer.WithCapabilities(next.Capabilities()))
	return processorhelper.NewLogs(ctx, set, cfg, passed, g.processLogs,
		processorhelper.WithCapabilities(consumer.Capabilities{MutatesData: !g.onlyOut}), processorhelper.WithStart(g.start), processorhelper.WithShutdown(g.shutdown))
}
