package grafana

import (
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/dashboards"
	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
	"github.com/otelcol-ml/otelcol-ml/e2e/page/browser"
)

var update = flag.Bool("update", false, "write the documentation's pictures of the dashboards")

const (
	// width is that of the window, in which every name has room.
	width = 1600
	// timeout is how long the last panel may take to have data: alerts fire and
	// runs stall after 5 minutes.
	timeout = 10 * time.Minute
	// history is how many minutes the documentation's pictures show.
	history = 6
)

// optional are columns and colors of what the workloads here do not have, or not from
// the start.
var optional = map[string][]string{
	"runs: What runs on the GPUs":        {"byName Pod"},
	"runs: Alerts firing":                {"byName Run", "byName Host", "byName GPU"},
	"training: Time of the run by state": {"byName startup", "byName rework", "byName unknown"},
}

// panel is what the page says of a panel; report.ts has what each field is.
type panel struct {
	Title, Type, Error, Text string
	Values                   int
	Nothing, Drawn           bool
	EmptyCells               bool
	Cut, Unknown, Missing    []string
	Links                    []string
}

// TestDrawn draws all dashboards of a collector that every workload and incident of
// mlgen reports to. Each panel draws data, or is one of what fails.
func TestDrawn(t *testing.T) {
	boards, err := dashboards.Load(harness.Path("docker", "grafana", "dashboards"))
	require.NoError(t, err)
	started := time.Now()
	prometheus := startJob(t)
	server := serve(t, prometheus)
	if *update {
		enough := fmt.Sprintf("otelcol_process_uptime >= %d", history*60)
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			found, err := prometheus.Query(t.Context(), enough)
			assert.NoError(c, err)
			assert.NotEmpty(c, found)
		}, timeout, harness.ArrivalPoll)
		started = time.Now().Add(-history * time.Minute)
	}
	chromium := browser.Start(t)
	for _, board := range boards {
		t.Run(board.Name, func(t *testing.T) {
			tab := chromium.Open(t)
			address := fmt.Sprintf("%s/?board=%s&from=%s&to=now&interval=%s", server, board.Name, started.UTC().Format(time.RFC3339), dashboards.SourceInterval)
			require.EventuallyWithT(t, func(c *assert.CollectT) {
				check(c, board, draw(tab, address))
			}, timeout, harness.ArrivalPoll)
			for _, problem := range tab.Problems() {
				// A library greets on the console.
				assert.True(t, strings.HasPrefix(problem.Text, "info "), "%s: %.500s", problem.Kind, problem.Text)
			}
			if *update {
				picture, err := browser.Shrink(tab.Picture(false))
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(harness.Path("docs", "images", "dashboard-"+board.Name+".png"), picture, 0o600))
			}
		})
	}
}

// draw has a dashboard drawn in a window that is as high as it is, and returns its
// panels.
func draw(tab *browser.Tab, address string) []panel {
	const settled = "document.fonts.status === 'loaded' && window.settled?.()"
	tab.Resize(width, 1000)
	tab.Go(address)
	tab.Await(settled)
	tab.Resize(width, browser.Eval[int](tab, "document.documentElement.scrollHeight"))
	tab.Await(settled)
	return browser.Eval[[]panel](tab, "window.panels()")
}

