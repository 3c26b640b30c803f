package mlguardprocessor

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processorhelper"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/sender"
	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/bounds"
	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/identity"
	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/trust"
	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/withhold"
)

// guard applies the sections of one configuration to one signal, in this order: trusted
// senders, bounds, identities, content, out. A section that is not configured is nil.
type guard struct {
	trust      *trust.Filter
	bounds     *bounds.Filter
	identities *identity.Filter
	content    *withhold.Filter
	out        *OutConfig
	// onlyOut reports whether out is the only section, so nothing is changed.
	onlyOut    bool
	retryAfter time.Duration
	telemetry  *metadata.TelemetryBuilder
	id         string
	// cutBy has the attributes of the counter of cut values, by limit.
	cutBy [bounds.Limits]metric.MeasurementOption

	// acquire sets identities to the filter that all instances with the component
	// id share, and release returns it.
	acquire component.StartFunc
	release shared.Release

	// left counts what was left out.
	state    *shared.State
	left     shared.Tally
	withdraw func()
	// named has the senders that were not believed and that left counts by name.
	mu    sync.Mutex
	named map[string]bool

	// untaken is what the components after it have not taken, and ofSignal the
	// attributes of its counters.
	signal   string
	untaken  untaken
	ofSignal metric.MeasurementOption
	logger   *zap.Logger
}

func newGuard(set processor.Settings, cfg *Config, registry *shared.Registry[*identity.Filter], signal string) (*guard, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	g := &guard{
		retryAfter: cfg.RetryAfter, telemetry: telemetry, id: set.ID.String(),
		out: cfg.Out.Get(), signal: signal, logger: set.Logger, named: make(map[string]bool),
	}
	if cfg.isFirst() {
		g.trust = trust.New(cfg.TrustedSenders)
	}
	g.onlyOut = g.out != nil && !cfg.Identities.HasValue() && !cfg.Content.HasValue()
	g.ofSignal = metric.WithAttributeSet(attribute.NewSet(attribute.String("signal", signal), attribute.String("processor", g.id)))
	for limit := range bounds.Limits {
		g.cutBy[limit] = metric.WithAttributeSet(attribute.NewSet(
			attribute.String("limit", limit.String()), attribute.String("processor", g.id)))
	}
	g.bounds = bounds.New(&cfg.Bounds)
	if c := cfg.Identities.Get(); c != nil {
		g.acquire = func(ctx context.Context, host component.Host) (err error) {
			g.identities, g.release, err = registry.Acquire(ctx, host, set.ID, func() (*identity.Filter, error) {
				return identity.New(c, set.TelemetrySettings, set.ID)
			})
			return err
		}
	}
	if c := cfg.Content.Get(); c != nil {
		g.content = withhold.New(c)
	}
	return g, nil
}

// changesTraces reports whether incoming spans are changed in place. The
// section identities alone changes a copy, and only if it replaces a value, so
// the fan-out need not clone.
func (g *guard) changesTraces() bool { return !g.onlyOut && (g.acquire == nil || g.content != nil) }

func (g *guard) processTraces(ctx context.Context, td ptrace.Traces) (ptrace.Traces, error) {
	if g.leadsNowhere() {
		return td, processorhelper.ErrSkipProcessingData
	}
	if g.changesTraces() {
		g.countCut(ctx, g.bounds.Traces(td))
	}
	if g.identities != nil {
		td = g.identities.Traces(ctx, td)
	}
	if g.content != nil {
		g.countReplaced(ctx, g.content.Traces(td))
	}
	return td, nil
}

func (g *guard) processMetrics(ctx context.Context, md pmetric.Metrics) (pmetric.Metrics, error) {
	if g.leadsNowhere() {
		return md, processorhelper.ErrSkipProcessingData
	}
	if n := g.trust.Metrics(ctx, md); n > 0 {
		g.countUntrusted(ctx, n)
		if md.ResourceMetrics().Len() == 0 {
			return md, processorhelper.ErrSkipProcessingData
		}
	}
	if !g.onlyOut {
		g.countCut(ctx, g.bounds.Metrics(md))
	}
	if g.identities != nil {
		g.identities.Metrics(ctx, md)
	}
	if g.content != nil {
		g.countReplaced(ctx, g.content.Metrics(md))
	}
	return md, nil
}

func (g *guard) processLogs(ctx context.Context, ld plog.Logs) (plog.Logs, error) {
	if g.leadsNowhere() {
		return ld, processorhelper.ErrSkipProcessingData
	}
	if n := g.trust.Logs(ctx, ld); n > 0 {
		g.countUntrusted(ctx, n)
		if ld.ResourceLogs().Len() == 0 {
			return ld, processorhelper.ErrSkipProcessingData
		}
	}
	if !g.onlyOut {
		g.countCut(ctx, g.bounds.Logs(ld))
	}
	if g.content != nil {
		g.countReplaced(ctx, g.content.Logs(ctx, ld))
	}
	return ld, nil
}

// countCut counts what the section bounds cut.
func (g *guard) countCut(ctx context.Context, counts bounds.Counts) {
	for limit, n := range counts {
		if n > 0 {
			g.telemetry.ProcessorMlGuardValuesCut.Add(ctx, n, g.cutBy[limit])
			g.left.Add(limitPrefix+bounds.Limit(limit).String(), n)
		}
	}
}

// maxNamed limits the senders that are named, which attackers may choose.
const maxNamed = 8

// countUntrusted counts points or log records of a sender that is not believed.
func (g *guard) countUntrusted(ctx context.Context, n int) {
	g.telemetry.ProcessorMlGuardUntrusted.Add(ctx, int64(n), g.ofSignal)
	name, known := g.nameUntrusted(sender.From(ctx).String())
	if !known {
		g.logger.Warn("Readings of GPUs or conclusions of collectors were dropped, because trusted_senders does not list their sender.",
			zap.String("sender", name))
	}
	g.left.Add(senderPrefix+name, int64(n))
}

// nameUntrusted returns the name by which a sender is counted, and whether it was named
// before.
func (g *guard) nameUntrusted(name string) (as string, known bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if known = g.named[name]; !known && len(g.named) >= maxNamed {
		return otherSenders, true
	}
	g.named[name] = true
	return name, known
}

// countReplaced counts what the section content replaced.
func (g *guard) countReplaced(ctx context.Context, replaced int64) {
	if replaced > 0 {
		g.telemetry.ProcessorMlGuardTextsReplaced.Add(ctx, replaced, g.ofSignal)
		g.left.Add(withheldText, replaced)
	}
}

func (g *guard) start(ctx context.Context, host component.Host) error {
	g.state = shared.StateOf(host)
	g.withdraw = g.state.PublishNotices(g.id, g.notices)
	return g.acquire.Start(ctx, host)
}

func (g *guard) shutdown(ctx context.Context) error {
	g.telemetry.Shutdown()
	if g.withdraw != nil {
		g.withdraw()
	}
	if g.release == nil {
		return nil
	}
	return g.release(ctx)
}
