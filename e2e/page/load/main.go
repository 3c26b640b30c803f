// Command load measures what the live page costs with a large fleet and many
// open pages: processor time, bytes of an update, memory and the longest frame in
// a browser. It runs the built collector with ml_view and without, with the same
// simulated telemetry.
//
// Nothing is asserted; see docs/evidence/performance.md.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
	"github.com/otelcol-ml/otelcol-ml/e2e/page/browser"
)

// options are the command line's.
type options struct {
	pages, runs, ranks, gpus int
	rounds                   int
	window, flush            time.Duration
}

func main() {
	var o options
	flag.IntVar(&o.pages, "pages", 32, "open pages; one of them is in a browser")
	flag.IntVar(&o.runs, "runs", 500, "simulated runs")
	flag.IntVar(&o.ranks, "ranks", 8, "processes of each run")
	flag.IntVar(&o.gpus, "gpus", 512, "simulated GPUs")
	flag.IntVar(&o.rounds, "rounds", 3, "how often it measures without and with open pages")
	flag.DurationVar(&o.window, "window", 30*time.Second, "how long each measurement takes")
	flag.DurationVar(&o.flush, "flush", 2*time.Second, "time between two emissions of ml_metrics and span_metrics")
	flag.Parse()
	os.Exit(harness.RunProgram(func(s *harness.Suite) { measure(s, o) }))
}

// usage is what a collector has used of the machine.
type usage struct {
	at        time.Time
	processor float64
	heap, rss float64
}

// share is the part of one core that was used since before.
func (u usage) share(before usage) float64 {
	return (u.processor - before.processor) / u.at.Sub(before.at).Seconds()
}

// measure runs both collectors at once, each with the same fleet, so that what
// changes with time meets them alike, and opens and closes the pages by turns.
func measure(tb testing.TB, o options) {
	chromium := browser.Start(tb)
	yield(tb)
	without, with := collector(tb, o, false), collector(tb, o, true)
	url := "http://" + with.Address(tb, "exporters::ml_view")
	generate(tb, without, o)
	generate(tb, with, o)
	awaitFleet(tb, url, o)
	tab := chromium.Open(tb)
	tab.Resize(1440, 900)

	var bare, closed, opened []float64
	var heap, rss float64
	var first, update counts
	var opening, steady frameTimes
	for range o.rounds {
		a, b := over(tb, without, with, o.window)
		bare, closed = append(bare, a.share), append(closed, b.share-a.share)

		streams := open(tb, url, o.pages-1)
		opening = opening.and(load(tab, url))
		before := streams.counts(tb)
		a, b = over(tb, without, with, o.window)
		bare, opened = append(bare, a.share), append(opened, b.share-a.share)
		heap, rss = b.heap-a.heap, b.rss-a.rss
		update = update.and(streams.counts(tb).since(before))
		first = first.and(streams.first())
		steady = steady.and(frames(tab))
		streams.close()
		tab.Go("about:blank")
	}
	fmt.Println(strings.Join([]string{
		"| measure | result | aim |",
		"|---|---|---|",
		"| processor time of the collector without `ml_view`, of a core | " + percent(bare) + " | |",
		"| `ml_view` adds, no page open | " + percent(closed) + " | |",
		fmt.Sprintf("| `ml_view` adds, %d pages open | %s | 2 %% |", o.pages, percent(opened)),
		fmt.Sprintf("| `ml_view` adds, %d pages open: heap, resident memory | %.0f, %.0f MiB | 100 MiB |", o.pages, heap, rss),
		"| the first event of a page | " + first.mean() + " | |",
		fmt.Sprintf("| an update of a page, mean of %d | %s | 50 kB |", update.events, update.mean()),
		fmt.Sprintf("| the browser's longest task while the page opens | %.0f ms | |", opening.task),
		fmt.Sprintf("| the browser's longest task while the page is open; tasks longer than 50 ms | %.0f ms; %d in %s | 50 ms |", steady.task, steady.tasks, time.Duration(o.rounds)*o.window),
		fmt.Sprintf("| the longest time between two frames | %.0f ms | 50 ms |", steady.frame),
	}, "\n"))
}

