package smoke

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// startGatewayAgent starts a collector with agent-gateway.yaml, without GPUs, that sends
// to the given addresses, and returns it with a sender.
func startGatewayAgent(t *testing.T, gateways ...string) (*harness.Collector, *harness.GRPCSender) {
	t.Helper()
	dir := t.TempDir()
	collector := harness.StartCollector(t, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "agent-gateway.yaml"),
		Env:    []string{"OTELCOL_ML_QUEUE_DIR=" + filepath.Join(dir, "queue")},
		Dir:    dir,
		Overrides: map[string]any{
			"exporters::load_balancing::resolver":                            map[string]any{"dns": nil, "static": map[string]any{"hostnames": gateways}},
			"receivers::gpu":                                                 map[string]any{"source": "replay", "collection_interval": "1s", "replay": map[string]any{"path": harness.Path("receiver", "gpureceiver", "testdata", "captures", "demo-2xh100.yaml")}},
			"service::pipelines::metrics::receivers":                         []string{"otlp"},
			"service::pipelines::logs::receivers":                            []string{"otlp"},
			"exporters::load_balancing::sending_queue::batch::flush_timeout": "100ms",
		},
	})
	sender, err := harness.NewGRPCSender(collector.Address(t, "receivers::otlp::protocols::grpc"))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, sender.Close()) })
	return collector, sender
}

// runsOfOneService are spans, points and log records of one service, of which
// each names its run, and one of each that names none.
func runsOfOneService(runs int) (ptrace.Traces, pmetric.Metrics, plog.Logs) {
	td, md, ld := ptrace.NewTraces(), pmetric.NewMetrics(), plog.NewLogs()
	rs, rm, rl := td.ResourceSpans().AppendEmpty(), md.ResourceMetrics().AppendEmpty(), ld.ResourceLogs().AppendEmpty()
	for _, resource := range []pcommon.Resource{rs.Resource(), rm.Resource(), rl.Resource()} {
		resource.Attributes().PutStr("service.name", "tuner")
		resource.Attributes().PutStr("service.instance.id", "tuner-1")
		resource.Attributes().PutStr("host.name", "n1")
	}
	spans, records := rs.ScopeSpans().AppendEmpty().Spans(), rl.ScopeLogs().AppendEmpty().LogRecords()
	gauge := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	gauge.SetName("tuner.queue")
	points := gauge.SetEmptyGauge().DataPoints()
	for i := range runs + 1 {
		span, record, point := spans.AppendEmpty(), records.AppendEmpty(), points.AppendEmpty()
		trace := pcommon.TraceID{1, byte(i)}
		span.SetTraceID(trace)
		span.SetSpanID(pcommon.SpanID{1, byte(i)})
		span.SetName("step")
		record.Body().SetStr("a step")
		point.SetIntValue(int64(i))
		if i == runs {
			continue
		}
		// The record gets the run of its trace.
		record.SetTraceID(trace)
		span.Attributes().PutStr("ml.run.id", runName(i))
		point.Attributes().PutStr("ml.run.id", runName(i))
	}
	return td, md, ld
}

func runName(i int) string { return fmt.Sprintf("run-%02d", i) }

// routesOf returns for each signal the routes of what a gateway has received.
func routesOf(t *testing.T, gateway *harness.Sink) map[string]map[string]bool {
	t.Helper()
	routes := map[string]map[string]bool{"traces": {}, "metrics": {}, "logs": {}}
	add := func(signal string, resource pcommon.Resource) {
		route, ok := resource.Attributes().Get("ml.route")
		if assert.True(t, ok, "a resource of the %s has no route: %v", signal, resource.Attributes().AsRaw()) {
			routes[signal][route.Str()] = true
		}
	}
	for _, td := range gateway.Traces() {
		for _, rs := range td.ResourceSpans().All() {
			add("traces", rs.Resource())
		}
	}
	for _, md := range gateway.MetricRequests() {
		for _, rm := range md.ResourceMetrics().All() {
			add("metrics", rm.Resource())
		}
	}
	for _, ld := range gateway.Logs() {
		for _, rl := range ld.ResourceLogs().All() {
			add("logs", rl.Resource())
		}
	}
	return routes
}

// All that belongs to a run goes to one gateway, and runs are spread.
func TestAllSignalsOfARunGoToOneGateway(t *testing.T) {
	t.Parallel()
	const runs = 30
	gateways := []*harness.Sink{harness.StartSink(t), harness.StartSink(t), harness.StartSink(t)}
	agent, sender := startGatewayAgent(t, gateways[0].Endpoint, gateways[1].Endpoint, gateways[2].Endpoint)
	td, md, ld := runsOfOneService(runs)
	require.NoError(t, sender.Traces(t.Context(), td))
	require.NoError(t, sender.Metrics(t.Context(), md))
	require.NoError(t, sender.Logs(t.Context(), ld))

	require.EventuallyWithT(t, func(c *assert.CollectT) {
		spans, records := 0, 0
		for _, gateway := range gateways {
			spans += len(gateway.Spans())
			records += len(gateway.LogRecords())
		}
		assert.Equal(c, runs+1, spans)
		assert.Equal(c, runs+1, records)
	}, arrival, poll)
	stopDropIn(t, agent)

	assertRoutes(t, runs, gateways...)
}

