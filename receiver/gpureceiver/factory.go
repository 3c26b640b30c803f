package gpureceiver

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/scraper/scraperhelper"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
)

// NewFactory returns the factory of the gpu receiver.
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
	monitors monitors
}

func (f *factory) createMetrics(_ context.Context, set receiver.Settings, config component.Config, next consumer.Metrics) (receiver.Metrics, error) {
	cfg := config.(*Config)
	s := newScraper(cfg, set, &f.monitors)
	// The timeout is for one GPU's calls. The controller would apply it to a
	// whole reading, so that one GPU that hangs would cost the others theirs.
	controller := cfg.ControllerConfig
	controller.Timeout = 0
	inner, err := scraperhelper.NewMetricsController(&controller, set, next, scraperhelper.AddMetricsScraper(metadata.Type, s))
	if err != nil {
		return nil, err
	}
	return &gpuReceiver{Metrics: inner, scraper: s}, nil
}

func (f *factory) createLogs(_ context.Context, set receiver.Settings, config component.Config, next consumer.Logs) (receiver.Logs, error) {
	return newLogs(config.(*Config), set, &f.monitors, next)
}
