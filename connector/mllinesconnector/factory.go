package mllinesconnector

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"

	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector/internal/origin"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// NewFactory returns the factory of the ml_lines connector.
func NewFactory() connector.Factory {
	registry := new(shared.Registry[*origin.Known])
	return connector.NewFactory(
		metadata.Type,
		createDefaultConfig,
		connector.WithLogsToTraces(func(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Traces) (connector.Logs, error) {
			return newLines(set, cfg.(*Config), originsOf(registry, set, cfg), next)
		}, metadata.LogsToTracesStability),
		connector.WithLogsToLogs(func(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Logs) (connector.Logs, error) {
			return &records{origins: originsOf(registry, set, cfg), next: next}, nil
		}, metadata.LogsToLogsStability),
	)
}

// origins are those that the instances of one connector share.
type origins = shared.Use[*origin.Known]

func originsOf(registry *shared.Registry[*origin.Known], set connector.Settings, cfg component.Config) origins {
	return registry.Use(set.ID, func() (*origin.Known, error) { return origin.NewKnown(4*cfg.(*Config).MaxStreams, time.Now), nil })
}
