package mlguardextension

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensionmiddleware"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/otelcol-ml/otelcol-ml/extension/mlguardextension/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/extension/mlguardextension/internal/request"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/hostnames"
)

var (
	_ extensionmiddleware.HTTPServer = (*guard)(nil)
	_ extensionmiddleware.GRPCServer = (*guard)(nil)
)

// guard is the extension.
type guard struct {
	limits    request.Limits
	progress  progress
	names     hostnames.Set
	state     *shared.State
	refused   shared.Tally // by limit
	withdraw  func()
	telemetry *metadata.TelemetryBuilder
	logger    *zap.Logger
	id        attribute.KeyValue
}

func newGuard(set extension.Settings, config *Config) (*guard, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	if err != nil {
		return nil, err
	}
	return &guard{
		limits:    request.Limits{Depth: config.MaxDepth, Messages: config.MaxMessages},
		progress:  progress{limit: int64(config.MaxMemoryMiB) << 20},
		names:     hostnames.Of(),
		telemetry: telemetry,
		withdraw:  func() {},
		id:        attribute.String("extension", set.ID.String()),
		// One line a minute, so that a client cannot fill the log; the counter
		// has all refusals.
		logger: set.Logger.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
			return zapcore.NewSamplerWithOptions(core, time.Minute, 1, 0)
		})),
	}, nil
}

// Start begins to publish notices.
func (g *guard) Start(_ context.Context, host component.Host) error {
	g.state = shared.StateOf(host)
	g.withdraw = g.state.PublishNotices(g.id.Value.AsString(), func() []shared.Notice { return g.refused.Notices(g.notice) })
	return nil
}

// notice says which requests were refused by a limit.
func (g *guard) notice(limit string) (shared.Notice, bool) {
	why := "They exceed max_" + limit + "."
	if limit == request.LimitMemory {
		why = "Those that were being processed needed max_" + limit + ". Senders may send them again."
	}
	id := g.id.Value.AsString()
	return shared.Notice{Kind: "limit", What: "Requests that were refused before decoding", Why: why, Fix: id + ": {max_" + limit + ": <more>}"}, true
}

// Shutdown unregisters the telemetry and the notices.
func (g *guard) Shutdown(context.Context) error {
	g.withdraw()
	g.telemetry.Shutdown()
	return nil
}

// refuse counts and logs a refused request, and returns the error for the
// client. Its code tells the client whether to retry; over HTTP it becomes 400, or
// 503 for a request that is refused for the moment.
func (g *guard) refuse(ctx context.Context, limit string) error {
	g.telemetry.ExtensionMlGuardRequestsRefused.Add(ctx, 1, metric.WithAttributes(g.id, attribute.String("limit", limit)))
	g.refused.Add(limit, 1)
	var err error
	switch limit {
	case request.LimitDepth:
		err = status.Errorf(codes.InvalidArgument, "ml_guard: values are nested deeper than %q (%d levels)", "max_depth", g.limits.Depth)
	case request.LimitMessages:
		err = status.Errorf(codes.InvalidArgument, "ml_guard: the request has more messages than %q (%d)", "max_messages", g.limits.Messages)
	default:
		g.state.Refused(time.Now())
		err = status.Errorf(codes.Unavailable, "ml_guard: the requests that are being processed need more memory than %q (%d), send this one again later", "max_memory_mib", g.progress.limit>>20)
	}
	g.logger.Warn("A request was refused before decoding. Further ones within a minute are counted but not logged.", zap.Error(err))
	return err
}

// progress is the estimated memory of the requests that are being processed, from
// decoding to the answer.
type progress struct {
	limit int64

	mu   sync.Mutex
	used int64
}

// begin takes the memory of a request, and returns false if there is not enough. A
// request that is the only one always begins.
func (p *progress) begin(memory int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.used > 0 && p.used+memory > p.limit {
		return false
	}
	p.used += memory
	return true
}

// end returns the memory of a request.
func (p *progress) end(memory int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used -= memory
}
