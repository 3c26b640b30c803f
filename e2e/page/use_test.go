package page

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/page/browser"
)

const (
	focus = `document.activeElement`
	// definition is true while the definition of a number is shown.
	definition = `document.querySelector("#definition").matches(":popover-open")`
)

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
	command := browser.Eval[string](tab, `document.querySelector("`+copies+`").parentElement.querySelector("[data-testid=command]").textContent`)
	require.True(t, browser.Eval[bool](tab, `fetch("/api/v1/state").then(r => r.json()).then(s => s.failures.some(f => f.command === `+quoted(command)+`))`),
		"%s is no command of a failure", command)
	tab.Click(copies)
	tab.Await(`[...document.querySelectorAll("button")].some(b => /copied/i.test(b.textContent))`)
	assert.Equal(t, command, tab.Clipboard())
}
