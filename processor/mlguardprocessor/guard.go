package mlguardprocessor

import (
	"context"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
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
	identities *shared.Use[*identity.Filter] // that of all instances with the component id
	content    *withhold.Filter
	out        *wayOut
	// onlyOut reports whether out is the only section, so nothing is changed.
	onlyOut   bool
	telemetry *metadata.TelemetryBuilder
	logger    *zap.Logger
	id        string
	// cutBy has the attributes of the counter of cut values, by limit.
	cutBy [bounds.Limits]metric.MeasurementOption

	// left counts what was left out.
	left     shared.Tally
	withdraw func()
	// named has the senders that were not believed and that left counts by name.
	mu    sync.Mutex
	named map[string]bool
}

func newGuard(set processor.Settings, cfg *Config, registry *shared.Registry[*identity.Filter], signal string) (*guard, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	id := set.ID.String()
	g := &guard{
		telemetry: telemetry, logger: set.Logger, id: id, named: make(map[string]bool), withdraw: func() {},
		bounds:  bounds.New(&cfg.Bounds),
		onlyOut: cfg.Out.HasValue() && !cfg.Identities.HasValue() && !cfg.Content.HasValue(),
		out:     newWayOut(cfg, set, telemetry, signal),
	}
	if cfg.isFirst() {
		g.trust = trust.New(cfg.TrustedSenders)
	}
	for limit := range bounds.Limits {
		g.cutBy[limit] = metric.WithAttributeSet(attribute.NewSet(
			attribute.String("limit", limit.String()), attribute.String("processor", id)))
	}
	if c := cfg.Identities.Get(); c != nil {
		use := registry.Use(set.ID, func() (*identity.Filter, error) { return identity.New(c, set.TelemetrySettings, set.ID) })
		g.identities = &use
	}
	if c := cfg.Content.Get(); c != nil {
		g.content = withhold.New(c)
	}
	return g, nil
}

// changesTraces reports whether incoming spans are changed in place. The
// section identities alone changes a copy, and only if it replaces a value, so
// the fan-out need not clone.
func (g *guard) changesTraces() bool { return !g.onlyOut && (g.identities == nil || g.content != nil) }

func (g *guard) processTraces(ctx context.Context, td ptrace.Traces) (ptrace.Traces, error) {
	if g.out.leadsNowhere() {
		return td, processorhelper.ErrSkipProcessingData
	}
	if g.changesTraces() {
		g.countCut(ctx, g.bounds.Traces(td))
	}
	if g.identities != nil {
		td = g.identities.Shared.Traces(ctx, td)
	}
	if g.content != nil {
		g.countReplaced(ctx, g.content.Traces(td))
	}
	return td, nil
}

func (g *guard) processMetrics(ctx context.Context, md pmetric.Metrics) (pmetric.Metrics, error) {
	if g.out.leadsNowhere() || g.countUntrusted(ctx, g.trust.Metrics(ctx, md)) && md.ResourceMetrics().Len() == 0 {
		return md, processorhelper.ErrSkipProcessingData
	}
	if !g.onlyOut {
		g.countCut(ctx, g.bounds.Metrics(md))
	}
	if g.identities != nil {
		g.identities.Shared.Metrics(ctx, md)
	}
	if g.content != nil {
		g.countReplaced(ctx, g.content.Metrics(md))
	}
	return md, nil
}

func (g *guard) processLogs(ctx context.Context, ld plog.Logs) (plog.Logs, error) {
	if g.out.leadsNowhere() || g.countUntrusted(ctx, g.trust.Logs(ctx, ld)) && ld.ResourceLogs().Len() == 0 {
		return ld, processorhelper.ErrSkipProcessingData
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

// countUntrusted counts points or log records of a sender that is not believed, and reports
// whether there were any.
func (g *guard) countUntrusted(ctx context.Context, n int) bool {
	if n == 0 {
		return false
	}
	g.telemetry.ProcessorMlGuardUntrusted.Add(ctx, int64(n), g.out.ofSignal)
	name := sender.From(ctx).String()
	g.mu.Lock()
	known := g.named[name]
	if !known && len(g.named) >= maxNamed {
		name, known = otherSenders, true
	} else {
		g.named[name] = true
	}
	g.mu.Unlock()
	if !known {
		g.logger.Warn("Readings of GPUs or conclusions of collectors were dropped, because trusted_senders does not list their sender.",
			zap.String("sender", name))
	}
	g.left.Add(senderPrefix+name, int64(n))
	return true
}

// countReplaced counts what the section content replaced.
func (g *guard) countReplaced(ctx context.Context, replaced int64) {
	if replaced > 0 {
		g.telemetry.ProcessorMlGuardTextsReplaced.Add(ctx, replaced, g.out.ofSignal)
		g.left.Add(withheldText, replaced)
	}
}

// options are those of a processor that changes its data or does not.
func (g *guard) options(changes bool) []processorhelper.Option {
	return []processorhelper.Option{
		processorhelper.WithCapabilities(consumer.Capabilities{MutatesData: changes}),
		processorhelper.WithStart(g.start), processorhelper.WithShutdown(g.shutdown),
	}
}

func (g *guard) start(ctx context.Context, host component.Host) error {
	g.out.state = shared.StateOf(host)
	g.withdraw = g.out.state.PublishNotices(g.id, g.notices)
	return g.identities.Start(ctx, host)
}

func (g *guard) shutdown(ctx context.Context) error {
	g.telemetry.Shutdown()
	g.withdraw()
	return g.identities.Shutdown(ctx)
}

// passing passes requests to the next component, and its errors to the guard. It tells that
// component that their sender is believed.
func passing[T any](g *guard, items func(T) int, next func(context.Context, T) error) func(context.Context, T) error {
	return func(ctx context.Context, data T) error {
		n := items(data) // the next component may change them
		return g.out.passed(ctx, n, next(g.trust.Mark(ctx), data))
	}
}
