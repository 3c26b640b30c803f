package page

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
	"github.com/otelcol-ml/otelcol-ml/e2e/page/browser"
)

var (
	// chromium is the browser of all tests.
	chromium *browser.Browser
	// busy starts, once, a collector that every workload and incident of mlgen
	// sends to for as long as the tests run.
	busy func() *harness.Collector
)

func TestMain(m *testing.M) {
	os.Exit(harness.RunSuite(m, func(s *harness.Suite) {
		chromium = browser.Start(s)
		busy = sync.OnceValue(func() *harness.Collector {
			c := startCollector(s, nil)
			harness.StartGenerator(s, endpoints(s, c), harness.Workload{Seed: 7, Scenarios: "all", Rate: 2, Ranks: 2})
			harness.StartGenerator(s, endpoints(s, c), harness.Workload{Seed: 7, Incidents: "all", Rate: 20, Ranks: 2, MetricsInterval: metricsInterval})
			return c
		})
	}))
}

// startCollector starts the collector of the demo with short timeouts, and with
// more overrides.
func startCollector(tb testing.TB, overrides map[string]any) *harness.Collector {
	tb.Helper()
	all := map[string]any{
		"exporters::ml_view::interval":               "500ms",
		"connectors::ml_metrics::flush_interval":     "1s",
		"connectors::ml_metrics::stall_timeout":      "3s",
		"connectors::ml_metrics::idle_timeout":       "3s",
		"connectors::ml_metrics::first_step_timeout": "3s",
	}
	maps.Copy(all, overrides)
	c := harness.StartCollector(tb, harness.CollectorOptions{
		Config:    harness.Path("distribution", "config", "demo.yaml"),
		Overrides: all,
		Env: []string{
			"GPU_RECORDING=" + harness.Path("receiver", "gpureceiver", "testdata", "captures", "demo-2xh100.yaml"),
			"OTELCOL_ML_REPRO_DIR=" + filepath.Join(tb.TempDir(), "reproductions"),
		},
	})
	c.AwaitHealthy(tb)
	return c
}

func endpoints(tb testing.TB, c *harness.Collector) harness.Endpoints {
	tb.Helper()
	return harness.Endpoints{
		GRPC: c.Address(tb, "receivers::otlp::protocols::grpc"),
		HTTP: "http://" + c.Address(tb, "receivers::otlp::protocols::http"),
	}
}

// address is where the collector shows its page.
func address(tb testing.TB, c *harness.Collector) string {
	tb.Helper()
	return "http://" + c.Address(tb, "exporters::ml_view")
}

// visit opens the page of a server in a tab, with a query, and waits until it
// shows data. When the test ends, the browser must have reported nothing but
// problems of the kinds that the test names.
func visit(t *testing.T, url, query string, expected ...string) *browser.Tab {
	t.Helper()
	tab := chromium.Open(t)
	tab.Resize(1440, 900)
	tab.Go(url + "/" + query)
	tab.Await(drawn)
	t.Cleanup(func() {
		for _, problem := range tab.Problems() {
			assert.Contains(t, expected, problem.Kind, problem.Text)
		}
		for _, request := range tab.Requests() {
			assert.True(t, strings.HasPrefix(request, url+"/"), "the page asked for %s", request)
		}
	})
	return tab
}

// metricsInterval is how often simulated processes send metrics.
const metricsInterval = time.Second

const (
	// drawn is true when the page shows the collector's data.
	drawn = `document.querySelector("[data-testid=part-runs], [data-testid=part-start]")`
	// runDetail is an opened run.
	runDetail = `document.querySelector("[data-testid=run-detail]")`
	// gone is true when the page says that it has lost the collector.
	gone = `document.querySelector("[data-testid=banner-gone]")`
)

// row is an expression for the row of a list that has the text.
func row(list, text string) string {
	return fmt.Sprintf(`[...document.querySelectorAll("[data-testid=%s-row]")].find(row => row.textContent.includes(%s))`, list, quoted(text))
}

// quoted returns a text as a literal of JavaScript.
func quoted(text string) string {
	literal, _ := json.Marshal(text) // A text has no errors.
	return string(literal)
}
