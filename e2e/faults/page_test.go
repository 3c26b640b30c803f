package faults

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

var update = flag.Bool("update", false, "write the counts into docs/evidence/reliability.md")

const (
	begin = "<!-- Written by make e2e-faults UPDATE=1. -->\n"
	end   = "<!-- End of what is written. -->\n"
)

func page() string { return harness.Path("docs", "evidence", "reliability.md") }

// head returns the cells of a row that do not depend on the run.
func (f fault) head() string { return fmt.Sprintf("| %s | %s |", f.name, f.queue.name) }

// writePage puts the counts into the page.
func writePage(t *testing.T, counted []outcome) {
	t.Helper()
	text, err := os.ReadFile(page())
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), begin)
	require.True(t, found, "%s has no %s", page(), begin)
	_, after, found := strings.Cut(rest, end)
	require.True(t, found, "%s has no %s", page(), end)

	var table strings.Builder
	table.WriteString("\n| fault | queue | acknowledged | refused | lost | twice | |\n|---|---|---|---|---|---|---|\n")
	for i, fault := range faults {
		fmt.Fprintf(&table, "%s %d | %d | %d | %d | %s |\n", fault.head(),
			counted[i].acknowledged, counted[i].refused, counted[i].lost, counted[i].twice, fault.remark)
	}
	table.WriteString("\n")
	require.NoError(t, os.WriteFile(page(), []byte(before+begin+table.String()+end+after), 0o600))
}

// The page has the table's rows, in its order, and says that nothing is lost
// where the tests expect so.
func TestPageHasEveryFault(t *testing.T) {
	if *update {
		t.Skip("TestFaults writes the page anew")
	}
	text, err := os.ReadFile(page())
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(text), begin)
	written, _, found := strings.Cut(rest, end)
	require.True(t, found)
	rows := strings.Split(strings.TrimSpace(written), "\n")
	require.Len(t, rows, len(faults)+2, "run make e2e-faults UPDATE=1")
	for i, fault := range faults {
		row := rows[i+2]
		require.True(t, strings.HasPrefix(row, fault.head()), "row %q is not of %q", row, fault.head())
		cells := strings.Split(row, "|")
		assert.Equal(t, fault.remark, strings.TrimSpace(cells[7]), row)
		if !fault.loses {
			assert.Equal(t, "0", strings.TrimSpace(cells[5]), row)
		}
	}
}
