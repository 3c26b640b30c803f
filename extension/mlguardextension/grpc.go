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

// maxHeader is the size of a call's headers, names and values. gRPC's own limit of
// 16 MiB can be reached with a thirtieth of that on the wire, before authentication.
const maxHeader = 64 << 10

// GetGRPCServerOptions returns a codec that checks a request before the stock
// codec decodes it. gRPC turns an error of a codec into INTERNAL, so the codec
// leaves a refused request empty, and an interceptor refuses it.
func (g *guard) GetGRPCServerOptions(context.Context) ([]grpc.ServerOption, error) {
	stock := encoding.GetCodecV2(proto.Name)
	if stock == nil {
		return nil, errors.New("gRPC has no codec for protobuf")
	}
	c := &codec{CodecV2: stock, guard: g}
	return []grpc.ServerOption{grpc.ForceServerCodecV2(c), grpc.StatsHandler(c), grpc.ChainUnaryInterceptor(c.intercept), grpc.MaxHeaderListSize(maxHeader)}, nil
}

// codec checks a request before the stock codec decodes it. It is also the
// stats.Handler that receives the context of a refused request: gRPC reports a
// decoded request to it first, from the same goroutine.
type codec struct {
	encoding.CodecV2
	guard *guard
	// verdicts are of requests between Unmarshal and HandleRPC.
	verdicts sync.Map
}

// verdict is what the check says of one request.
type verdict struct {
	limit  string // that the request exceeds, or ""
	memory int64  // that it has begun with, until it ends
}

// Unmarshal decodes a request unless it exceeds a limit.
func (c *codec) Unmarshal(data mem.BufferSlice, target any) error {
	if check := request.NewOf(target, c.guard.limits); check != nil {
		for _, part := range data {
			check.Write(part.ReadOnlyData())
		}
		if limit := check.Exceeded(); limit != "" {
			c.verdicts.Store(target, verdict{limit: limit})
			return nil
		}
		memory := check.Memory()
		if !c.guard.progress.begin(memory) {
			c.verdicts.Store(target, verdict{limit: request.LimitMemory})
			return nil
		}
		if err := c.CodecV2.Unmarshal(data, target); err != nil {
			c.guard.progress.end(memory)
			return err
		}
		c.verdicts.Store(target, verdict{memory: memory})
		return nil
	}
	return c.CodecV2.Unmarshal(data, target)
}

// callKey is of one codec, because a receiver may have several.
type callKey struct{ *codec }

// call is one call of a client.
type call struct {
	refusal error // nil if it is not refused
	memory  int64
}

// TagRPC adds a call to its context.
func (c *codec) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, callKey{c}, &call{})
}

// HandleRPC refuses the call whose request Unmarshal left empty, and returns the
// memory of a call that ends, with or without its interceptor.
func (c *codec) HandleRPC(ctx context.Context, event stats.RPCStats) {
	of, ok := ctx.Value(callKey{c}).(*call)
	if !ok {
		return
	}
	switch event := event.(type) {
	case *stats.InPayload:
		if found, ok := c.verdicts.LoadAndDelete(event.Payload); ok {
			if v := found.(verdict); v.limit != "" {
				of.refusal = c.guard.refuse(ctx, v.limit)
			} else {
				of.memory = v.memory
			}
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
	return handler(ctx, req)
}
