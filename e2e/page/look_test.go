package page

import (
	"fmt"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
	"github.com/otelcol-ml/otelcol-ml/e2e/page/browser"
)

// widths are those of a telephone, a tablet and a desktop.
var widths = []int{360, 768, 1440}

// TestLook has axe-core look at each state of the page, in both themes and three
// widths. At none of them the page is wider than the screen.
func TestLook(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		// arguments are those of the program that serves the page over fixed data.
		arguments []string
		query     string
		// shown is true when the state is there.
		shown string
		// expected are the kinds of problems that the browser may report.
		expected []string
	}{
		{"empty", []string{fixture("empty")}, "", `document.querySelector("[data-testid=banner-empty]")`, nil},
		{"one run", []string{fixture("laptop")}, "", runDetail, nil},
		{"incidents", []string{fixture("incidents")}, "", `document.querySelector("[data-testid=needs-row]")`, nil},
		{"nothing found", []string{fixture("incidents")}, "?q=nothing-has-this", `document.querySelector("[data-testid=needs-none]")`, nil},
		{"all open", []string{fixture("incidents")}, "", openAll, nil},
		{"a run open", []string{fixture("incidents")}, "?run=r-vit", named("curve-loss") + `?.querySelector("canvas")`, nil},
		// Its traces are not held any more.
		{"hostile", []string{fixture("hostile")}, "", openAll, []string{"network"}},
		{"fleet", []string{"-runs", "500", "-gpus", "512"}, "", `document.querySelector("[data-testid=needs-row]")`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tab := visit(t, serveFixture(t, c.arguments...), c.query, c.expected...)
			tab.Await(c.shown)
			look(t, tab)
		})
	}
}

// look judges what a tab shows now.
func look(t *testing.T, tab *browser.Tab) {
	t.Helper()
	for _, width := range widths {
		for _, theme := range browser.Themes {
			tab.Resize(width, 900)
			tab.Theme(theme)
			at := fmt.Sprintf("%d px, %s", width, theme)
			assert.Empty(t, tab.Violations(), at)
			// Columns leave a table once it has been drawn in its new width.
			assert.EventuallyWithT(t, func(c *assert.CollectT) {
				assert.Empty(c, browser.Eval[string](tab, widest), at)
			}, time.Minute, 100*time.Millisecond)
		}
	}
}

// fixture is a file with data for the page.
func fixture(name string) string {
	return harness.Path("exporter", "mlviewexporter", "internal", "page", "testdata", name+".json")
}

var served = regexp.MustCompile(`(?m)^(http://\S+?)/?$`)

// serveFixture serves the page over fixed data and returns its address.
func serveFixture(t *testing.T, arguments ...string) string {
	t.Helper()
	server := harness.Start(t, harness.Command{
		Name: "viewfixtures",
		Path: harness.Binary(t, "e2e-page", "bin", "viewfixtures"),
		Args: append([]string{"-test.run=^TestServe$", "-endpoint", "127.0.0.1:0", "-interval", "500ms"}, arguments...),
	})
	server.AwaitOutput(t, "http://")
	url := served.FindStringSubmatch(server.Output())
	require.NotNil(t, url, server.Output())
	return url[1]
}

// openAll opens a row of each list that has some, and is true when there is
// nothing to open any more. Only one run is open at a time.
const openAll = `(() => {
	let opened = document.querySelector("[data-testid=needs-row]") !== null;
	for (const part of document.querySelectorAll("main section[data-testid^=part-]:not([data-testid=part-runs])")) {
		const opener = part.querySelector(".opener:not([data-testid=fold])");
		if (opener && !part.querySelector(".opener:not([data-testid=fold])[aria-expanded=true]")) {
			opener.click();
			opened = false;
		}
	}
	return opened && !document.body.textContent.includes("Loading…");
})()`

// unfoldAll unfolds each group of rows, and is true when there is none any more.
const unfoldAll = `(() => {
	const folded = document.querySelector("[data-testid=fold][aria-expanded=false]");
	if (folded) folded.click();
	return !folded;
})()`

// widest describes what makes the page wider than the screen, or a table wider than
// its place, unless the keyboard can scroll that.
const widest = `(() => {
	const cut = [...document.querySelectorAll(".scroll:not([tabindex])")].find(e => e.scrollWidth > e.clientWidth + 1); // sizes are rounded
	if (cut) return cut.dataset.table + ": " + cut.scrollWidth + " px in " + cut.clientWidth;
	const root = document.documentElement;
	if (root.scrollWidth <= root.clientWidth) return "";
	const wide = [...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > root.clientWidth);
	return root.scrollWidth + " px, by " + wide.slice(0, 5).map(e => e.outerHTML.slice(0, 200)).join("\n");
})()`
