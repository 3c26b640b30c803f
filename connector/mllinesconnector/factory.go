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
			return newLines(set, cfg.(*Config), knownOf(registry, set, cfg), next)
		}, metadata.LogsToTracesStability),
		connector.WithLogsToLogs(func(_ context.Context, set connector.Settings, cfg component.Config, next consumer.Logs) (connector.Logs, error) {
			return &records{known: knownOf(registry, set, cfg), next: next}, nil
		}, metadata.LogsToLogsStability),
	)
}

// known are the origins that the instances of one connector share.
type known struct {
	registry *shared.Registry[*origin.Known]
	id       component.ID
	limit    int
	origins  *origin.Known
	release  shared.Release
}

func knownOf(registry *shared.Registry[*origin.Known], set connector.Settings, cfg component.Config) *known {
	return &known{registry: registry, id: set.ID, limit: 4 * cfg.(*Config).MaxStreams}
}

// Start makes the origins known.
func (k *known) Start(ctx context.Context, host component.Host) (err error) {
	k.origins, k.release, err = k.registry.Acquire(ctx, host, k.id, func() (*origin.Known, error) { return origin.NewKnown(k.limit, time.Now), nil })
	return err
}

// Shutdown is safe without Start.
func (k *known) Shutdown(ctx context.Context) error {
	if k.release == nil {
		return nil
	}
	return k.release(ctx)
}
