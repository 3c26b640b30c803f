// Command pictures draws the live page of simulated workloads and incidents: two
// pictures for the documentation, and one of each view, width and theme for
// people to look at.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
	"github.com/otelcol-ml/otelcol-ml/e2e/page/browser"
)

func main() {
	images := flag.String("images", harness.Path("docs", "images"), "where the documentation's pictures are written")
	all := flag.String("all", harness.Path(".cache", "pictures"), "where the others are written")
	flag.Parse()
	os.Exit(harness.RunProgram(func(s *harness.Suite) { draw(s, *images, *all) }))
}

// views are what there is to see, by what the page's address has.
var views = []struct {
	name string
	// open is the service whose run is open.
	open string
	// documented is the height of the documentation's picture, 0 if there is none.
	documented int
}{
	{"page", "", 1060},
	{"page-run", "llama-sft", 1200},
}

func draw(tb testing.TB, images, all string) {
	// Commands on the page have the path.
	reproductions := filepath.Join(os.TempDir(), "demo-output", "reproductions")
	tb.Cleanup(func() { _ = os.RemoveAll(filepath.Dir(reproductions)) })
	collector := harness.StartCollector(tb, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "demo.yaml"),
		Env: []string{
			"GPU_RECORDING=" + harness.Path("receiver", "gpureceiver", "testdata", "captures", "demo-2xh100.yaml"),
			"OTELCOL_ML_REPRO_DIR=" + reproductions,
		},
		Overrides: map[string]any{
			"connectors::ml_metrics::stall_timeout":      "3s",
			"connectors::ml_metrics::idle_timeout":       "3s",
			"connectors::ml_metrics::first_step_timeout": "3s",
		},
	})
	endpoints := harness.Endpoints{
		GRPC: collector.Address(tb, "receivers::otlp::protocols::grpc"),
		HTTP: "http://" + collector.Address(tb, "receivers::otlp::protocols::http"),
	}
	harness.StartGenerator(tb, endpoints, harness.Workload{Seed: 7, Scenarios: "all", Rate: 2, Ranks: 2, MetricsInterval: time.Second})
	harness.StartGenerator(tb, endpoints, harness.Workload{Seed: 7, Incidents: "all", Rate: 20, Ranks: 2, MetricsInterval: time.Second})

	tab := browser.Start(tb).Open(tb)
	url := "http://" + collector.Address(tb, "exporters::ml_view")
	tab.Go(url)
	for _, kind := range []string{"looks_hung", "slow", "failing", "held_idle"} {
		tab.Await(fmt.Sprintf("document.querySelector('[data-testid=needs-row][data-kind=%s]')", kind))
	}
	tab.Await("document.querySelector('[data-testid=part-failures] [data-testid=copy]')")
	// A picture of the last minutes takes a minute.
	for _, steps := range []int{3, 6, 9} {
		tab.Await(fmt.Sprintf("document.querySelector('[data-testid=heat]')?.mlAttrs.own.times.length > %d", steps))
	}
	for _, view := range views {
		tab.Go(url)
		if view.open != "" {
			row := fmt.Sprintf(`[...document.querySelectorAll("[data-testid=needs-row]")].find(row => row.textContent.includes(%q))`, view.open)
			tab.Await(row)
			browser.Eval[any](tab, row+".querySelector('.opener').click()")
			tab.Await("document.querySelector('[data-testid=needs-detail] canvas')")
		} else {
			tab.Await("document.querySelector('[data-testid=needs-row]') && document.querySelector('[data-testid=heat]')")
		}
		if view.documented > 0 {
			write(tb, tab, filepath.Join(images, view.name+".png"), 1440, view.documented, "light", false)
		}
		for _, width := range []int{360, 768, 1440} {
			for _, theme := range browser.Themes {
				write(tb, tab, filepath.Join(all, fmt.Sprintf("%s-%d-%s.png", view.name, width, theme)), width, 900, theme, true)
			}
		}
	}
}

// write writes a picture of the page as it is, of its viewport or whole.
func write(tb testing.TB, tab *browser.Tab, file string, width, height int, theme string, whole bool) {
	tb.Helper()
	tab.Resize(width, height)
	tab.Theme(theme)
	content, err := browser.Shrink(tab.Picture(whole))
	if err != nil {
		tb.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(file, content, 0o600); err != nil {
		tb.Fatal(err)
	}
	tb.Logf("%s: %d kB", file, len(content)/1000)
}
