package page

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
	"github.com/otelcol-ml/otelcol-ml/e2e/page/browser"
)

// readReport opens a document with the report of a run. When the test ends, the
// browser must have reported nothing, such as a violation of the document's
// Content-Security-Policy, and have asked for nothing but the document.
func readReport(t *testing.T, url string) *browser.Tab {
	t.Helper()
	tab := chromium.Open(t)
	tab.Resize(1440, 900)
	tab.Go(url)
	tab.Await(`document.querySelector("#missing")`)
	t.Cleanup(func() {
		assert.Empty(t, tab.Problems())
		for _, request := range tab.Requests() {
			assert.Equal(t, url, request, "a report loads nothing")
		}
	})
	return tab
}

// TestReportLooks has axe-core look at the report of a run of which everything is
// known, of one of which next to nothing is, and of one with hostile names.
func TestReportLooks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ fixture, run string }{
		"everything":   {"report", "r-llama"},
		"nearly empty": {"report", "r-old"},
		"hostile":      {"hostile", "__proto__"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tab := readReport(t, serveFixture(t, fixture(c.fixture))+"/api/v1/runs/"+c.run+"/report?format=html")
			look(t, tab)
			assert.Equal(t, 0, browser.Eval[int](tab, `document.querySelectorAll("script, img, iframe, link, object, embed, [onerror]").length`))
		})
	}
}

// TestComparison opens a run beside its last good one, and looks at another axis.
func TestComparison(t *testing.T) {
	t.Parallel()
	tab := visit(t, serveFixture(t, fixture("report")), "")
	tab.Await(row("needs", "llama-sft"))
	tab.Click("[data-testid=needs-row] .opener")
	tab.Await(runDetail)
	tab.Await(`document.querySelector("[data-testid=detail-compare] canvas")`)
	assert.Equal(t, "detail-compare", browser.Eval[string](tab, runDetail+`.querySelector("[data-testid^=detail-]").dataset.testid`), "it is first")
	assert.Equal(t, "Loss at step 9,456 +6 % 0.95 → 1.01", browser.Eval[string](tab, `document.querySelector("[data-testid=headline]").textContent`), "the largest difference")
	// The details arrive meanwhile, and the page is drawn anew.
	browser.Eval[any](tab, `document.querySelector("[data-testid=compare]").click()`)
	tab.Await(`document.querySelector("[data-testid=compare-numbers-table]")`)
	assert.Contains(t, browser.Eval[string](tab, `document.querySelector("[data-testid=parted]").textContent`), "part at step 9,456")
	assert.Equal(t, []string{"steps", "epochs", "elapsed"}, browser.Eval[[]string](tab, `[...document.querySelectorAll("[data-testid=compare-by] option")].map(o => o.value)`))
	for _, choice := range []struct{ name, value, says string }{
		{"by", "elapsed", "Loss by time"}, {"by", "epochs", "Loss by epoch"}, {"curve", "step_time", "Step time by epoch"},
	} {
		browser.Eval[any](tab, `(() => { const s = document.querySelector("[data-testid=compare-`+choice.name+`]"); s.value = "`+choice.value+`"; s.dispatchEvent(new Event("change", {bubbles: true})); })()`)
		tab.Await(`document.querySelector("[data-testid=curve-compare]").textContent.includes("` + choice.says + `")`)
	}
	look(t, tab)

	// The report is one click away.
	link := browser.Eval[string](tab, `document.querySelector("[data-testid=report-html]").href`)
	require.Contains(t, link, "/api/v1/runs/r-llama/report?format=html")
}

// TestReportsOfRuns plays a run that hangs and one that ends. The report of the first
// says so on request, that of the second is written to the directory, and opens from
// there.
func TestReportsOfRuns(t *testing.T) {
	t.Parallel()
	directory := filepath.Join(t.TempDir(), "reports")
	c := startCollector(t, map[string]any{"exporters::ml_view::reports::directory": directory})
	harness.GenerateTo(t, endpoints(t, c), harness.Workload{Seed: 1, Scenarios: "torchtel", Duration: 8 * time.Second, Rate: 5, Ranks: 2, MetricsInterval: metricsInterval})
	hangs := harness.StartGenerator(t, endpoints(t, c), harness.Workload{Seed: 7, Incidents: "hang", Rate: 20, Ranks: 2, MetricsInterval: metricsInterval})

	tab := visit(t, address(t, c), "")
	tab.Await(row("needs", "llama-sft"))
	tab.Click("[data-testid=needs-row] .opener")
	tab.Await(runDetail)
	report := readReport(t, browser.Eval[string](tab, `document.querySelector("[data-testid=report-html]").href`))
	text := browser.Eval[string](report, "document.body.innerText")
	for _, words := range []string{"looks hung", "rank 13", "Simulated data", "data_load"} {
		assert.Contains(t, strings.ToLower(text), strings.ToLower(words))
	}
	hangs.Kill(t)

	var files []string
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		files, _ = filepath.Glob(filepath.Join(directory, "*.html")) // The pattern is valid.
		assert.NotEmpty(c, files)
	}, time.Minute, 200*time.Millisecond)
	content, err := os.ReadFile(files[0])
	require.NoError(t, err)
	assert.Contains(t, string(content), "The run ended at ")
	written := readReport(t, "file://"+files[0])
	assert.Empty(t, written.Violations())
}
