// Command load measures what the live page costs with a large fleet and many
// open pages: processor time, bytes of an update, memory and the longest frame in
// a browser. It runs the built collector with ml_view and without, with the same
// simulated telemetry.
//
// Nothing is asserted; see docs/performance.md.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
	"github.com/otelcol-ml/otelcol-ml/e2e/page/browser"
)

// options are the command line's.
type options struct {
	pages, runs, ranks, gpus int
	window                   time.Duration
}

func main() {
	var o options
	flag.IntVar(&o.pages, "pages", 32, "open pages; one of them is in a browser")
	flag.IntVar(&o.runs, "runs", 500, "simulated runs")
	flag.IntVar(&o.ranks, "ranks", 8, "processes of each run")
	flag.IntVar(&o.gpus, "gpus", 512, "simulated GPUs")
	flag.DurationVar(&o.window, "window", time.Minute, "how long each measurement takes")
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

func measure(tb testing.TB, o options) {
	without := collector(tb, false)
	stop := generate(tb, without, o)
	await(tb, o.window)
	bare := over(tb, without, o.window)
	stop()
	without.Stop(tb)

	with := collector(tb, true)
	url := "http://" + with.Address(tb, "exporters::ml_view")
	stop = generate(tb, with, o)
	awaitFleet(tb, url, o)
	closed := over(tb, with, o.window)

	streams := open(tb, url, o.pages-1)
	tab, first := openTab(tb, url)
	before := streams.counts(tb)
	opened := over(tb, with, o.window)
	updates := streams.counts(tb).since(before)
	steady := frames(tab)
	stop()

	fmt.Println(strings.Join([]string{
		"| measure | result | aim |",
		"|---|---|---|",
		fmt.Sprintf("| processor time of the collector without `ml_view` | %.1f %% of a core | |", 100*bare.share),
		fmt.Sprintf("| `ml_view` adds, no page open | %.1f %% | |", 100*(closed.share-bare.share)),
		fmt.Sprintf("| `ml_view` adds, %d pages open | %.1f %% | 2 %% |", o.pages, 100*(opened.share-bare.share)),
		fmt.Sprintf("| resident memory without `ml_view` | %.0f MiB (heap %.0f MiB) | |", bare.rss, bare.heap),
		fmt.Sprintf("| `ml_view` adds, %d pages open | %.0f MiB (heap %.0f MiB) | 100 MiB |", o.pages, opened.rss-bare.rss, opened.heap-bare.heap),
		fmt.Sprintf("| first event of a page | %.0f kB | |", streams.first()/1e3),
		fmt.Sprintf("| an update of a page, mean of %d | %.1f kB | 50 kB |", updates.events, updates.mean()/1e3),
		fmt.Sprintf("| longest task of the browser, page opening | %.0f ms | |", first.task),
		fmt.Sprintf("| longest task of the browser, page open | %.0f ms of %d longer than 50 ms | 50 ms |", steady.task, steady.tasks),
		fmt.Sprintf("| longest time between two frames, page open | %.0f ms | 50 ms |", steady.frame),
	}, "\n"))
}

// collector starts a collector that receives everything by OTLP.
func collector(tb testing.TB, view bool) *harness.Collector {
	tb.Helper()
	config := harness.Path("distribution", "config", "demo.yaml")
	// The usual limits keep a fleet of this size out of the metrics.
	overrides := map[string]any{}
	for _, name := range []string{"service", "instance", "run", "rank", "user", "process", "label", "combination", "stream"} {
		overrides["processors::ml_guard/identities::identities::limits::"+name] = 1_000_000
	}
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
	// share is the part of one core, heap and rss are in MiB.
	share, heap, rss float64
}

// over measures a collector for a window.
func over(tb testing.TB, c *harness.Collector, window time.Duration) measured {
	tb.Helper()
	before := read(tb, c)
	await(tb, window)
	after := read(tb, c)
	return measured{share: after.share(before), heap: after.heap / (1 << 20), rss: after.rss / (1 << 20)}
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

// openTab opens the page in a browser and returns what opening it took.
func openTab(tb testing.TB, url string) (*browser.Tab, frameTimes) {
	tb.Helper()
	tab := browser.Start(tb).Open(tb)
	tab.Resize(1440, 900)
	tab.Go(url)
	tab.Await(drawn)
	browser.Eval[any](tab, watch)
	// The observer delivers earlier entries in a task of its own.
	browser.Eval[any](tab, "new Promise(done => setTimeout(done))")
	return tab, frames(tab)
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

// generate has a fleet send to a collector until the returned function is called.
func generate(tb testing.TB, c *harness.Collector, o options) (stop func()) {
	tb.Helper()
	generator := harness.StartGenerator(tb, harness.Endpoints{GRPC: c.Address(tb, "receivers::otlp::protocols::grpc")}, harness.Workload{
		Seed: 7, Rate: 1, Ranks: o.ranks, Fleet: fmt.Sprintf("runs=%d,ranks=%d,gpus=%d", o.runs, o.ranks, o.gpus),
	})
	return func() { generator.Kill(tb) }
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
