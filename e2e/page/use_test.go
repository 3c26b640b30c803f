package page

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/page/browser"
)

const (
	focus = `document.activeElement`
	// definition is true while the definition of a number is shown.
	definition = `document.querySelector("#definition").matches(":popover-open")`
	// copied is true when a text was copied. What is said for screen readers stays;
	// the button's own word goes after 2 s.
	copied = `document.querySelector("#said").textContent === "Copied."`
)

// clipboard is held by a test that copies: all tabs of the browser have one.
var clipboard sync.Mutex

// TestRowsOpen opens a run with the mouse and closes it again.
func TestRowsOpen(t *testing.T) {
	t.Parallel()
	tab := visit(t, address(t, busy()), "")
	tab.Await(row("needs", "llama-sft"))
	require.False(t, browser.Eval[bool](tab, "!!"+runDetail))
	tab.Click("[data-testid=needs-row][data-kind=looks_hung] .opener")
	tab.Await(runDetail)
	assert.Contains(t, browser.Eval[string](tab, "location.search"), "run=", "an opened run is in the address")

	// The address opens the same run elsewhere.
	other := visit(t, address(t, busy()), browser.Eval[string](tab, "location.search"))
	other.Await(runDetail)

	tab.Click("[data-testid=needs-row][data-kind=looks_hung] .opener")
	tab.Await("!" + runDetail)
}

// TestKeyboard reaches a run, opens and closes it, and searches, without a mouse.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	tab := visit(t, address(t, busy()), "")
	tab.Await(row("needs", "llama-sft"))

	tabTo(t, tab, focus+`.matches("[data-testid=needs-row][data-kind=looks_hung] .opener")`)
	assert.NotEqual(t, "none", browser.Eval[string](tab, `getComputedStyle(`+focus+`).outlineStyle`), "the focus is visible")
	tab.Press(browser.Enter)
	tab.Await(runDetail)
	// The page has been drawn anew, and the focus is where it was.
	tab.Await(focus + `.matches("[data-testid=needs-row][data-kind=looks_hung] .opener[aria-expanded=true]")`)
	tab.Press(browser.Enter)
	tab.Await("!" + runDetail)

	tabTo(t, tab, focus+`.matches("a.def")`)
	tab.Press(browser.Enter)
	tab.Await(definition)
	tab.Press(browser.Escape)
	tab.Await("!" + definition)

	tab.Press("/")
	tab.Await(focus + `.matches("input[type=search]")`)
	tab.Press("mixtral")
	tab.Await(row("needs", "mixtral-pretrain"))
	tab.Await("!" + row("needs", "llama-sft"))
	tab.Press(browser.Escape)
	tab.Await(row("needs", "llama-sft"))
}

// TestFiveTabs has somebody without a mouse at the first problem.
func TestFiveTabs(t *testing.T) {
	t.Parallel()
	tab := visit(t, serveFixture(t, fixture("incidents")), "")
	tab.Await(row("needs", "llama-sft"))
	presses := 0
	for presses < 5 && !browser.Eval[bool](tab, focus+`.matches("[data-testid=needs-row] .opener")`) {
		tab.Press(browser.Tabulator)
		presses++
	}
	assert.LessOrEqual(t, presses, 5)
	assert.True(t, browser.Eval[bool](tab, focus+`.matches("[data-testid=needs-row]:first-child .opener")`), browser.Eval[string](tab, focus+".outerHTML"))

	// From any other place its number is in view, and leads to it.
	browser.Eval[any](tab, `scrollTo(0, document.documentElement.scrollHeight)`)
	assert.True(t, browser.Eval[bool](tab, `document.querySelector("#parts-nav a[href='#needs']").getBoundingClientRect().top >= 0`))
	tab.Resize(360, 700)
	assert.True(t, browser.Eval[bool](tab, `document.querySelector("#parts-nav a[href='#needs']").getBoundingClientRect().top >= 0`))
}

