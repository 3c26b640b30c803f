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

var capabilities = processorhelper.WithCapabilities(consumer.Capabilities{MutatesData: true})

// NewFactory returns the factory of ml_enrich. The traces, metrics and logs
// instances of one component id that it makes share one store.
func NewFactory() processor.Factory {
	f := new(factory)
	return processor.NewFactory(
		metadata.Type,
		createDefaultConfig,
		processor.WithTraces(f.createTraces, metadata.TracesStability),
		processor.WithMetrics(f.createMetrics, metadata.MetricsStability),
		processor.WithLogs(f.createLogs, metadata.LogsStability),
	)
}

func createDefaultConfig() component.Config { return &Config{Vocabularies: vocabulary.SystemNames()} }

type factory struct{ stores shared.Registry[*store] }

func (f *factory) createTraces(ctx context.Context, set processor.Settings, cfg component.Config, next consumer.Traces) (processor.Traces, error) {
	e, err := newEnricher(set, cfg.(*Config), &f.stores)
	if err != nil {
		return nil, err
	}
	if e.config.RouteByRun {
		if next, err = route.Traces(next); err != nil {
			return nil, err
		}
	}
	return processorhelper.NewTraces(ctx, set, cfg, marking(next), e.processTraces,
		capabilities, processorhelper.WithStart(e.start), processorhelper.WithShutdown(e.shutdown))
}

// marking tells the components after ml_enrich in the same call that the spans
// have canonical names.
func marking(next consumer.Traces) consumer.Traces {
	marked, _ := consumer.NewTraces(func(ctx context.Context, td ptrace.Traces) error {
		return next.ConsumeTraces(vocabulary.WithEnriched(ctx), td)
	}, consumer.WithCapabilities(next.Capabilities())) // it fails only without a function
	return marked
}

func (f *factory) createMetrics(ctx context.Context, set processor.Settings, cfg component.Config, next consumer.Metrics) (processor.Metrics, error) {
	e, err := newEnricher(set, cfg.(*Config), &f.stores)
	if err != nil {
		return nil, err
	}
	if e.config.RouteByRun {
		if next, err = route.Metrics(next, e.routes); err != nil {
			return nil, err
		}
	}
	return processorhelper.NewMetrics(ctx, set, cfg, next, e.processMetrics,
		capabilities, processorhelper.WithStart(e.start), processorhelper.WithShutdown(e.shutdown))
}

func (f *factory) createLogs(ctx context.Context, set processor.Settings, cfg component.Config, next consumer.Logs) (processor.Logs, error) {
	e, err := newEnricher(set, cfg.(*Config), &f.stores)
	if err != nil {
		return nil, err
	}
	if e.config.RouteByRun {
		if next, err = route.Logs(next, e.routes); err != nil {
			return nil, err
		}
	}
	return processorhelper.NewLogs(ctx, set, cfg, next, e.processLogs,
		capabilities, processorhelper.WithStart(e.start), processorhelper.WithShutdown(e.shutdown))
}
