package mlviewexporter

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

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
