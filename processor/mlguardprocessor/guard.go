package mlguardprocessor

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processorhelper"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

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
		out: cfg.Out.Get(), signal: signal, logger: set.Logger, named: make(map[string]bool), withdraw: func() {},
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
	g.withdraw()
	return component.ShutdownFunc(g.release).Shutdown(ctx)
}

// endsAfter is how long everything must have been taken until a time without is
// over: a queue that is full takes a request now and then.
const endsAfter = 30 * time.Second

// untaken is what the components after a guard have not taken. The zero value is
// ready. It is safe for concurrent use.
type untaken struct {
	mu sync.Mutex
	// lasts reports whether there is such a time now.
	lasts bool
	// since and last are the beginning of the present or last such time and when
	// something was last not taken in it, until its end. items were not taken in it,
	// and all ever.
	since, last, until time.Time
	items, all         int64
}

// add adds what was not taken. It returns true if a time without begins.
func (u *untaken) add(now time.Time, items int) (begins bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if begins = !u.lasts; begins {
		u.lasts, u.since, u.items = true, now, 0
	}
	u.last = now
	u.items += int64(items)
	u.all += int64(items)
	return begins
}

// taken returns true if a time without ends because something was taken.
func (u *untaken) taken() (ends bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.lasts || time.Since(u.last) < endsAfter {
		return false
	}
	u.lasts, u.until = false, time.Now()
	return true
}

// passed takes what the next component returned for items, and returns what the
// sender is told.
func (g *guard) passed(ctx context.Context, items int, err error) error {
	if err == nil {
		if g.untaken.taken() {
			g.logger.Info("What follows takes data again.", zap.String("signal", g.signal))
		}
		return nil
	}
	if g.drops() {
		g.telemetry.ProcessorMlGuardItemsDropped.Add(ctx, int64(items), g.ofSignal)
		if g.untaken.add(time.Now(), items) {
			g.logger.Warn("Data is dropped, because what follows refuses it.", zap.String("signal", g.signal), zap.Error(err))
		}
		return nil
	}
	// A guard that is nearer to the refusal has counted it.
	counted := errors.As(err, new(*retryError))
	temporary, told := g.withRetry(err)
	if temporary && !counted && ctx.Err() == nil {
		now := time.Now()
		g.state.Refused(now)
		g.telemetry.ProcessorMlGuardItemsRefused.Add(ctx, int64(items), g.ofSignal)
		if g.untaken.add(now, items) {
			g.logger.Warn("Data is refused, because what follows refuses it.", zap.String("signal", g.signal), zap.Error(err))
		}
	}
	return told
}

// drops reports whether what is not taken is dropped.
func (g *guard) drops() bool { return g.out != nil && g.out.WhenRefused == Drop }

// leadsNowhere reports whether there is no back end.
func (g *guard) leadsNowhere() bool {
	return g.out != nil && g.out.Destination != nil && *g.out.Destination == ""
}

// retryError is a temporary error with the delay until the next attempt.
type retryError struct {
	error
	status *status.Status
}

func (e *retryError) Unwrap() error { return e.error }

// GRPCStatus returns the status with which a receiver answers.
func (e *retryError) GRPCStatus() *status.Status { return e.status }

// withRetry adds the retry delay to an error that is temporary, as the first result
// says. It returns other errors unchanged: those that are permanent, or whose client
// has gone. Of an error that already has a delay, the delay stays.
func (g *guard) withRetry(err error) (temporary bool, told error) {
	if consumererror.IsPermanent(err) || errors.Is(err, context.Canceled) {
		return false, err
	}
	s, known := status.FromError(err)
	if !known {
		s = status.New(codes.Unavailable, err.Error())
	}
	switch s.Code() {
	case codes.Unavailable, codes.ResourceExhausted, codes.Aborted, codes.DeadlineExceeded, codes.OutOfRange, codes.DataLoss:
	default:
		return false, err
	}
	if g.retryAfter == 0 {
		return true, err
	}
	for _, detail := range s.Details() {
		if _, ok := detail.(*errdetails.RetryInfo); ok {
			return true, &retryError{error: err, status: s}
		}
	}
	s, detailed := s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(g.retryAfter)})
	if detailed != nil {
		return true, err
	}
	return true, &retryError{error: err, status: s}
}

// passing passes requests to the next component, and its errors to the guard. It tells that
// component that their sender is believed.
func passing[T any](g *guard, items func(T) int, next func(context.Context, T) error) func(context.Context, T) error {
	return func(ctx context.Context, data T) error {
		n := items(data) // the next component may change them
		return g.passed(ctx, n, next(g.trust.Mark(ctx), data))
	}
}
