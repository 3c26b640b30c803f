package page

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/e2e/page/browser"
)

// TestAnswers asks the page what an engineer asks in an incident. Each answer is
// there without opening anything.
func TestAnswers(t *testing.T) {
	t.Parallel()
	tab := visit(t, address(t, busy()), "")
	for question, shown := range map[string]string{
		"in which order do I look":       row("needs", "llama-sft") + `?.querySelector("[data-testid=urgency]").textContent.match(/^[1-9] now$/)`,
		"what can wait until then":       `document.querySelector("[data-testid=needs-row][data-kind=slow] [data-testid=urgency]")?.textContent.match(/^[1-9] today$/)`,
		"what goes away with another":    row("needs", "failing") + `?.querySelector("[data-testid=urgency]").textContent.match(/^([1-9] now|follows [1-9])$/)`,
		"who owns a service":             row("needs", "support-agent") + `?.textContent.includes("owner not known")`,
		"how do I name the owner":        part("missing") + `?.textContent.includes('ml_view: {owners: {')`,
		"which rank hangs, where":        row("needs", "llama-sft") + `?.textContent.includes("See what rank 13 (gpu-02, GPU 5) does")`,
		"with which command do I look":   row("needs", "llama-sft") + `?.querySelector("[data-testid=command]")?.textContent.match(/^(py-spy dump --pid \d+|nvidia-smi .*)$/)`,
		"whose GPU is it, is it used":    hostLine("gpu-08", `/^4\s*0 %5\s*0 %6\s*0 %7\s*0 % held idle · slurm job \d+ \(uid 1003\)$/`),
		"who holds GPU 5 of a hung run":  hostLine("gpu-02", `/5\s*\d+ %.* looks hung · llama-sft \(uid 1001\)$/`),
		"which host has no GPU":          `document.querySelector("[data-testid=hosts-without-gpu]")`,
		"what failed last":               `document.querySelector("[data-testid=last-failure]")?.textContent.match(/^Last: .* ago\. /)`,
		"how do I reproduce a failure":   `[...document.querySelectorAll("[data-testid=failures-row] [data-testid=reproduce]")].every(cell => /^(Reproduction: |No reproduction)|Runs the failed call|Prints what is known/.test(cell.textContent))`,
		"why has a run no tokens/s":      row("runs", "torchtel") + `?.querySelector("[data-testid=token_rate]").textContent.includes("tokens per step not set")`,
		"why has a forecast no tokens/s": row("runs", "fx-forecasting") + `?.querySelector("[data-testid=token_rate]").textContent.match(/^[\d.]+ samples\/s$/)`,
		"which other run has errors":     row("runs", "fx-forecasting") + `?.querySelector("[data-testid=errors] .error")`,
		"what time is it there":          `/data \d+ s old, \d\d:\d\d:\d\d UTC[+−]/.test(document.querySelector("[data-testid=freshness]").textContent)`,
	} {
		t.Log(question)
		tab.Await(shown)
	}
	assert.Equal(t, "Healthy runs", browser.Eval[string](tab, part("runs")+`.querySelector("h2").firstChild.nodeValue`))
}

// TestAnOpenedHang opens a run that hangs: nothing of it looks like now.
func TestAnOpenedHang(t *testing.T) {
	t.Parallel()
	tab := visit(t, address(t, busy()), "")
	tab.Await(row("needs", "llama-sft"))
	browser.Eval[any](tab, row("needs", "llama-sft")+`.querySelector(".opener").click()`)
	tab.Await(`document.querySelector("[data-testid=curve-step_time]")`)
	text := func(id string) string { return browser.Eval[string](tab, named(id)+`.textContent`) }
	for _, curve := range []string{"loss", "step_time"} {
		assert.NotContains(t, text("curve-"+curve), "now")
	}
	assert.Contains(t, text("curve-power"), "now")
	assert.Contains(t, text("detail-time"), "no span since the last step")
	assert.NotContains(t, text("detail-time"), "unknown")
	// On a busy machine the run may look hung several times.
	marks := browser.Eval[[]string](tab, `[...document.querySelectorAll("[data-testid=mark]")].map(m => m.textContent)`)
	assert.Regexp(t, "looks hung$", marks[len(marks)-1])
	if before := len(marks) - 2; before >= 0 {
		assert.NotContains(t, marks[before], "looks hung (was", "the onset is the mark")
	}
}

// part is an expression for a part of the page, named for any element by its data-testid.
func part(name string) string { return named("part-" + name) }

func named(id string) string { return `document.querySelector("[data-testid=` + id + `]")` }

// hostLine is true when a line of the GPUs of a host matches.
func hostLine(host, pattern string) string {
	return `[...document.querySelectorAll("[data-testid=part-gpus] tr.group")].some(tr => tr.textContent.includes(` + quoted(host) + `) &&
		[...tr.querySelectorAll(".alike")].some(line => ` + pattern + `.test(line.textContent)))`
}