// courtesy is the nice value of all but the browser.
const courtesy = 10

// yield lets the browser go before the programs that are started from now on.
// Otherwise the times of its tasks would be those of waiting for a core.
func yield(tb testing.TB) {
	tb.Helper()
	// The value is that of a thread, and a program has that of the one that starts it.
	runtime.LockOSThread()
	if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, courtesy); err != nil {
		tb.Fatal(err)
	}
}

// percent returns the median and the range of shares.
func percent(shares []float64) string {
	slices.Sort(shares)
	return fmt.Sprintf("%.1f %% (%.1f to %.1f)", 100*shares[len(shares)/2], 100*shares[0], 100*shares[len(shares)-1])
}

// collector starts a collector that receives everything by OTLP.
func collector(tb testing.TB, o options, view bool) *harness.Collector {
	tb.Helper()
	config := harness.Path("distribution", "config", "demo.yaml")
	// The usual limits keep a fleet of this size out of the metrics.
	overrides := map[string]any{}
	for _, name := range []string{"service", "instance", "run", "rank", "user", "process", "label", "combination", "stream"} {
		overrides["processors::ml_guard/identities::identities::limits::"+name] = 1_000_000
	}
	overrides["connectors::ml_metrics::flush_interval"] = o.flush.String()
	overrides["connectors::ml_metrics::max_series"] = 1_000_000
	overrides["connectors::ml_metrics::max_runs"] = 100_000
	for name, pipeline := range pipelines(tb, config) {
		keep := func(list []any, component string) (kept []any) {
			for _, entry := range list {
				if entry != component {
					kept = append(kept, entry)
				}
			}
			return kept
		}
		overrides["service::pipelines::"+name+"::receivers"] = keep(pipeline.Receivers, "gpu")
		if !view {
			overrides["service::pipelines::"+name+"::exporters"] = keep(pipeline.Exporters, "ml_view")
		}
	}
	c := harness.StartCollector(tb, harness.CollectorOptions{
		Config:    config,
		Overrides: overrides,
		Env: []string{
			"GPU_RECORDING=" + harness.Path("receiver", "gpureceiver", "testdata", "captures", "demo-2xh100.yaml"),
			"OTELCOL_ML_REPRO_DIR=" + filepath.Join(tb.TempDir(), "reproductions"),
		},
	})
	c.AwaitHealthy(tb)
	return c
}

type pipeline struct {
	Receivers, Exporters []any
}

