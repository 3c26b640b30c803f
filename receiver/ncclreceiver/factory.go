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
	f := &factory{}
	return receiver.NewFactory(
		metadata.Type,
		createDefaultConfig,
		receiver.WithMetrics(f.createMetrics, metadata.MetricsStability),
		receiver.WithLogs(f.createLogs, metadata.LogsStability),
	)
}

// factory holds what the receivers of one collector share.
type factory struct {
	pollers shared.Registry[*poller]
}

func (f *factory) createMetrics(_ context.Context, set receiver.Settings, config component.Config, next consumer.Metrics) (receiver.Metrics, error) {
	return &ncclReceiver{pollers: &f.pollers, cfg: config.(*Config), settings: set, join: func(p *poller) { p.metrics.next.Store(&next) }}, nil
}

func (f *factory) createLogs(_ context.Context, set receiver.Settings, config component.Config, next consumer.Logs) (receiver.Logs, error) {
	return &ncclReceiver{pollers: &f.pollers, cfg: config.(*Config), settings: set, join: func(p *poller) { p.logs.next.Store(&next) }}, nil
}

// ncclReceiver is the receiver of one signal. Those of metrics and logs share a
// poller, so that NCCL is asked once for both.
type ncclReceiver struct {
	pollers  *shared.Registry[*poller]
	cfg      *Config
	settings receiver.Settings
	// join adds the pipeline to the poller.
	join func(*poller)

	poller  *poller
	release shared.Release
}

// Start starts the queries. It does not wait for a job.
func (r *ncclReceiver) Start(ctx context.Context, host component.Host) error {
	found, release, err := r.pollers.Acquire(ctx, host, r.settings.ID, func() (*poller, error) {
		return newPoller(r.cfg, r.settings)
	})
	if err != nil {
		return err
	}
	r.poller, r.release = found, release
	r.join(found)
	return nil
}

// Shutdown interrupts the present query and ends the queries for both signals,
// because the Collector stops them together. It returns when nothing more is sent, or
// when its context ends. It is safe without Start and to call twice.
func (r *ncclReceiver) Shutdown(ctx context.Context) error {
	if r.poller == nil {
		return nil
	}
	return errors.Join(r.poller.stop(ctx), r.release(ctx))
}
