package mlmetricsconnector

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

type metricsConnector struct {
	component.StartFunc
	component.ShutdownFunc
	cfg  *Config
	next consumer.Metrics
}

func newMetricsConnector(_ connector.Settings, cfg *Config, next consumer.Metrics) (*metricsConnector, error) {
	return &metricsConnector{cfg: cfg, next: next}, nil
}

func (c *metricsConnector) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: false}
}

func (c *metricsConnector) ConsumeTraces(context.Context, ptrace.Traces) error { return nil }
