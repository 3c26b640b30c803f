package mlenrichprocessor

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processorhelper"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/route"
)

// NewFactory returns the factory of ml_enrich. The traces, metrics and logs
// instances of one component id that it makes share one store.
func NewFactory() processor.Factory {
	stores := new(shared.Registry[*store])
	return processor.NewFactory(
		metadata.Type,
		createDefaultConfig,
		processor.WithTraces(func(ctx context.Context, set processor.Settings, cfg component.Config, next consumer.Traces) (processor.Traces, error) {
			e := newEnricher(set, cfg.(*Config), stores)
			if e.config.RouteByRun {
				next = route.Traces(next)
			}
			return processorhelper.NewTraces(ctx, set, cfg, marking(next), e.processTraces, e.options()...)
		}, metadata.TracesStability),
		processor.WithMetrics(func(ctx context.Context, set processor.Settings, cfg component.Config, next consumer.Metrics) (processor.Metrics, error) {
			e := newEnricher(set, cfg.(*Config), stores)
			if e.config.RouteByRun {
				next = route.Metrics(next, e.routes)
			}
			return processorhelper.NewMetrics(ctx, set, cfg, next, e.processMetrics, e.options()...)
		}, metadata.MetricsStability),
		processor.WithLogs(func(ctx context.Context, set processor.Settings, cfg component.Config, next consumer.Logs) (processor.Logs, error) {
			e := newEnricher(set, cfg.(*Config), stores)
			if e.config.RouteByRun {
				next = route.Logs(next, e.routes)
			}
			return processorhelper.NewLogs(ctx, set, cfg, next, e.processLogs, e.options()...)
		}, metadata.LogsStability),
	)
}

func createDefaultConfig() component.Config { return &Config{Vocabularies: vocabulary.SystemNames()} }

// marking tells the components after ml_enrich in the same call that the spans
// have canonical names.
func marking(next consumer.Traces) consumer.Traces {
	marked, _ := consumer.NewTraces(func(ctx context.Context, td ptrace.Traces) error {
		ctx, end := vocabulary.WithEnriched(ctx)
		defer end()
		return next.ConsumeTraces(ctx, td)
	}, consumer.WithCapabilities(next.Capabilities())) // it fails only without a function
	return marked
}