func check(c *assert.CollectT, board dashboards.Dashboard, panels []panel) {
	byTitle := map[string]panel{}
	for _, p := range panels {
		name := board.Name + ": " + p.Title
		byTitle[p.Title] = p
		assert.Empty(c, p.Error, name)
		assert.Empty(c, p.Unknown, "%s: names that Grafana does not know", name)
		assert.Empty(c, p.Cut, "%s: names without room", name)
		assert.False(c, p.EmptyCells, "%s: cells with the text of an empty table", name)
		for _, missing := range p.Missing {
			if p.Drawn {
				assert.Contains(c, optional[name], missing, "%s: no field of the data", name)
			}
		}
		for _, link := range p.Links {
			assert.NotContains(c, link, "${", "%s: a link with a variable that nothing replaces", name)
		}
	}
	for _, expected := range board.Panels {
		p, found := byTitle[expected.Title]
		if !found {
			// The titles of rows.
			assert.Empty(c, expected.Targets, "%s: %s is not drawn", board.Name, expected.Title)
			continue
		}
		if ofFaults := len(expected.Targets) > 0 && !slices.ContainsFunc(expected.Targets, func(target dashboards.Target) bool {
			return !slices.Contains(dashboards.OnlyOfFaults, board.Name+": "+expected.Title+": "+target.RefID)
		}); ofFaults && p.Values == 0 {
			assert.True(c, p.Nothing, "%s: %s has no data and does not say so", board.Name, expected.Title)
			assert.NotContains(c, p.Text, "No data", "%s: %s does not say that nothing failed", board.Name, expected.Title)
			continue
		}
		assert.True(c, p.Drawn, "%s: %s draws nothing of %d values: %.100q", board.Name, expected.Title, p.Values, p.Text)
		assert.False(c, p.Nothing, "%s: %s", board.Name, expected.Title)
	}
}

// serve serves the page and what it asks for: the dashboards and Prometheus.
func serve(t *testing.T, prometheus *harness.Prometheus) string {
	t.Helper()
	address, err := url.Parse(prometheus.URL())
	require.NoError(t, err)
	page := harness.Path(".cache", "grafana", "page")
	require.FileExists(t, page+"/main.js", "make it with: e2e/grafana/page.sh")
	files := func(folder string) http.Handler { return http.FileServer(http.Dir(folder)) }
	mux := http.NewServeMux()
	mux.Handle("/", files(page))
	mux.Handle("/boards/", http.StripPrefix("/boards/", files(harness.Path("docker", "grafana", "dashboards"))))
	mux.Handle("/prometheus/", http.StripPrefix("/prometheus", httputil.NewSingleHostReverseProxy(address)))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// startJob starts the demo between real servers, with all workloads and incidents,
// and returns the Prometheus that reads it.
func startJob(t *testing.T) *harness.Prometheus {
	t.Helper()
	sink := harness.StartSink(t)
	_, servers := harness.StartInferenceServers(t, true)
	collector := harness.StartCollector(t, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "demo.yaml"),
		Merged: []string{harness.Path("distribution", "config", "servers.yaml")},
		Env: append(servers,
			"GPU_RECORDING="+harness.Path("receiver", "gpureceiver", "testdata", "captures", "demo-2xh100.yaml"),
			"JAEGER_ENDPOINT="+sink.Endpoint,
			"LOGS_EXPORTER=otlp_grpc/logs",
			"LOGS_ENDPOINT="+sink.Endpoint,
			"OTELCOL_ML_REPRO_DIR="+t.TempDir(),
		),
		Overrides: map[string]any{
			// TorchTel does not say how many tokens its steps have.
			"processors::ml_enrich::training": []any{map[string]any{
				"service": "torchtel", "per": "job", "tokens_per_step": 8192, "flops_per_token": 4e10,
			}},
			"connectors::ml_metrics::prices": map[string]any{"file": harness.PricesOfChats(t), "gpu_hour": map[string]any{"H100": 2.5}},
		},
	})
	collector.AwaitHealthy(t)
	prometheus := harness.StartPrometheus(t, map[string]string{
		"otelcol-ml:8889": collector.Address(t, "exporters::prometheus"),
		"otelcol-ml:8888": collector.Address(t, harness.TelemetryPath),
	})
	harness.SendChats(t, collector)
	endpoints := harness.Endpoints{
		GRPC: collector.Address(t, "receivers::otlp::protocols::grpc"),
		HTTP: "http://" + collector.Address(t, "receivers::otlp::protocols::http"),
	}
	harness.StartGenerator(t, endpoints, harness.Workload{Seed: 7, Scenarios: "all", Rate: 2, Ranks: 2})
	harness.StartGenerator(t, endpoints, harness.Workload{Seed: 7, Incidents: "all", Rate: 0.5, Ranks: 2})
	return prometheus
}
