package anomalies

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// leastFound is the least share of the real trainings in which longer steps are found.
const leastFound = 0.9

// TestRealTrainings replays real trainings. Nothing is wrong with them as they were.
func TestRealTrainings(t *testing.T) {
	var rows []realRow
	for _, kind := range realKinds {
		files, err := filepath.Glob(filepath.Join("testdata", "real", kind.folder, "*.gz"))
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, times := range stretches {
			if testing.Short() && times > 1.05 {
				continue
			}
			row := realRow{name: kind.name, times: times}
			for _, file := range files {
				synctest.Test(t, func(t *testing.T) {
					reported, lived, since, err := replayReal(t.Context(), file, times)
					require.NoError(t, err, file)
					row.add(reported, lived, since)
				})
			}
			t.Logf("%s %g: %d of %d found, %d pages, %d tickets", kind.name, times, row.found, row.runs, row.pages, row.tickets)
			assert.Zero(t, row.pages, "%s %g", kind.name, times)
			assert.Zero(t, row.tickets, "%s %g", kind.name, times)
			if times != 1 {
				assert.GreaterOrEqual(t, float64(row.found), leastFound*float64(row.runs), "%s %g", kind.name, times)
			}
			rows = append(rows, row)
		}
	}
	page, err := os.ReadFile("../../docs/evidence/anomalies.md")
	require.NoError(t, err)
	section := realSection(rows)
	if *update {
		head, rest, _ := strings.Cut(string(page), "## Real trainings\n")
		if i := strings.Index(rest, "\n## "); i >= 0 {
			rest = rest[i:]
		} else {
			rest = ""
		}
		require.NoError(t, os.WriteFile("../../docs/evidence/anomalies.md", []byte(strings.TrimRight(head, "\n")+"\n\n"+section+rest), 0o600))
		return
	}
	// Delays differ by when requests and emissions meet.
	for line := range strings.Lines(section) {
		cells := strings.SplitAfter(line, "|")
		assert.Contains(t, string(page), strings.Join(cells[:min(len(cells), 3)], ""), "make anomalies UPDATE=1 writes it")
	}
}