// TestEscape closes what is open, the innermost first.
func TestEscape(t *testing.T) {
	t.Parallel()
	tab := visit(t, serveFixture(t, fixture("incidents")), "")
	tab.Await(row("needs", "llama-sft"))
	tab.Click("[data-testid=needs-row] .opener")
	tab.Await(runDetail)
	tab.Await(`document.querySelector("[data-testid=gpu-row], [data-testid=ranks-row]")`)
	browser.Eval[any](tab, `document.querySelector("[data-testid=ranks-row] .opener").click()`)
	tab.Await(`document.querySelector("[data-testid=ranks-detail]")`)
	browser.Eval[any](tab, `document.querySelector("[data-testid=ranks-row] .opener").focus()`)
	tab.Press(browser.Escape)
	tab.Await(`!document.querySelector("[data-testid=ranks-detail]") && ` + runDetail)
	tab.Press(browser.Escape)
	tab.Await("!" + runDetail)
	assert.True(t, browser.Eval[bool](tab, focus+`.matches("[data-testid=needs-row] .opener")`), "the focus is where it was opened")
}

// TestColumnsStay has a table whose rows lose their values: its columns do not go.
func TestColumnsStay(t *testing.T) {
	t.Parallel()
	// The details of a run are those of the first file.
	tab := visit(t, serveFixture(t, fixture("incidents"), fixture("laptop")), "", "network")
	const heads = `[...document.querySelectorAll("[data-testid=gpus-table] thead th")].map(th => th.textContent).join()`
	tab.Await(heads + `.includes("Idle,Memory")`)
	tab.Await(row("needs", "llama-sft") + `?.classList.contains("gone")`)
	assert.Contains(t, browser.Eval[string](tab, heads), "Idle,Memory")
}

// TestAnEmptyPageHelps has the three ways to send something, whose commands can be copied.
func TestAnEmptyPageHelps(t *testing.T) {
	t.Parallel()
	tab := visit(t, serveFixture(t, fixture("empty")), "")
	clipboard.Lock()
	defer clipboard.Unlock()
	for _, way := range []struct{ name, says string }{{"python", "/v1/traces"}, {"environment", "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318"}, {"logs", "TRAINING_LOGS="}} {
		browser.Eval[any](tab, `document.querySelector("#said").textContent = ""`)
		tab.Click("[data-testid=start-" + way.name + "] [data-testid=copy]")
		tab.Await(copied)
		assert.Contains(t, tab.Clipboard(), way.says)
	}
	assert.Contains(t, browser.Eval[string](tab, named("start-arrived")+".textContent"), "GPU readings")
}

// TestThePicture has the last minutes of GPUs, tokens and cost on the first screen.
func TestThePicture(t *testing.T) {
	t.Parallel()
	tab := visit(t, address(t, busy()), "")
	tab.Await(named("heat") + `?.querySelector("canvas")`)
	assert.Regexp(t, `^What \d+ GPUs did: \d+ looks? hung, `, browser.Eval[string](tab, named("heat")+".ariaLabel"))
	tab.Await(`document.querySelector("[data-testid=part-overview] [data-testid=curve-token_rate] canvas")`)
	tab.Await(`document.querySelector("[data-testid=part-overview] [data-testid=curve-model_token_rate] canvas")`)
	tab.Await(`document.querySelector("[data-testid=part-overview] [data-testid=curve-cost_rate] canvas")`)
	// A state of the legend filters.
	browser.Eval[any](tab, named("activity-looks_hung")+".click()")
	tab.Await(`location.search.includes("kind=looks_hung")`)
}

