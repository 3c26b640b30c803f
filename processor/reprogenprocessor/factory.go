package reprogenprocessor

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/processor"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind/genaichat"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind/pythoncall"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind/pythoncode"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind/trainstep"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/metadata"
)

// NewFactory returns the factory of the repro_gen processor. Processors of
// one component id that come from one factory write through one recorder.
func NewFactory() processor.Factory { return newFactory(kinds) }

func newFactory(kinds func() kind.Registry) processor.Factory {
	f := &factory{kinds: kinds}
	return processor.NewFactory(
		metadata.Type,
		createDefaultConfig,
		processor.WithTraces(f.createTraces, metadata.TracesStability),
		processor.WithMetrics(f.createMetrics, metadata.MetricsStability),
		processor.WithLogs(f.createLogs, metadata.LogsStability),
	)
}

type factory struct {
	kinds     func() kind.Registry
	recorders shared.Registry[*recorder]
}

func (f *factory) createTraces(_ context.Context, set processor.Settings, cfg component.Config, next consumer.Traces) (processor.Traces, error) {
	return &instance{Use: f.use(set, cfg.(*Config)), traces: next}, nil
}

func (f *factory) createMetrics(_ context.Context, set processor.Settings, cfg component.Config, next consumer.Metrics) (processor.Metrics, error) {
	return &instance{Use: f.use(set, cfg.(*Config)), metrics: next}, nil
}

func (f *factory) createLogs(_ context.Context, set processor.Settings, cfg component.Config, next consumer.Logs) (processor.Logs, error) {
	return &instance{Use: f.use(set, cfg.(*Config)), logs: next}, nil
}

func (f *factory) use(set processor.Settings, cfg *Config) shared.Use[*recorder] {
	return f.recorders.Use(set.ID, func() (*recorder, error) { return newRecorder(cfg, f.kinds(), set.ID, set.TelemetrySettings) })
}

// kinds returns the kinds of artifacts, in the order in which they are tried. A new
// kind is a package below internal/kind and a line here.
func kinds() kind.Registry {
	return kind.Registry{
		pythoncall.New(),
		pythoncode.New(),
		genaichat.New(),
		trainstep.New(),
	}
}
