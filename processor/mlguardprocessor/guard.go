package mlguardprocessor

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/bounds"
	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/content"
	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/identity"
	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/metadata"
)

// guard applies the sections of one configuration, in this order: bounds,
// identities, content. A section that is not configured is nil.
type guard struct {
	bounds     *bounds.Filter
	identities *identity.Filter
	content    *content.Filter
	telemetry  *metadata.TelemetryBuilder

	// start sets identities to what the instances of the id share, and release
	// gives it back.
	start   component.StartFunc
	release shared.Release
}

func newGuard(set processor.Settings, cfg *Config, registry *shared.Registry[*identity.Filter]) (*guard, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	g := &guard{telemetry: telemetry}
	if g.bounds, err = bounds.New(&cfg.Bounds); err != nil {
		return nil, err
	}
	if c := cfg.Identities.Get(); c != nil {
		g.start = func(ctx context.Context, host component.Host) (err error) {
			g.identities, g.release, err = registry.Acquire(ctx, host, set.ID, func() (*identity.Filter, error) {
				return identity.New(c, set.TelemetrySettings, set.ID)
			})
			return err
		}
	}
	if c := cfg.Content.Get(); c != nil {
		if g.content, err = content.New(c); err != nil {
			return nil, err
		}
	}
	return g, nil
}

// changesTraces reports whether the spans that come in are changed. The section
// identities alone changes a copy, and only where it has to: spans that leave as
// they came need not be copied for it.
func (g *guard) changesTraces() bool { return g.start == nil || g.content != nil }

func (g *guard) processTraces(ctx context.Context, td ptrace.Traces) (ptrace.Traces, error) {
	if g.changesTraces() {
		g.bounds.Traces(td)
	}
	if g.identities != nil {
		td = g.identities.Traces(ctx, td)
	}
	if g.content != nil {
		g.content.Traces(td)
	}
	return td, nil
}

func (g *guard) processMetrics(ctx context.Context, md pmetric.Metrics) (pmetric.Metrics, error) {
	g.bounds.Metrics(md)
	if g.identities != nil {
		g.identities.Metrics(ctx, md)
	}
	if g.content != nil {
		g.content.Metrics(md)
	}
	return md, nil
}

func (g *guard) processLogs(_ context.Context, ld plog.Logs) (plog.Logs, error) {
	g.bounds.Logs(ld)
	if g.content != nil {
		g.content.Logs(ld)
	}
	return ld, nil
}

func (g *guard) shutdown(ctx context.Context) error {
	g.telemetry.Shutdown()
	if g.release == nil {
		return nil
	}
	return g.release(ctx)
}
