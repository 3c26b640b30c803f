package mlguardextension

import (
	"cmp"
	"context"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"
	"go.opentelemetry.io/collector/extension/extensionmiddleware"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/otelcol-ml/otelcol-ml/extension/mlguardextension/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/extension/mlguardextension/internal/request"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/hostnames"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/sender"
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
	failover  failover
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
	g := &guard{
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
	}
	g.failover = failover{after: config.FailoverAfter, logger: set.Logger, endpoints: map[string]*endpoint{}, report: func(down int64) {
		g.telemetry.ExtensionMlGuardEndpointsDown.Record(context.Background(), down, metric.WithAttributes(g.id))
	}}
	g.failover.running, g.failover.end = context.WithCancel(context.Background())
	return g, nil
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
	g.failover.stop()
	g.telemetry.Shutdown()
	return nil
}

// admit lets a request begin that has arrived, or refuses it.
func (g *guard) admit(check request.Check) call {
	limit, memory := check.Exceeded(), check.Memory()
	if limit == "" && g.progress.begin(memory) {
		return call{memory: memory}
	}
	return call{refusal: g.refuse(cmp.Or(limit, request.LimitMemory))}
}

// refuse counts and logs a refused request, and returns the error for the
// client. Its code tells the client whether to retry; over HTTP it becomes 400, or
// 503 for a request that is refused for the moment.
func (g *guard) refuse(limit string) error {
	g.telemetry.ExtensionMlGuardRequestsRefused.Add(context.Background(), 1, metric.WithAttributes(g.id, attribute.String("limit", limit)))
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

// maxHeader is the size of a call's headers, names and values. gRPC's own limit of
// 16 MiB can be reached with a thirtieth of that on the wire, before authentication.
const maxHeader = 64 << 10

// GetGRPCServerOptions returns a codec that checks a request before the stock
// codec decodes it. gRPC turns an error of a codec into INTERNAL, so the codec
// leaves a refused request empty, and an interceptor refuses it.
func (g *guard) GetGRPCServerOptions(context.Context) ([]grpc.ServerOption, error) {
	c := &codec{CodecV2: encoding.GetCodecV2(proto.Name), guard: g} // which the package proto registers
	return []grpc.ServerOption{grpc.ForceServerCodecV2(c), grpc.StatsHandler(c), grpc.ChainUnaryInterceptor(c.intercept), grpc.MaxHeaderListSize(maxHeader)}, nil
}

// codec checks a request before the stock codec decodes it. It is also the
// stats.Handler that receives the context of a refused request: gRPC reports a
// decoded request to it first, from the same goroutine.
type codec struct {
	encoding.CodecV2
	guard *guard
	// calls are of requests between Unmarshal and HandleRPC.
	calls sync.Map
}

// Unmarshal decodes a request unless it exceeds a limit.
func (c *codec) Unmarshal(data mem.BufferSlice, target any) error {
	check := request.NewOf(target, c.guard.limits)
	if check == nil {
		return c.CodecV2.Unmarshal(data, target)
	}
	for _, part := range data {
		check.Write(part.ReadOnlyData())
	}
	of := c.guard.admit(check)
	of.size = data.Len()
	if of.refusal == nil {
		if err := c.CodecV2.Unmarshal(data, target); err != nil {
			c.guard.progress.end(of.memory)
			return err
		}
	}
	c.calls.Store(target, of)
	return nil
}

// callKey is of one codec, because a receiver may have several.
type callKey struct{ *codec }

// call is one call of a client.
type call struct {
	refusal error // nil if it is not refused
	memory  int64 // that it has begun with, until it ends
	size    int   // of the request
}

// TagRPC adds a call to its context.
func (c *codec) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, callKey{c}, &call{})
}

// HandleRPC gives a call what Unmarshal has said of its request, and returns the
// memory of a call that ends, with or without its interceptor.
func (c *codec) HandleRPC(ctx context.Context, event stats.RPCStats) {
	of, ok := ctx.Value(callKey{c}).(*call)
	if !ok {
		return
	}
	switch event := event.(type) {
	case *stats.InPayload:
		if found, ok := c.calls.LoadAndDelete(event.Payload); ok {
			*of = found.(call)
		}
	case *stats.End:
		c.end(of)
	}
}

func (c *codec) end(of *call) {
	c.guard.progress.end(of.memory)
	of.memory = 0
}

// TagConn returns the context unchanged.
func (c *codec) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn does nothing.
func (c *codec) HandleConn(context.Context, stats.ConnStats) {}

// intercept refuses a call. A call's memory is free when its answer is known: the
// client determines when the answer is sent.
func (c *codec) intercept(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	of, ok := ctx.Value(callKey{c}).(*call)
	if !ok {
		return handler(ctx, req)
	}
	if of.refusal != nil {
		return nil, of.refusal
	}
	defer c.end(of)
	return handler(sender.WithSize(ctx, of.size), req)
}

// GetHTTPHandler returns a handler that checks a body while the receiver reads
// it, after decompression and within the receiver's size limit. The receiver
// answers with the error of the body. On the loopback interface the handler refuses
// to be read under a name that is not the machine's (DNS rebinding).
func (g *guard) GetHTTPHandler(context.Context) (extensionmiddleware.WrapHTTPHandlerFunc, error) {
	return func(_ context.Context, next http.Handler) (http.Handler, error) {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if reads := r.Method == http.MethodGet || r.Method == http.MethodHead; reads && isLocal(r) && !g.names.Has(r.Host) {
				http.Error(w, "ml_guard: this name is not one of this machine. Ask by its address, its name or localhost.", http.StatusForbidden)
				return
			}
			// The receiver determines the encoding in the same way.
			var check request.Check
			switch mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); {
			case err != nil:
			case mediaType == "application/x-protobuf":
				check = request.NewProtobuf(r.URL.Path, g.limits)
			case mediaType == "application/json":
				check = request.NewJSON(g.limits)
			}
			if check != nil {
				b := &body{ReadCloser: r.Body, guard: g, check: check}
				r.Body = b
				defer func() { g.progress.end(b.memory) }()
			}
			next.ServeHTTP(w, r)
		}), nil
	}, nil
}

// isLocal reports whether a request came to an address that only programs on this
// machine can reach. A browser is one, and may ask for the page of a stranger.
func isLocal(r *http.Request) bool {
	address, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && address.IP.IsLoopback()
}

// body is a request's body whose Read fails once the request exceeds a limit. The
// receiver decodes it after its end.
type body struct {
	io.ReadCloser
	call  // from the end of the request
	guard *guard
	check request.Check
}

func (b *body) Read(p []byte) (int, error) {
	if b.refusal != nil {
		return 0, b.refusal
	}
	n, err := b.ReadCloser.Read(p)
	b.check.Write(p[:n])
	ended := errors.Is(err, io.EOF) && b.memory == 0
	if exceeds := b.check.Exceeded() != ""; !exceeds && !ended {
		return n, err
	} else if exceeds {
		// A client that is still sending when the connection closes does not
		// read the answer. The receiver's size limit bounds this read.
		defer func() { _, _ = io.Copy(io.Discard, b.ReadCloser) }()
	}
	if b.call = b.guard.admit(b.check); b.refusal != nil {
		return 0, b.refusal
	}
	return n, err
}
