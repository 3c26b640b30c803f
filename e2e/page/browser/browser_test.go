package browser_test

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
	"github.com/otelcol-ml/otelcol-ml/e2e/page/browser"
)

var chromium *browser.Browser

func TestMain(m *testing.M) {
	os.Exit(harness.RunSuite(m, func(s *harness.Suite) { chromium = browser.Start(s) }))
}

// serve serves a body as a page without faults of its own.
func serve(t *testing.T, policy, body string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", policy)
		_, _ = w.Write([]byte(`<!doctype html><html lang="en"><head><title>t</title><link rel="icon" href="data:,"></head><body><main><h1>t</h1>` + body + `</main></body></html>`))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

const strict = "default-src 'self'; img-src 'self' data:"

// What the tests of the page rest on: each kind of fault is seen, and a page
// without faults has none.
func TestProblemsAreSeen(t *testing.T) {
	for name, c := range map[string]struct{ policy, body, kind string }{
		"none":         {strict, `<p>fine</p>`, ""},
		"inline":       {strict, `<script>document.title = "ran"</script>`, "security"},
		"style":        {strict, `<p style="color: red">fine</p>`, "security"},
		"other origin": {strict, `<img alt="" src="http://127.0.0.2:1/x.png">`, "security"},
		"not found":    {strict, `<img alt="" src="/missing.png">`, "network"},
		"exception":    {"", `<script>throw new Error("broken")</script>`, "exception"},
		"console":      {"", `<script>console.log("text")</script>`, "console"},
		"dialog":       {"", `<script>setTimeout(() => alert("ran"))</script>`, "dialog"},
	} {
		t.Run(name, func(t *testing.T) {
			tab := chromium.Open(t)
			tab.Go(serve(t, c.policy, c.body))
			if c.kind == "" {
				assert.Empty(t, tab.Problems())
				return
			}
			require.Eventually(t, func() bool { return len(tab.Problems()) > 0 }, harness.ArrivalTimeout, harness.ArrivalPoll)
			for _, problem := range tab.Problems() {
				assert.Equal(t, c.kind, problem.Kind, problem.Text)
			}
		})
	}
}

func TestRequestsAreSeen(t *testing.T) {
	tab := chromium.Open(t)
	url := serve(t, "", `<img alt="" src="http://127.0.0.1:1/x.png">`)
	tab.Go(url)
	assert.Subset(t, tab.Requests(), []string{url + "/", "http://127.0.0.1:1/x.png"})
	assert.Positive(t, tab.Received())
}

func TestViolationsAreSeen(t *testing.T) {
	tab := chromium.Open(t)
	tab.Go(serve(t, strict, `<p>fine</p>`))
	assert.Empty(t, tab.Violations())
	assert.Empty(t, tab.Problems(), "axe-core itself breaks the policy")

	tab.Go(serve(t, strict, `<button></button><img src="data:,">`))
	text := strings.Join(tab.Violations(), "\n")
	assert.Contains(t, text, "button-name")
	assert.Contains(t, text, "image-alt")
}

func TestTab(t *testing.T) {
	tab := chromium.Open(t)
	tab.Resize(360, 640)
	tab.Theme("dark")
	tab.Go(serve(t, "", `<input id="first"><button id="second">b</button><button id="copy">c</button>
		<script>document.getElementById("second").onclick = () => document.title = document.getElementById("first").value
		document.onkeydown = event => {
			if (event.key !== "/") return;
			event.preventDefault();
			document.getElementById("first").focus();
		};
		document.getElementById("copy").onclick = () => navigator.clipboard.writeText("the <exact> text\n").then(() => document.title = "copied")</script>`))
	assert.Equal(t, 360, browser.Eval[int](tab, "innerWidth"))
	assert.True(t, browser.Eval[bool](tab, `matchMedia("(prefers-color-scheme: dark)").matches`))
	tab.Theme("light")
	assert.False(t, browser.Eval[bool](tab, `matchMedia("(prefers-color-scheme: dark)").matches`))
	tab.Press("/text" + browser.Tabulator + browser.Enter)
	tab.Await(`document.title === "text"`)
	assert.Equal(t, "text", browser.Eval[string](tab, `document.getElementById("first").value`), "/ only moves the focus")
	tab.Click("#first")
	tab.Await(`document.activeElement.id === "first"`)
	tab.Click("#copy")
	tab.Await(`document.title === "copied"`)
	assert.Equal(t, "the <exact> text\n", tab.Clipboard())
	assert.Equal(t, []byte("\x89PNG"), tab.Picture(true)[:4])
}

// TestClickOfWhatMoves has a button that evades the first click.
func TestClickOfWhatMoves(t *testing.T) {
	tab := chromium.Open(t)
	tab.Go(serve(t, "", `<button id="evades" style="position: absolute; top: 10px">b</button><script>
		const button = document.getElementById("evades");
		button.onclick = () => { document.title = "clicked"; };
		button.onmousedown = () => { button.style.top = "300px"; };</script>`))
	tab.Click("#evades")
	assert.Equal(t, "clicked", browser.Eval[string](tab, "document.title"))
}

// TestClickOfWhatIsReplaced has a button that another one takes the place of again and again
// for a time.
func TestClickOfWhatIsReplaced(t *testing.T) {
	tab := chromium.Open(t)
	tab.Go(serve(t, "", `<button id="replaced">b</button><script>
		document.onclick = event => { if (event.target.id === "replaced") document.title = "clicked"; };
		let times = 0;
		const replace = () => {
			const button = document.getElementById("replaced");
			button.replaceWith(button.cloneNode(true));
			if (++times < 500) setTimeout(replace);
		};
		replace();</script>`))
	tab.Click("#replaced")
	assert.Equal(t, "clicked", browser.Eval[string](tab, "document.title"))
}

// The file is what the registry has, not edited.
func TestAxeIsUnchanged(t *testing.T) {
	content, err := os.ReadFile("axe/axe.min.js")
	require.NoError(t, err)
	sum := sha256.Sum256(content)
	assert.Equal(t, "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c", hex.EncodeToString(sum[:]))
}
