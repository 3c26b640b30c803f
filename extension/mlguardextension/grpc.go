package mlguardextension

import (
	"context"
	"errors"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/stats"

	"github.com/otelcol-ml/otelcol-ml/extension/mlguardextension/internal/request"
)

// GetGRPCServerOptions returns a codec that checks a request before the stock
// codec decodes it. gRPC turns an error of a codec into INTERNAL, so the codec
// leaves a refused request empty, and an interceptor refuses it.
func (g *guard) GetGRPCServerOptions(context.Context) ([]grpc.ServerOption, error) {
	stock := encoding.GetCodecV2(proto.Name)
	if stock == nil {
		return nil, errors.New("gRPC has no codec for protobuf")
	}
	c := &codec{CodecV2: stock, guard: g}
	return []grpc.ServerOption{grpc.ForceServerCodecV2(c), grpc.StatsHandler(c), grpc.ChainUnaryInterceptor(refuse)}, nil
}

// codec checks a request before the stock codec decodes it. It is also the
// stats.Handler that receives the context of a refused request: gRPC reports a
// decoded request to it first, from the same goroutine.
type codec struct {
	encoding.CodecV2
	guard *guard
	// exceeded maps a refused request to its limit, between Unmarshal and
	// HandleRPC.
	exceeded sync.Map
}

// Unmarshal decodes a request unless it exceeds a limit.
func (c *codec) Unmarshal(data mem.BufferSlice, target any) error {
	if check := request.NewOf(target, c.guard.limits); check != nil {
		for _, part := range data {
			check.Write(part.ReadOnlyData())
		}
		if limit := check.Exceeded(); limit != "" {
			c.exceeded.Store(target, limit)
			return nil
		}
	}
	return c.CodecV2.Unmarshal(data, target)
}

type refusalKey struct{}

// refusal is the error of one call, nil if it is not refused.
type refusal struct{ err error }

// TagRPC adds an empty refusal to a call's context.
func (c *codec) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, refusalKey{}, &refusal{})
}

// HandleRPC refuses the call whose request Unmarshal left empty.
func (c *codec) HandleRPC(ctx context.Context, event stats.RPCStats) {
	payload, ok := event.(*stats.InPayload)
	if !ok {
		return
	}
	limit, ok := c.exceeded.LoadAndDelete(payload.Payload)
	if call, tagged := ctx.Value(refusalKey{}).(*refusal); ok && tagged {
		call.err = c.guard.refuse(ctx, limit.(string))
	}
}

// TagConn returns the context unchanged.
func (c *codec) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn does nothing.
func (c *codec) HandleConn(context.Context, stats.ConnStats) {}

func refuse(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if call, ok := ctx.Value(refusalKey{}).(*refusal); ok && call.err != nil {
		return nil, call.err
	}
	return handler(ctx, req)
}
