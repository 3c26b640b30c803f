package ncclreceiver

import (
	"context"
	"errors"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/receiver/ncclreceiver/internal/metadata"
)

// NewFactory returns the factory of the nccl receiver.
func NewFactory() receiver.Factory {
	pollers := new(shared.Registry[*poller])
	create := func(set receiver.Settings, config component.Config, join func(*poller)) *ncclReceiver {
		return &ncclReceiver{join: join, Use: pollers.Use(set.ID, func() (*poller, error) { return newPoller(config.(*Config), set) })}
	}
	return receiver.NewFactory(
		metadata.Type,
		createDefaultConfig,
		receiver.WithMetrics(func(_ context.Context, set receiver.Settings, config component.Config, next consumer.Metrics) (receiver.Metrics, error) {
			return create(set, config, func(p *poller) { p.metrics.next.Store(&next) }), nil
		}, metadata.MetricsStability),
		receiver.WithLogs(func(_ context.Context, set receiver.Settings, config component.Config, next consumer.Logs) (receiver.Logs, error) {
			return create(set, config, func(p *poller) { p.logs.next.Store(&next) }), nil
		}, metadata.LogsStability),
	)
}

// ncclReceiver is the receiver of one signal. Those of metrics and logs share a
// poller, so that NCCL is asked once for both.
type ncclReceiver struct {
	shared.Use[*poller]
	// join adds the pipeline to the poller.
	join func(*poller)
}

// Start starts the queries. It does not wait for a job.
func (r *ncclReceiver) Start(ctx context.Context, host component.Host) error {
	if err := r.Use.Start(ctx, host); err != nil {
		return err
	}
	r.join(r.Shared)
	return nil
}

// Shutdown interrupts the present query and ends the queries for both signals,
// because the Collector stops them together. It returns when nothing more is sent, or
// when its context ends. It is safe without Start and to call twice.
func (r *ncclReceiver) Shutdown(ctx context.Context) error {
	if r.Shared == nil {
		return nil
	}
	return errors.Join(r.Shared.loop.Stop(ctx), r.Use.Shutdown(ctx))
}
