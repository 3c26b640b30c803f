package anomalies

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"

	metadata "go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/scenario"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor"
)

// gateways are the collectors of a fleet: an agent on each host, whose ml_enrich sends
// everything of a run to one gateway, and the gateways, each of which has an ml_metrics.
type gateways struct {
	all      []*collector
	agents   map[string]*hostAgent
	failures error
}

// hostAgent is the ml_enrich of the agent on one host.
type hostAgent struct {
	traces  processor.Traces
	metrics processor.Metrics
}

// newGateways returns n gateways that run.
func newGateways(ctx context.Context, n int) (*gateways, error) {
	g := &gateways{agents: make(map[string]*hostAgent)}
	for range n {
		c, err := newCollector(ctx, flushOfPlanted)
		if err != nil {
			return nil, err
		}
		g.all = append(g.all, c)
	}
	return g, nil
}

// of returns the gateway of a request that an agent sends.
func (g *gateways) of(ctx context.Context) *collector {
	hash := fnv.New32a()
	for _, route := range metadata.FromContext(ctx).Metadata.Get("ml-route") {
		_, _ = hash.Write([]byte(route))
	}
	return g.all[int(hash.Sum32())%len(g.all)]
}

// agentOf returns the one on a host.
func (g *gateways) agentOf(ctx context.Context, host string) (*hostAgent, error) {
	if known := g.agents[host]; known != nil {
		return known, nil
	}
	toTraces, err := consumer.NewTraces(func(ctx context.Context, td ptrace.Traces) error {
		g.of(ctx).consume(ctx, scenario.Batch{Signal: sentlog.SignalTraces, Traces: td})
		return nil
	})
	if err != nil {
		return nil, err
	}
	toMetrics, err := consumer.NewMetrics(func(ctx context.Context, md pmetric.Metrics) error {
		g.of(ctx).consume(ctx, scenario.Batch{Signal: sentlog.SignalMetrics, Metrics: md})
		return nil
	})
	if err != nil {
		return nil, err
	}
	factory := mlenrichprocessor.NewFactory()
	cfg := factory.CreateDefaultConfig().(*mlenrichprocessor.Config)
	cfg.RouteByRun = true
	set := processor.Settings{
		ID: component.NewIDWithName(factory.Type(), host), TelemetrySettings: componenttest.NewNopTelemetrySettings(),
		BuildInfo: component.NewDefaultBuildInfo(),
	}
	a := &hostAgent{}
	if a.traces, err = factory.CreateTraces(ctx, set, cfg, toTraces); err != nil {
		return nil, fmt.Errorf("create ml_enrich for traces: %w", err)
	}
	if a.metrics, err = factory.CreateMetrics(ctx, set, cfg, toMetrics); err != nil {
		return nil, fmt.Errorf("create ml_enrich for metrics: %w", err)
	}
	g.agents[host] = a
	return a, errors.Join(a.traces.Start(ctx, componenttest.NewNopHost()), a.metrics.Start(ctx, componenttest.NewNopHost()))
}

// consume hands a request to the agent of its host.
func (g *gateways) consume(ctx context.Context, b scenario.Batch) {
	if b.Signal == sentlog.SignalMetrics {
		a, err := g.agentOf(ctx, text(b.Metrics.ResourceMetrics().At(0).Resource().Attributes(), "host.name"))
		if g.fail(err); err == nil {
			g.fail(a.metrics.ConsumeMetrics(ctx, b.Metrics))
		}
		return
	}
	a, err := g.agentOf(ctx, text(b.Traces.ResourceSpans().At(0).Resource().Attributes(), "host.name"))
	if g.fail(err); err == nil {
		g.fail(a.traces.ConsumeTraces(ctx, b.Traces))
	}
}

func (g *gateways) down() bool { return g.all[0].down() }

func (g *gateways) start(ctx context.Context) error {
	var errs []error
	for _, c := range g.all {
		errs = append(errs, c.start(ctx))
	}
	return errors.Join(errs...)
}

// stop stops gateways and agents.
func (g *gateways) stop(ctx context.Context) error {
	var errs []error
	for _, a := range g.agents {
		errs = append(errs, a.traces.Shutdown(ctx), a.metrics.Shutdown(ctx))
	}
	clear(g.agents)
	for _, c := range g.all {
		errs = append(errs, c.stop(ctx))
	}
	return errors.Join(errs...)
}

func (g *gateways) fail(err error) { g.failures = errors.Join(g.failures, err) }

func (g *gateways) failed() error {
	errs := []error{g.failures}
	for _, c := range g.all {
		errs = append(errs, c.failures)
	}
	return errors.Join(errs...)
}

// reported returns the problems that any gateway has reported.
func (g *gateways) reported() (all []*sighting) {
	for _, c := range g.all {
		all = append(all, c.seen.all...)
	}
	return all
}
