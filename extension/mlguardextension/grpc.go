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
// one decodes it. What a codec returns becomes INTERNAL, so the codec leaves a
// refused request empty, and an interceptor refuses it.
func (g *guard) GetGRPCServerOptions(context.Context) ([]grpc.ServerOption, error) {
	stock := encoding.GetCodecV2(proto.Name)
	if stock == nil {
		return nil, errors.New("gRPC has no codec for protobuf")
	}
	c := &codec{CodecV2: stock, guard: g}
	return []grpc.ServerOption{grpc.ForceServerCodecV2(c), grpc.StatsHandler(c), grpc.ChainUnaryInterceptor(refuse)}, nil
}

// codec is the stock codec with a check before it. As a stats.Handler it learns
// the context of what it has refused: gRPC reports a request that is decoded
// before anything else sees it, from the same goroutine.
type codec struct {
	encoding.CodecV2
	guard *guard
	// exceeded has the limit of each refused request between the two.
	exceeded sync.Map
}

// Unmarshal decodes a request, unless it exceeds a limit.
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

// refusal is what is known of one call.
type refusal struct{ err error }

// TagRPC gives a call's context a place for what is known of the call.
func (c *codec) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, refusalKey{}, &refusal{})
}

// HandleRPC refuses the call whose request Unmarshal has left empty.
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

// TagConn leaves connections as they are.
func (c *codec) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn does nothing.
func (c *codec) HandleConn(context.Context, stats.ConnStats) {}

func refuse(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	if call, ok := ctx.Value(refusalKey{}).(*refusal); ok && call.err != nil {
		return nil, call.err
	}
	return handler(ctx, req)
}
