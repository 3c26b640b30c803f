package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"os"
	"path/filepath"
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
	overrides["connectors::span_metrics::metrics_flush_interval"] = "1s"
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
// and how many series runs have. Then a Prometheus reads the larger fleet.
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
	few.send(byProcess(spans), nil)
	// A step of a rank is a trace.
	costs.GatewayTraces = max(0, few.live()-heapFew) / (float64(spanCount(spans)) / spansOfStep / 1000)

	before := few.own("otelcol_process_memory_rss", nil)
	few.connect(connections)
	costs.GatewayAgent = max(0, few.own("otelcol_process_memory_rss", nil)-before) / connections / 1024

	fmt.Fprintf(os.Stderr, "and memory: %+v\n", *costs)
	costs.SampleDisk, costs.SeriesMemory = many.prometheus()
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

// samplesOfSeries is half a chunk of Prometheus for each series.
const samplesOfSeries = 60

// reader is a Prometheus that reads one collector and has no rules.
const reader = `global: {scrape_interval: 1s, scrape_timeout: 1s}
scrape_configs:
  - {job_name: gateway, honor_labels: true, static_configs: [{targets: [%q]}]}
`

// prometheus returns the bytes of a sample on disk and the KiB of memory of a series
// of a Prometheus that reads the gateway while its runs go on.
func (g *filledGateway) prometheus() (sampleBytes, seriesKiB float64) {
	g.Helper()
	config := filepath.Join(g.TempDir(), "reader.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, reader, g.Address(g, "exporters::prometheus")), 0o600); err != nil {
		g.Fatal(err)
	}
	prometheus := harness.StartPrometheusAt(g, config, nil)
	own := func(name string) float64 {
		samples, err := harness.Scrape(g.Context(), strings.TrimPrefix(prometheus.URL(), "http://"))
		if err != nil {
			g.Fatal(err)
		}
		total := 0.
		for _, sample := range harness.Select(samples, name, nil) {
			total += sample.Value
		}
		return total
	}
	empty := own("process_resident_memory_bytes")
	for own("prometheus_tsdb_head_series") == 0 || own("prometheus_tsdb_head_samples_appended_total") < samplesOfSeries*own("prometheus_tsdb_head_series") {
		spans, points := g.site.next(time.Second)
		g.send(byProcess(spans), points)
		pass(g, time.Second)
	}
	seriesKiB = (own("process_resident_memory_bytes") - empty) / own("prometheus_tsdb_head_series") / 1024
	blocks := snapshot(g, prometheus)
	return size(g, filepath.Join(blocks, "chunks")) / samples(g, blocks), seriesKiB
}

// snapshot has Prometheus write what it has, and returns the folder of the block.
func snapshot(tb testing.TB, prometheus *harness.Prometheus) string {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), settle)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, prometheus.URL()+"/api/v1/admin/tsdb/snapshot", http.NoBody)
	if err != nil {
		tb.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var answer struct{ Data struct{ Name string } }
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || answer.Data.Name == "" {
		tb.Fatalf("no snapshot: %s, %v", response.Status, err)
	}
	blocks, err := filepath.Glob(filepath.Join(prometheus.Data(), "snapshots", answer.Data.Name, "*", "meta.json"))
	if err != nil || len(blocks) != 1 {
		tb.Fatalf("the snapshot has the blocks %q, %v; want one", blocks, err)
	}
	return filepath.Dir(blocks[0])
}

// samples returns the number of samples of a block.
func samples(tb testing.TB, block string) float64 {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join(block, "meta.json")) //nolint:gosec // a file of the snapshot
	if err != nil {
		tb.Fatal(err)
	}
	var meta struct{ Stats struct{ NumSamples float64 } }
	if err := json.Unmarshal(text, &meta); err != nil || meta.Stats.NumSamples == 0 {
		tb.Fatalf("the block has no samples: %s, %v", text, err)
	}
	return meta.Stats.NumSamples
}

// size returns the bytes of the files below a folder.
func size(tb testing.TB, folder string) (total float64) {
	tb.Helper()
	err := filepath.WalkDir(folder, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			total += float64(info.Size())
		}
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return total
}
