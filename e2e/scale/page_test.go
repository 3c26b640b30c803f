package scale

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

var update = flag.Bool("update", false, "write the outcomes into docs/evidence/scale.md")

const (
	begin = "<!-- Written by make e2e-scale UPDATE=1. -->\n"
	end   = "<!-- End of what is written. -->\n"
)

func page() string { return harness.Path("docs", "evidence", "scale.md") }

// cells returns a row's cells, the first of which does not depend on the run.
func (o outcome) cells() []string {
	count := func(metric string) string {
		less, more, total := 0., 0., 0.
		for of, value := range o.totals {
			if name(of) == metric {
				total += value
			}
		}
		for of, d := range o.differences {
			if name(of) == metric {
				less, more = less+max(0, -d), more+max(0, d)
			}
		}
		if less+more == 0 {
			return "0"
		}
		return fmt.Sprintf("%.0f, %.0f of %.0f", less, more, total)
	}
	return []string{
		o.fault, strconv.Itoa(o.spans), strconv.Itoa(o.spans - o.stored), strconv.Itoa(o.again), strconv.Itoa(o.several),
		count("ml_steps_total"), count("ml_requests_total"),
	}
}

// writePage puts the outcomes into the page.
func writePage(t *testing.T, outcomes []outcome) {
	t.Helper()
	text, err := os.ReadFile(page())
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), begin)
	require.True(t, found, "%s has no %s", page(), begin)
	_, after, found := strings.Cut(rest, end)
	require.True(t, found, "%s has no %s", page(), end)
	var table strings.Builder
	table.WriteString("\n| after this | spans acknowledged | lost | again from one gateway | at two gateways | steps: missing, twice | requests: missing, twice |\n|---|---|---|---|---|---|---|\n")
	for _, o := range outcomes {
		table.WriteString("| " + strings.Join(o.cells(), " | ") + " |\n")
	}
	require.NoError(t, os.WriteFile(page(), []byte(before+begin+table.String()+"\n"+end+after), 0o600))
}

// The page has the faults in their order, and says that no span is lost, and no count
// is wrong where the test expects so.
func TestPageHasEveryFault(t *testing.T) {
	if *update {
		t.Skip("TestFleet writes the page anew")
	}
	text, err := os.ReadFile(page())
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(text), begin)
	written, _, found := strings.Cut(rest, end)
	require.True(t, found)
	rows := strings.Split(strings.TrimSpace(written), "\n")
	require.Len(t, rows, len(faults)+3, "run make e2e-scale UPDATE=1")
	for i, fault := range append([]fault{{name: healthy}}, faults...) {
		cells := strings.Split(rows[i+2], " | ")
		assert.Equal(t, "| "+fault.name, cells[0])
		assert.Equal(t, "0", cells[2], "spans lost after %s", fault.name)
		if !fault.loses {
			assert.Equal(t, []string{"0", "0 |"}, cells[5:], fault.name)
		}
	}
}
