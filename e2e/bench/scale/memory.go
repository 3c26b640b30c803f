package main

import (
	"math"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/e2e/bench/growth"
	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// admitting raises the limits of a gateway, so that no run or rank of a measurement
// is beyond them, and adds them to other overrides.
func admitting(overrides map[string]any) map[string]any {
	if overrides == nil {
		overrides = map[string]any{}
	}
	for _, name := range []string{"service", "instance", "run", "rank", "user", "process", "label", "combination", "stream"} {
		overrides["processors::ml_guard/identities::identities::limits::"+name] = 1_000_000
	}
	overrides["connectors::ml_metrics::max_series"] = 1_000_000
	overrides["connectors::ml_metrics::max_runs"] = 10_000
	return overrides
}

// often adds that everything is flushed every second.
func often(overrides map[string]any) map[string]any {
	overrides["connectors::ml_metrics::flush_interval"] = "1s"
	overrides["connectors::ml_metrics::initial_zero"] = "0s"
	return overrides
}

// The sizes of two fleets, and what a gateway is sent of each.
const (
	fewRuns, manyRuns = 20, 80
	sentOfEach        = 20 * time.Second
	// tracesTime is for how long few runs then send only spans.
	tracesTime  = 30 * time.Second
	connections = 500
)

// memory measures what runs, traces and connections take of the memory of a gateway,
// and how many series runs have.
func memory(tb testing.TB, costs *growth.Costs) {
	tb.Helper()
	few, many := filled(tb, fewRuns), filled(tb, manyRuns)
	heapFew, heapMany := few.live(), many.live()
	costs.GatewayRank = (heapMany - heapFew) / (ranks * (manyRuns - fewRuns))
	costs.GatewayBase = heapFew - ranks*fewRuns*costs.GatewayRank
	ofRank, ofRun := 0, 0
	for _, line := range many.series() {
		switch {
		case !strings.HasPrefix(line, "ml_") || !strings.Contains(line, "ml_run_id=") || strings.Contains(line, "hw_id="):
		case strings.Contains(line, "ml_rank_global="):
			ofRank++
		default:
			ofRun++
		}
	}
	costs.SeriesRank, costs.SeriesRun = float64(ofRank)/(ranks*manyRuns), float64(ofRun)/manyRuns

	spans, _ := few.site.next(tracesTime)
	// A step of a rank is a trace.
	traces := float64(spanCount(spans)) / spansOfStep
	few.send(byProcess(spans), nil)
	costs.GatewayTraces = max(0, few.live()-heapFew) / (traces / 1000)

	before := few.own("otelcol_process_memory_rss", nil)
	few.connect(connections)
	costs.GatewayAgent = max(0, few.own("otelcol_process_memory_rss", nil)-before) / connections / 1024
}

// filledGateway is a gateway that has seen the runs of a site.
type filledGateway struct {
	*collector
	site *site
}

func filled(tb testing.TB, runs int) *filledGateway {
	tb.Helper()
	g := &filledGateway{
		// What lives is nearly all of the heap.
		collector: gateway(tb, startSink(tb, false).address, often(admitting(nil)), "GOGC=10"),
		site:      newSite(1, runs),
	}
	spans, points := g.site.next(sentOfEach)
	g.send(byProcess(spans), points)
	return g
}

// live returns the MiB of the heap that live: the least of some seconds.
func (g *filledGateway) live() float64 {
	g.Helper()
	least := math.Inf(1)
	for range 15 {
		pass(g, time.Second)
		least = min(least, g.own("otelcol_process_runtime_heap_alloc_bytes", nil))
	}
	return least / (1 << 20)
}

// connect opens connections that stay until the end, and sends a request on each.
func (g *filledGateway) connect(n int) {
	g.Helper()
	for range n {
		sender, err := harness.NewGRPCSender(g.Address(g, "receivers::otlp::protocols::grpc"))
		if err != nil {
			g.Fatal(err)
		}
		g.Cleanup(func() { _ = sender.Close() })
		if err := sender.Metrics(g.Context(), pmetric.NewMetrics()); err != nil {
			g.Fatal(err)
		}
	}
}
