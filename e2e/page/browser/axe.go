package browser

import (
	_ "embed"

	"github.com/chromedp/chromedp"
)

// axe is axe-core 4.14.1 of the npm registry (ADR 36).
//
//go:embed axe/axe.min.js
var axe string

// Violations returns what axe-core finds wrong with the accessibility of the
// page as it is drawn now: the rule, the element and what to change.
func (t *Tab) Violations() []string {
	t.tb.Helper()
	t.do(chromedp.Evaluate[chromedp.Void](axe))
	return Eval[[]string](t, `axe.run(document, {resultTypes: ["violations"]}).then(result => result.violations.flatMap(v =>
		v.nodes.map(n => v.id + " " + n.target.join(" ") + ": " + n.html.slice(0, 200) + ": " + n.failureSummary)))`)
}
