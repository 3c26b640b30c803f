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
	registry := new(instancesByID) // instances know of each other by their component id
	return connector.NewFactory(
		metadata.Type,
		createDefaultConfig,
		connector.WithTracesToMetrics(func(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Metrics) (connector.Traces, error) {
			return newMetricsConnector(set, cfg.(*Config), registry, next)
		}, metadata.TracesToMetricsStability),
		connector.WithTracesToLogs(func(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Logs) (connector.Traces, error) {
			return &recorder{member: newMember(set, cfg.(*Config), registry), next: next}, nil
		}, metadata.TracesToLogsStability),
		connector.WithMetricsToMetrics(func(_ context.Context, set connector.Settings, cfg component.Config, _ consumer.Metrics) (connector.Metrics, error) {
			return &watcher{member: newMember(set, cfg.(*Config), registry), now: time.Now}, nil
		}, metadata.MetricsToMetricsStability),
		connector.WithLogsToMetrics(func(_ context.Context, set connector.Settings, cfg component.Config, _ consumer.Metrics) (connector.Logs, error) {
			return &watcher{member: newMember(set, cfg.(*Config), registry), now: time.Now}, nil
		}, metadata.LogsToMetricsStability),
	)
}
