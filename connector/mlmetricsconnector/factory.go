package mlmetricsconnector

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// NewFactory returns the factory of the ml_metrics connector.
func NewFactory() connector.Factory {
	f := &factory{shared: new(shared.Registry[*seenMetrics])}
	return connector.NewFactory(
		metadata.Type,
		createDefaultConfig,
		connector.WithTracesToMetrics(f.createTracesToMetrics, metadata.TracesToMetricsStability),
		connector.WithMetricsToMetrics(f.createMetricsToMetrics, metadata.MetricsToMetricsStability),
	)
}

// factory makes instances that know of each other by their component id.
type factory struct {
	shared *shared.Registry[*seenMetrics]
}

func (f *factory) createTracesToMetrics(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Metrics) (connector.Traces, error) {
	return newMetricsConnector(set, cfg.(*Config), f.shared, next)
}

func (f *factory) createMetricsToMetrics(_ context.Context, set connector.Settings, _ component.Config, _ consumer.Metrics) (connector.Metrics, error) {
	return &watcher{id: set.ID, shared: f.shared, now: time.Now}, nil
}
