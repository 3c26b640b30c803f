package page

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
	"github.com/otelcol-ml/otelcol-ml/e2e/page/browser"
)

// TestIncidentsNeedSomeone has everything that mlgen lets go wrong on one page,
// each at the run or the GPUs that it happens to.
func TestIncidentsNeedSomeone(t *testing.T) {
	t.Parallel()
	tab := visit(t, address(t, busy()), "")
	// A busy machine can make the others look hung for a moment.
	for _, c := range []struct{ kind, what, subject string }{
		{"looks_hung", "looks hung", "llama-sft"},
		{"slow", "slow", "qwen-dpo"},
		{"failing", "failing", "support-agent"},
		{"held_idle", "held idle", "gpu-08"},
		{"looks_hung", "looks hung", "mixtral-pretrain"},
	} {
		tab.Await(fmt.Sprintf(`[...document.querySelectorAll("[data-testid=needs-row][data-kind=%s]")].some(row =>
			row.textContent.includes(%s) && row.textContent.includes(%s))`, c.kind, quoted(c.what), quoted(c.subject)))
	}
	assert.True(t, browser.Eval[bool](tab, row("needs", "llama-sft")+`.textContent.includes("simulated")`), "the data is labeled")
}

// TestARunThatHangs kills the training processes of a run whose GPUs stay held.
func TestARunThatHangs(t *testing.T) {
	t.Parallel()
	c := startCollector(t, nil)
	training := harness.StartGenerator(t, endpoints(t, c), harness.Workload{Seed: 1, Scenarios: "torchtel", Rate: 5, Ranks: 2, MetricsInterval: metricsInterval})
	tab := visit(t, address(t, c), "")
	tab.Await(row("runs", "torchtel") + `?.dataset.kind === "running"`)
	training.Kill(t)
	tab.Await(row("needs", "looks hung"))
	tab.Await(row("runs", "torchtel") + `?.dataset.kind === "stalled"`)
}
