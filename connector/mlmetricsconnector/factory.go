package mlmetricsconnector

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/metadata"
)

// NewFactory returns the factory of the ml_metrics connector.
func NewFactory() connector.Factory {
	f := &factory{registry: new(instancesByID)}
	return connector.NewFactory(
		metadata.Type,
		createDefaultConfig,
		connector.WithTracesToMetrics(f.createTracesToMetrics, metadata.TracesToMetricsStability),
		connector.WithTracesToLogs(f.createTracesToLogs, metadata.TracesToLogsStability),
		connector.WithMetricsToMetrics(f.createMetricsToMetrics, metadata.MetricsToMetricsStability),
	)
}

// factory makes instances that know of each other by their component id.
type factory struct {
	registry *instancesByID
}

func (f *factory) createTracesToMetrics(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Metrics) (connector.Traces, error) {
	return newMetricsConnector(set, cfg.(*Config), f.registry, next)
}

func (f *factory) createTracesToLogs(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Logs) (connector.Traces, error) {
	return &recorder{member: newMember(set, cfg.(*Config), f.registry), next: next}, nil
}

func (f *factory) createMetricsToMetrics(_ context.Context, set connector.Settings, cfg component.Config, _ consumer.Metrics) (connector.Metrics, error) {
	return &watcher{member: newMember(set, cfg.(*Config), f.registry), now: time.Now}, nil
}
