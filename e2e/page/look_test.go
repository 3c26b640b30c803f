package page

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/e2e/page/browser"
)

// widths are those of a telephone, a tablet and a desktop.
var widths = []int{360, 768, 1440}

// TestAccessibility has axe-core look at each state of the page, in both themes and
// three widths. At none of them the page is wider than the screen.
func TestAccessibility(t *testing.T) {
	t.Parallel()
	empty := startCollector(t, map[string]any{
		"service::pipelines::metrics::receivers": []any{"otlp"},
		"service::pipelines::logs::receivers":    []any{"otlp"},
	})
	for _, c := range []struct {
		name, url string
		prepare   func(tab *browser.Tab)
	}{
		{"empty", address(t, empty), func(*browser.Tab) {}},
		{"incidents", address(t, busy), func(tab *browser.Tab) { tab.Await(row("needs", "llama-sft")) }},
		{"open run", address(t, busy), func(tab *browser.Tab) {
			tab.Await(row("needs", "llama-sft"))
			tab.Click("[data-testid=needs-row] .opener")
			tab.Await(runDetail)
		}},
		{"nothing found", address(t, busy) + "/?q=nothing-has-this", func(*browser.Tab) {}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			tab := visit(t, c.url)
			c.prepare(tab)
			for _, width := range widths {
				for _, theme := range browser.Themes {
					tab.Resize(width, 900)
					tab.Theme(theme)
					at := fmt.Sprintf("%s, %d px, %s", c.name, width, theme)
					assert.Empty(t, tab.Violations(), at)
					assert.Empty(t, browser.Eval[string](tab, widest), at)
				}
			}
		})
	}
}

// widest describes what makes the page wider than the screen.
const widest = `(() => {
	const root = document.documentElement;
	if (root.scrollWidth <= root.clientWidth) return "";
	const wide = [...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > root.clientWidth);
	return root.scrollWidth + " px, by " + wide.slice(0, 5).map(e => e.outerHTML.slice(0, 200)).join("\n");
})()`