// TestSpansOpen opens a failed call, its trace, and the span with its stack trace; and
// filters calls.
func TestSpansOpen(t *testing.T) {
	t.Parallel()
	tab := visit(t, serveFixture(t, fixture("incidents")), "")
	for _, table := range []string{"models", "tools", "agents", "sessions"} {
		tab.Await(`document.querySelector("[data-testid=` + table + `-row]")`)
	}
	choose := func(name, value string) {
		browser.Eval[any](tab, `(() => { const s = document.querySelector("[data-testid=calls-`+name+`]"); s.value = "`+value+`"; s.dispatchEvent(new Event("change", {bubbles: true})); })()`)
	}
	const calls = `[...document.querySelectorAll("[data-testid=calls-row]")].map(row => row.dataset.key).join()`
	choose("model", "qwen3-32b")
	tab.Await(calls + ` === "req0,req1"`)
	choose("model", "")
	choose("error", "any")
	tab.Await(calls + ` === "tool0,call2,call19,call36"`)
	choose("tool", "search_orders")
	tab.Await(calls + ` === "tool0"`)
	assert.Contains(t, browser.Eval[string](tab, "location.search"), "tool=search_orders&error=any", "the filters are in the address")

	tab.Click("[data-testid=calls-row] .opener")
	tab.Await(`document.querySelector("[data-testid=calls-detail] .lane.axis .tick:last-child")?.textContent === "10 s"`)
	browser.Eval[any](tab, `[...document.querySelectorAll("[data-testid=calls-detail] .spanrow button.name")].find(b => b.textContent.includes("search_orders")).click()`)
	tab.Await(named("stack") + `?.textContent.includes("\n  File \"/app/tools/orders.py\", line 31, in search_orders\n")`)
	detail := browser.Eval[string](tab, named("span-detail")+".textContent")
	for _, says := range []string{"server.port5432", "gen_ai.tool.call.arguments[41 bytes]", "exception after 30 s", "ml_view: {content: true} holds it"} {
		assert.Contains(t, detail, says)
	}
	tab.Press(browser.Escape)
	tab.Await("!" + named("span-detail"))
}

// tabTo presses the tabulator until a condition holds.
func tabTo(t *testing.T, tab *browser.Tab, condition string) {
	t.Helper()
	for range 100 {
		tab.Press(browser.Tabulator)
		if browser.Eval[bool](tab, condition) {
			return
		}
	}
	t.Fatalf("the tabulator does not lead to %s; last: %s", condition, browser.Eval[string](tab, focus+".outerHTML"))
}

// TestCollectors has the page of a fleet with a gateway that is silent.
func TestCollectors(t *testing.T) {
	t.Parallel()
	tab := visit(t, serveFixture(t, "-runs", "8", "-gpus", "300"), "")
	tab.Await(`document.querySelectorAll("[data-testid=collectors-row]").length === 3`)
	part := browser.Eval[string](tab, `document.querySelector("[data-testid=part-collectors]").textContent`)
	assert.Contains(t, part, "(2 of 3 sending)")
	assert.Regexp(t, `gw-2\s*(State)?\s*silent since `, part, "the silent one is first")
	tab.Click("[data-testid=part-collectors] [data-testid=fold]")
	tab.Await(`document.querySelector("[data-testid=collectors-row]") === null`)
}

// TestCopy puts the command of a reproduction on the clipboard.
func TestCopy(t *testing.T) {
	t.Parallel()
	tab := visit(t, address(t, busy()), "")
	copies := "[data-testid=part-failures] [data-testid=copy]"
	tab.Await(`document.querySelector("` + copies + `")`)
	// What arrives moves the rows: what counts is the row that was clicked.
	browser.Eval[any](tab, `document.addEventListener("click", event => {
		const button = event.target.closest("`+copies+`");
		if (button) window.clicked = button.parentElement.querySelector("[data-testid=command]").textContent;
	}, true)`)
	clipboard.Lock()
	defer clipboard.Unlock()
	tab.Click(copies)
	tab.Await(copied)
	command := tab.Clipboard()
	assert.Equal(t, browser.Eval[string](tab, "window.clicked"), command)
	// A script is run, the report of a hang is read.
	program, file, _ := strings.Cut(command, " ")
	assert.Contains(t, []string{"python3", "cat"}, program, command)
	assert.FileExists(t, file)
}
