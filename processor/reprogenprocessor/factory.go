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
	recorders := new(shared.Registry[*recorder])
	use := func(set processor.Settings, cfg component.Config) shared.Use[*recorder] {
		return recorders.Use(set.ID, func() (*recorder, error) { return newRecorder(cfg.(*Config), kinds(), set.ID, set.TelemetrySettings) })
	}
	return processor.NewFactory(
		metadata.Type,
		createDefaultConfig,
		processor.WithTraces(func(_ context.Context, set processor.Settings, cfg component.Config, next consumer.Traces) (processor.Traces, error) {
			return &instance{Use: use(set, cfg), traces: next}, nil
		}, metadata.TracesStability),
		processor.WithMetrics(func(_ context.Context, set processor.Settings, cfg component.Config, next consumer.Metrics) (processor.Metrics, error) {
			return &instance{Use: use(set, cfg), metrics: next}, nil
		}, metadata.MetricsStability),
		processor.WithLogs(func(_ context.Context, set processor.Settings, cfg component.Config, next consumer.Logs) (processor.Logs, error) {
			return &instance{Use: use(set, cfg), logs: next}, nil
		}, metadata.LogsStability),
	)
}

// kinds returns the kinds of artifacts, in the order in which they are tried. A new
// kind is a package below internal/kind and a name here.
func kinds() kind.Registry {
	return kind.Registry{pythoncall.New(), pythoncode.New(), genaichat.New(), trainstep.New()}
}
