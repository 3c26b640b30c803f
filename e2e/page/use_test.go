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
	tab.Click("[data-testid=needs-row] .opener")
	tab.Await(runDetail)
	assert.Contains(t, browser.Eval[string](tab, "location.search"), "run=", "an opened run is in the address")

	// The address opens the same run elsewhere.
	other := visit(t, address(t, busy()), browser.Eval[string](tab, "location.search"))
	other.Await(runDetail)

	tab.Click("[data-testid=needs-row] .opener")
	tab.Await("!" + runDetail)
}

// TestKeyboard reaches a run, opens and closes it, and searches, without a mouse.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	tab := visit(t, address(t, busy()), "")
	tab.Await(row("needs", "llama-sft"))

	tabTo(t, tab, focus+`.matches("[data-testid=needs-row] .opener")`)
	assert.NotEqual(t, "none", browser.Eval[string](tab, `getComputedStyle(`+focus+`).outlineStyle`), "the focus is visible")
	tab.Press(browser.Enter)
	tab.Await(runDetail)
	// The page has been drawn anew, and the focus is where it was.
	tab.Await(focus + `.matches("[data-testid=needs-row] .opener[aria-expanded=true]")`)
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

// TestCopy puts the command of a reproduction on the clipboard.
func TestCopy(t *testing.T) {
	t.Parallel()
	tab := visit(t, address(t, busy()), "")
	button := `document.querySelector("[data-testid=part-failures] [data-testid=copy]")`
	tab.Await(button)
	command := browser.Eval[string](tab, `fetch("/api/v1/state").then(r => r.json()).then(s => s.failures.find(f => f.command).command)`)
	require.NotEmpty(t, command)
	found := browser.Eval[bool](tab, `(() => {
		for (const code of document.querySelectorAll("[data-testid=part-failures] [data-testid=command]")) {
			if (code.textContent === `+quoted(command)+`) {
				code.parentElement.querySelector("[data-testid=copy]").id = "wanted";
				return true;
			}
		}
		return false;
	})()`)
	require.True(t, found, "no row has the command %s", command)
	tab.Click("#wanted")
	tab.Await(`[...document.querySelectorAll("button")].some(b => /copied/i.test(b.textContent))`)
	assert.Equal(t, command, tab.Clipboard())
}