// assertRoutes expects that the gateways have all runs, and what has no run, and each
// at one gateway in all signals.
func assertRoutes(t *testing.T, runs int, gateways ...*harness.Sink) {
	t.Helper()
	want := map[string]bool{"tuner": true}
	for i := range runs {
		want[runName(i)] = true
	}
	seen := map[string]bool{}
	for i, gateway := range gateways {
		routes := routesOf(t, gateway)
		assert.NotEmpty(t, routes["traces"], "gateway %d has no run", i)
		assert.Equal(t, routes["traces"], routes["metrics"], "gateway %d", i)
		assert.Equal(t, routes["traces"], routes["logs"], "gateway %d", i)
		for route := range routes["traces"] {
			assert.False(t, seen[route], "%s goes to two gateways", route)
			seen[route] = true
		}
	}
	assert.Equal(t, want, seen)
}

// A gateway shows Prometheus nothing that was only needed on the way to it: it
// has the rows of target_info and the labels of a single collector.
func TestGatewaysTakeTheRouteOff(t *testing.T) {
	t.Parallel()
	const runs = 5
	direct := expositionOf(t, runs, func(overrides map[string]any) (send *harness.GRPCSender, shows *harness.Collector) {
		collector := startWith(t, "production.yaml", overrides)
		return senderTo(t, collector), collector
	})
	assert.NotEmpty(t, direct["target_info"])
	for name, start := range map[string]func(map[string]any) (*harness.GRPCSender, *harness.Collector){
		"OTLP": func(overrides map[string]any) (send *harness.GRPCSender, shows *harness.Collector) {
			gateway := startWith(t, "gateway.yaml", overrides)
			_, sender := startGatewayAgent(t, gateway.Address(t, "receivers::otlp::protocols::grpc"))
			return sender, gateway
		},
		"Kafka": func(overrides map[string]any) (send *harness.GRPCSender, shows *harness.Collector) {
			broker := harness.StartKafkaStandIn(t)
			gateway := startKafkaGateway(t, broker, "gateway-0", nil, overrides)
			return senderTo(t, startKafkaAgent(t, broker)), gateway
		},
	} {
		t.Run(name, func(t *testing.T) {
			routed := expositionOf(t, runs, start)
			assert.Equal(t, direct, routed)
			for name, series := range routed {
				for _, one := range series {
					assert.NotContains(t, one, "ml_route", "%s", name)
					assert.NotContains(t, one, "ml_run_split", "%s", name)
				}
			}
		})
	}
}

func startWith(t *testing.T, config string, overrides map[string]any) *harness.Collector {
	t.Helper()
	dir := t.TempDir()
	return harness.StartCollector(t, harness.CollectorOptions{
		Config:    harness.Path("distribution", "config", config),
		Env:       []string{"OTELCOL_ML_QUEUE_DIR=" + filepath.Join(dir, "queue")},
		Dir:       dir,
		Overrides: overrides,
	})
}

func senderTo(t *testing.T, collector *harness.Collector) *harness.GRPCSender {
	t.Helper()
	sender, err := harness.NewGRPCSender(collector.Address(t, "receivers::otlp::protocols::grpc"))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, sender.Close()) })
	return sender
}

// expositionOf returns the labels of the series that spans and points cause, by
// name, except those of the collectors themselves.
func expositionOf(t *testing.T, runs int, startAll func(map[string]any) (*harness.GRPCSender, *harness.Collector)) map[string][]string {
	t.Helper()
	sender, shows := startAll(map[string]any{
		"connectors::ml_metrics::flush_interval":          "1s",
		"connectors::ml_metrics::initial_zero":            "0s",
		"processors::ml_guard/content::content::hash_key": "a key of at least thirty-two bytes",
	})
	td, md, _ := runsOfOneService(runs)
	require.NoError(t, sender.Traces(t.Context(), td))
	require.NoError(t, sender.Metrics(t.Context(), md))
	series := map[string][]string{}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		samples, err := harness.Scrape(t.Context(), shows.Address(t, "exporters::prometheus"))
		if !assert.NoError(c, err) {
			return
		}
		calls := 0.0
		for _, one := range harness.Select(samples, "traces_span_metrics_calls_total", nil) {
			calls += one.Value
		}
		assert.InDelta(c, runs+1, calls, 0)
		assert.Len(c, harness.Select(samples, "tuner_queue", nil), runs+1)
		clear(series)
		for _, name := range []string{"target_info", "tuner_queue", "traces_span_metrics_calls_total"} {
			for _, one := range harness.Select(samples, name, nil) {
				series[name] = append(series[name], labelsText(one.Labels))
			}
			slices.Sort(series[name])
		}
	}, arrival, poll)
	return series
}

// labelsText returns labels as text, without the one that differs from collector
// to collector.
func labelsText(labels harness.Labels) string {
	var text []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if key == "collector_instance_id" {
			continue
		}
		text = append(text, key+"="+labels[key])
	}
	return strings.Join(text, ",")
}
