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
	all := new(monitors)
	return receiver.NewFactory(
		metadata.Type,
		createDefaultConfig,
		receiver.WithMetrics(func(_ context.Context, set receiver.Settings, config component.Config, next consumer.Metrics) (receiver.Metrics, error) {
			s := newScraper(config.(*Config), set, all)
			// The timeout is for one GPU's calls. The controller would apply it to a
			// whole reading, so that one GPU that hangs would cost the others theirs.
			controller := s.cfg.ControllerConfig
			controller.Timeout = 0
			inner, err := scraperhelper.NewMetricsController(&controller, set, next, scraperhelper.AddMetricsScraper(metadata.Type, s))
			return &gpuReceiver{Metrics: inner, scraper: s}, err
		}, metadata.MetricsStability),
		receiver.WithLogs(func(_ context.Context, set receiver.Settings, config component.Config, next consumer.Logs) (receiver.Logs, error) {
			return newLogs(config.(*Config), set, all, next)
		}, metadata.LogsStability),
	)
}
