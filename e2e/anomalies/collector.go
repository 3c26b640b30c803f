package anomalies

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/pipeline"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/scenario"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector"
)

// destination is what a world sends to: a collector, or those of a fleet.
type destination interface {
	// consume hands a request to the instances that take its signal.
	consume(ctx context.Context, b scenario.Batch)
	// down reports whether nothing runs, so that clients must try again.
	down() bool
	start(ctx context.Context) error
	stop(ctx context.Context) error
	// fail keeps an error, if it is one, and failed returns those that were kept.
	fail(err error)
	failed() error
	// reported returns the problems that were reported.
	reported() []*sighting
}

// collector has the instances of ml_metrics that a collector has: they receive
// spans and metrics, and send series and, if they can, records.
type collector struct {
	flush    time.Duration
	seen     *sightings
	parts    []component.Component
	traces   []connector.Traces
	metrics  connector.Metrics
	failures error
	// configure changes the default configuration, if it is set.
	configure func(*mlmetricsconnector.Config)
}

// newCollector returns a collector that runs.
func newCollector(ctx context.Context, flush time.Duration) (*collector, error) {
	c := &collector{flush: flush, seen: newSightings(flush)}
	return c, c.start(ctx)
}

func (c *collector) down() bool { return len(c.parts) == 0 }

func (c *collector) failed() error { return c.failures }

func (c *collector) reported() []*sighting { return c.seen.all }

// start makes the instances from the default configuration.
func (c *collector) start(ctx context.Context) error {
	factory := mlmetricsconnector.NewFactory()
	cfg := factory.CreateDefaultConfig().(*mlmetricsconnector.Config)
	cfg.FlushInterval = c.flush
	if c.configure != nil {
		c.configure(cfg)
	}
	if err := cfg.Validate(); err != nil {
		return err
	}
	set := connector.Settings{
		ID: component.NewID(factory.Type()), TelemetrySettings: componenttest.NewNopTelemetrySettings(),
		BuildInfo: component.NewDefaultBuildInfo(),
	}
	records, err := factory.CreateTracesToLogs(ctx, set, cfg, c.seen)
	if err != nil && !errors.Is(err, pipeline.ErrSignalNotSupported) {
		return fmt.Errorf("create ml_metrics for records: %w", err)
	}
	series, err := factory.CreateTracesToMetrics(ctx, set, cfg, c.seen)
	if err != nil {
		return fmt.Errorf("create ml_metrics for series: %w", err)
	}
	if c.metrics, err = factory.CreateMetricsToMetrics(ctx, set, cfg, c.seen); err != nil {
		return fmt.Errorf("create ml_metrics for clients' metrics: %w", err)
	}
	c.traces, c.parts = []connector.Traces{series}, []component.Component{series, c.metrics}
	if c.seen.recorded = records != nil; c.seen.recorded {
		c.traces, c.parts = append(c.traces, records), append(c.parts, records)
	}
	for _, part := range c.parts {
		if err := part.Start(ctx, componenttest.NewNopHost()); err != nil {
			return fmt.Errorf("start ml_metrics: %w", err)
		}
	}
	return nil
}

// stop shuts the instances down.
func (c *collector) stop(ctx context.Context) error {
	var errs []error
	for _, part := range c.parts {
		errs = append(errs, part.Shutdown(ctx))
	}
	c.parts, c.traces = nil, nil
	return errors.Join(errs...)
}

// consume hands a request to the instances that take its signal.
func (c *collector) consume(ctx context.Context, b scenario.Batch) {
	if b.Signal == sentlog.SignalMetrics {
		c.fail(c.metrics.ConsumeMetrics(ctx, b.Metrics))
		return
	}
	for _, each := range c.traces {
		c.fail(each.ConsumeTraces(ctx, b.Traces))
	}
}

// fail keeps an error, if it is one.
func (c *collector) fail(err error) {
	if err != nil {
		c.failures = errors.Join(c.failures, err)
	}
}
