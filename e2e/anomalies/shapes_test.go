package anomalies

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

const (
	// shapeRuns live of each shape, shortShapeRuns with -short.
	shapeRuns, shortShapeRuns = 20, 2
	// leastShaped is the least share of what is planted in shapes that is found.
	leastShaped = 0.9
	// marksOfShape is how many marks a run may have in a day.
	marksOfShape = 5
)

// lived is a shape that can live.
type lived interface {
	live(ctx context.Context, seed int64, runs int) (*shapeRow, error)
	allows() []string
	plants() bool
}

func (s *shape) allows() []string        { return s.may }
func (s *shape) plants() bool            { return s.kind != "" }
func (s *serviceShape) allows() []string { return s.may }
func (s *serviceShape) plants() bool     { return s.kind != "" }

// TestOtherShapes has trainings and services of other shapes than those of the fleets.
// Nothing pages where nothing is wrong, and nothing is a ticket that the shape does not allow.
func TestOtherShapes(t *testing.T) {
	var all []lived
	for i := range healthyShapes {
		all = append(all, &healthyShapes[i])
	}
	for i := range plantedShapes {
		all = append(all, &plantedShapes[i])
	}
	for i := range serviceShapes {
		all = append(all, &serviceShapes[i])
	}
	rows := make([]*shapeRow, len(all))
	t.Run("all", func(t *testing.T) {
		for i, s := range all {
			t.Run(nameOfShape(s), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { rows[i] = liveAs(t, s) })
			})
		}
	})
	if testing.Short() || slices.Contains(rows, nil) {
		return
	}
	var healthy, planted []*shapeRow
	for i, s := range all {
		if s.plants() {
			planted = append(planted, rows[i])
		} else {
			healthy = append(healthy, rows[i])
		}
	}
	checkSection(t, shapesHead, shapesSection(healthy, planted))
}

func nameOfShape(s lived) string {
	if of, is := s.(*shape); is {
		return of.name
	}
	return s.(*serviceShape).name
}

// liveAs lets a shape live, and compares what is reported with what may be.
func liveAs(t *testing.T, s lived) *shapeRow {
	runs := shapeRuns
	if testing.Short() {
		runs = shortShapeRuns
	}
	row, err := s.live(t.Context(), *first, runs)
	require.NoError(t, err)
	t.Logf("%s: %d of %d found after %s, %d pages, %s tickets, %d marks", row.name, row.found, row.runs, both(row.delays), row.pages, row.ticketKinds(), row.marks)
	for _, seen := range row.others {
		if kind, _ := mlattr.ProblemNamed(seen.kind); kind.Severity != mlattr.SeverityMark {
			assert.Contains(t, s.allows(), seen.kind, "%s", seen)
			assert.NotEqual(t, mlattr.SeverityPage, kind.Severity, "%s", seen)
		}
	}
	assert.LessOrEqual(t, row.marks, marksOfShape*runs)
	if s.plants() && row.missed == "" {
		assert.GreaterOrEqual(t, float64(row.found), leastShaped*float64(runs))
	}
	return row
}

// checkSection compares a section of docs/evidence/anomalies.md, of which the first line of head is
// the title, or writes it.
func checkSection(t *testing.T, head, section string) {
	t.Helper()
	const path = "../../docs/evidence/anomalies.md"
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	title, _, _ := strings.Cut(head, "\n")
	if !*update {
		assert.Contains(t, string(page), title, "make anomalies UPDATE=1 writes it")
		return
	}
	before, rest, _ := strings.Cut(string(page), title+"\n")
	after := ""
	if i := strings.Index(rest, "\n## "); i >= 0 {
		after = rest[i:]
	}
	require.NoError(t, os.WriteFile(path, []byte(strings.TrimRight(before, "\n")+"\n\n"+section+after), 0o600))
}
