package route

import (
	"context"

	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/consumer"
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
func Traces(next consumer.Traces) consumer.Traces {
	send := func(ctx context.Context, td ptrace.Traces) error {
		for _, call := range byTrace(td) {
			if err := next.ConsumeTraces(ctx, call); err != nil {
				return err
			}
		}
		return nil
	}
	divided, _ := consumer.NewTraces(func(ctx context.Context, td ptrace.Traces) error {
		if err := checkCopies(td); err != nil {
			return err
		}
		divideTraces(td)
		return sendByRoute(ctx, td, ptrace.NewTraces, ptrace.Traces.ResourceSpans, send)
	}, consumer.WithCapabilities(next.Capabilities())) // it fails only without a function
	return divided
}

// Metrics does for metrics what Traces does for spans. The points of a GPU that name no
// run take the route that gpus has for it; gpus is
// called with each request.
func Metrics(next consumer.Metrics, gpus func() *GPUs) consumer.Metrics {
	divided, _ := consumer.NewMetrics(func(ctx context.Context, md pmetric.Metrics) error {
		divideMetrics(md, gpus())
		return sendByRoute(ctx, md, pmetric.NewMetrics, pmetric.Metrics.ResourceMetrics, next.ConsumeMetrics)
	}, consumer.WithCapabilities(next.Capabilities())) // it fails only without a function
	return divided
}

// Logs does for log records what Traces does for spans. The errors of a GPU that name no
// run take the route that gpus has for it; gpus is
// called with each request.
func Logs(next consumer.Logs, gpus func() *GPUs) consumer.Logs {
	divided, _ := consumer.NewLogs(func(ctx context.Context, ld plog.Logs) error {
		divideLogs(ld, gpus())
		return sendByRoute(ctx, ld, plog.NewLogs, plog.Logs.ResourceLogs, next.ConsumeLogs)
	}, consumer.WithCapabilities(next.Capabilities())) // it fails only without a function
	return divided
}

// sendByRoute sends the resources of a request, those of each route in a call of their
// own, in the order of their first resources. It ends at the first error.
func sendByRoute[T any, R resource[R], L slice[R]](
	ctx context.Context, request T, empty func() T, resources func(T) L, send func(context.Context, T) error,
) error {
	list := resources(request)
	if list.Len() == 0 {
		return send(ctx, request)
	}
	first, same := routeOf(list.At(0)), 1
	for same < list.Len() && routeOf(list.At(same)) == first {
		same++
	}
	if same == list.Len() {
		return send(withRoute(ctx, first), request)
	}
	var routes []string
	requests := make(map[string]T)
	for i := range list.Len() {
		route := routeOf(list.At(i))
		if _, known := requests[route]; !known && len(routes) >= maxCalls {
			route = ""
		}
		to, known := requests[route]
		if !known {
			to = empty()
			requests[route] = to
			routes = append(routes, route)
		}
		list.At(i).MoveTo(resources(to).AppendEmpty())
	}
	for _, route := range routes {
		if err := send(withRoute(ctx, route), requests[route]); err != nil {
			return err
		}
	}
	return nil
}

// withRoute returns the context of a call: that of the request, with the route, if there is
// one, among the client's metadata.
func withRoute(ctx context.Context, route string) context.Context {
	info := client.FromContext(ctx)
	data := make(map[string][]string)
	for key := range info.Metadata.Keys() {
		data[key] = info.Metadata.Get(key)
	}
	delete(data, mlattr.RouteMetadata)
	if route != "" {
		data[mlattr.RouteMetadata] = []string{route}
	}
	info.Metadata = client.NewMetadata(data)
	return client.NewContext(ctx, info)
}

// routeOf returns the route of a resource, or "" if it is no text.
func routeOf[R resource[R]](of R) string {
	return mlattr.FirstText(of.Resource().Attributes(), mlattr.Route)
}