func pipelines(tb testing.TB, config string) map[string]pipeline {
	tb.Helper()
	var content struct {
		Service struct{ Pipelines map[string]pipeline }
	}
	text, err := os.ReadFile(config) //nolint:gosec // a file of the repository
	if err == nil {
		err = yaml.Unmarshal(text, &content)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return content.Service.Pipelines
}

// measured is the usage of a window.
type measured struct {
	// share is the part of one core. heap, the least of the window, and rss are
	// in MiB.
	share, heap, rss float64
}

// over measures two collectors for a window.
func over(tb testing.TB, a, b *harness.Collector, window time.Duration) (ma, mb measured) {
	tb.Helper()
	fromA, fromB := read(tb, a), read(tb, b)
	toA, toB := fromA, fromB
	leastA, leastB := fromA.heap, fromB.heap
	for toA.at.Sub(fromA.at) < window {
		await(tb, time.Second)
		toA, toB = read(tb, a), read(tb, b)
		// What the last collection of garbage left, nearly.
		leastA, leastB = min(leastA, toA.heap), min(leastB, toB.heap)
	}
	return measured{share: toA.share(fromA), heap: leastA / (1 << 20), rss: toA.rss / (1 << 20)},
		measured{share: toB.share(fromB), heap: leastB / (1 << 20), rss: toB.rss / (1 << 20)}
}

// await lets time pass: the window of a measurement.
func await(tb testing.TB, window time.Duration) {
	tb.Helper()
	select {
	case <-tb.Context().Done():
	case <-time.After(window):
	}
}

// read reads what the collector says of itself.
func read(tb testing.TB, c *harness.Collector) usage {
	tb.Helper()
	samples, err := harness.Scrape(tb.Context(), c.Address(tb, harness.TelemetryPath))
	if err != nil {
		tb.Fatal(err)
	}
	value := func(name string) float64 {
		for _, sample := range samples {
			if strings.HasPrefix(sample.Labels["__name__"], name) {
				return sample.Value
			}
		}
		tb.Fatalf("the collector has no metric %s", name)
		return 0
	}
	return usage{
		at:        time.Now(),
		processor: value("otelcol_process_cpu_seconds"),
		heap:      value("otelcol_process_runtime_heap_alloc_bytes"),
		rss:       value("otelcol_process_memory_rss"),
	}
}

// frameTimes are what the browser says of its main thread, in milliseconds.
type frameTimes struct {
	task  float64
	tasks int
	frame float64
}

// watch notes tasks of more than 50 ms and the time between two frames.
const watch = `(() => {
	window.measured = {task: 0, tasks: 0, frame: 0};
	new PerformanceObserver(list => {
		for (const entry of list.getEntries()) {
			measured.tasks++;
			measured.task = Math.max(measured.task, entry.duration);
		}
	}).observe({type: "longtask", buffered: true});
	let last = performance.now();
	const frame = now => {
		measured.frame = Math.max(measured.frame, now - last);
		last = now;
		requestAnimationFrame(frame);
	};
	requestAnimationFrame(frame);
})()`

// and joins what was seen at two times.
func (f frameTimes) and(other frameTimes) frameTimes {
	return frameTimes{task: max(f.task, other.task), tasks: f.tasks + other.tasks, frame: max(f.frame, other.frame)}
}

// load opens the page in a browser and returns what opening it took.
func load(tab *browser.Tab, url string) frameTimes {
	tab.Go(url)
	tab.Await(drawn)
	browser.Eval[any](tab, watch)
	// The observer delivers earlier entries in a task of its own.
	browser.Eval[any](tab, "new Promise(done => setTimeout(done))")
	return frames(tab)
}

// frames returns what was seen since the last call.
func frames(tab *browser.Tab) frameTimes {
	type seen struct{ Task, Tasks, Frame float64 }
	s := browser.Eval[seen](tab, `(() => {
		const seen = window.measured;
		window.measured = {task: 0, tasks: 0, frame: 0};
		return seen;
	})()`)
	return frameTimes{task: s.Task, tasks: int(s.Tasks), frame: s.Frame}
}

// drawn is true when the page shows the collector's data.
const drawn = `document.querySelector("[data-testid=part-runs]")`

// generate has a fleet send to a collector.
func generate(tb testing.TB, c *harness.Collector, o options) {
	tb.Helper()
	harness.StartGenerator(tb, harness.Endpoints{GRPC: c.Address(tb, "receivers::otlp::protocols::grpc")}, harness.Workload{
		Seed: 7, Rate: 1, Ranks: o.ranks, Fleet: fmt.Sprintf("runs=%d,ranks=%d,gpus=%d", o.runs, o.ranks, o.gpus),
	})
}

// fleetTimeout is how long all runs may take until the page shows them: a step is
// up to 30 s, and the second one shows that a run steps.
const fleetTimeout = 3 * time.Minute

// awaitFleet waits until the page has all runs and GPUs.
func awaitFleet(tb testing.TB, url string, o options) {
	tb.Helper()
	for deadline := time.Now().Add(fleetTimeout); ; {
		text, err := harness.Get(tb.Context(), url+"/api/v1/state")
		if err != nil {
			tb.Fatal(err)
		}
		var state struct {
			Runs, GPUs []struct{ Steps *float64 }
		}
		if err := json.Unmarshal([]byte(text), &state); err != nil {
			tb.Fatal(err)
		}
		stepping := 0
		for _, run := range state.Runs {
			if run.Steps != nil {
				stepping++
			}
		}
		if stepping >= o.runs && len(state.GPUs) >= o.gpus {
			return
		}
		if time.Now().After(deadline) {
			tb.Fatalf("after %s the page has %d of %d runs with steps and %d of %d GPUs", fleetTimeout, stepping, o.runs, len(state.GPUs), o.gpus)
		}
		await(tb, time.Second)
	}
}
