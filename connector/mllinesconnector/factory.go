package mllinesconnector

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"

	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector/internal/metadata"
)

// NewFactory returns the factory of the ml_lines connector.
func NewFactory() connector.Factory {
	return connector.NewFactory(
		metadata.Type,
		createDefaultConfig,
		connector.WithLogsToTraces(createLogsToTraces, metadata.LogsToTracesStability),
		connector.WithLogsToLogs(createLogsToLogs, metadata.LogsToLogsStability),
	)
}

func createLogsToTraces(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Traces) (connector.Logs, error) {
	return newLines(set, cfg.(*Config), next)
}

func createLogsToLogs(_ context.Context, _ connector.Settings, _ component.Config, next consumer.Logs) (connector.Logs, error) {
	return &records{next: next}, nil
}
