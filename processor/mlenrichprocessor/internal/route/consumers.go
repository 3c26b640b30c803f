package route

import (
	"context"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// maxCalls is how many routes of one request are sent in calls of their own. The
// others follow in one call without the metadata.
const maxCalls = 256

// Traces returns a consumer that divides requests by route before it sends them
// to next, and gives each trace a resource of its own. A request that takes several
// calls ends at the first error.
func Traces(next consumer.Traces) (consumer.Traces, error) {
	send := func(ctx context.Context, td ptrace.Traces) error {
		d := byTrace{send: func(call ptrace.Traces) error { return next.ConsumeTraces(ctx, call) }}
		return d.divide(td)
	}
	return consumer.NewTraces(func(ctx context.Context, td ptrace.Traces) error {
		if err := checkCopies(td); err != nil {
			return err
		}
		divideTraces(td)
		return sendByRoute(ctx, td, ptrace.NewTraces, ptrace.Traces.ResourceSpans, send)
	}, consumer.WithCapabilities(next.Capabilities()))
}

// Metrics does for metrics what Traces does for spans. The points of a GPU that name no
// run take the route that gpus has for it; gpus is
// called with each request.
func Metrics(next consumer.Metrics, gpus func() *GPUs) (consumer.Metrics, error) {
	return consumer.NewMetrics(func(ctx context.Context, md pmetric.Metrics) error {
		divideMetrics(md, gpus())
		return sendByRoute(ctx, md, pmetric.NewMetrics, pmetric.Metrics.ResourceMetrics, next.ConsumeMetrics)
	}, consumer.WithCapabilities(next.Capabilities()))
}

// Logs does for log records what Traces does for spans. The errors of a GPU that name no
// run take the route that gpus has for it; gpus is
// called with each request.
func Logs(next consumer.Logs, gpus func() *GPUs) (consumer.Logs, error) {
	return consumer.NewLogs(func(ctx context.Context, ld plog.Logs) error {
		divideLogs(ld, gpus())
		return sendByRoute(ctx, ld, plog.NewLogs, plog.Logs.ResourceLogs, next.ConsumeLogs)
	}, consumer.WithCapabilities(next.Capabilities()))
}

// sendByRoute sends the resources of a request, those of each route in a call of their
// own. It ends at the first error.
func sendByRoute[T any, R resource[R], L slice[R]](
	ctx context.Context, request T, empty func() T, resources func(T) L, send func(context.Context, T) error,
) error {
	list := resources(request)
	calls := callsOf(list.Len(), func(i int) pcommon.Resource { return list.At(i).Resource() })
	if len(calls.routes) <= 1 {
		return send(calls.context(ctx, 0), request)
	}
	requests := make([]T, len(calls.routes))
	for i := range requests {
		requests[i] = empty()
	}
	for i, call := range calls.of {
		list.At(i).MoveTo(resources(requests[call]).AppendEmpty())
	}
	for call, request := range requests {
		if err := send(calls.context(ctx, call), request); err != nil {
			return err
		}
	}
	return nil
}

// calls says which resources of a request are sent together.
type calls struct {
	// of is the call of each resource.
	of []int
	// routes has the route of each call; "" is none.
	routes []string
}

// callsOf assigns the resources of a request to calls, in the order of their
// first resource.
func callsOf(resources int, resource func(int) pcommon.Resource) (c calls) {
	var known map[string]int
	for i := range resources {
		route := routeOf(resource(i).Attributes())
		if len(c.routes) == 0 {
			c.routes = append(c.routes, route)
		}
		if known == nil {
			if route == c.routes[0] {
				continue
			}
			known = map[string]int{c.routes[0]: 0}
			c.of = make([]int, i, resources)
		}
		call, ok := known[route]
		if !ok && len(c.routes) >= maxCalls {
			route = ""
			call, ok = known[route]
		}
		if !ok {
			call = len(c.routes)
			known[route] = call
			c.routes = append(c.routes, route)
		}
		c.of = append(c.of, call)
	}
	return c
}

// context returns the context of a call: that of the request, with the route
// among the client's metadata.
func (c *calls) context(ctx context.Context, call int) context.Context {
	if call >= len(c.routes) {
		return ctx
	}
	info := client.FromContext(ctx)
	data := make(map[string][]string)
	for key := range info.Metadata.Keys() {
		data[key] = info.Metadata.Get(key)
	}
	delete(data, mlattr.RouteMetadata)
	if route := c.routes[call]; route != "" {
		data[mlattr.RouteMetadata] = []string{route}
	}
	info.Metadata = client.NewMetadata(data)
	return client.NewContext(ctx, info)
}

// routeOf returns the route of a resource, or "" if it is no text.
func routeOf(attrs pcommon.Map) string {
	if v, ok := attrs.Get(mlattr.Route); ok && v.Type() == pcommon.ValueTypeStr {
		return v.Str()
	}
	return ""
}
