package detect_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/detect"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/ranks"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/serving"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// A silence of a length that ended by itself before, as an evaluation without spans, is
// no hang until it is overdue.
func TestSilencesAsBefore(t *testing.T) {
	for silent, hangs := range map[time.Duration]bool{6 * time.Minute: false, 14 * time.Minute: false, 16 * time.Minute: true} {
		for quiet, learnt := range map[time.Duration]bool{0: false, 10 * time.Minute: true} {
			rank := &runs.Rank{Name: "0", State: runs.Stalled, Breaks: runs.Breaks{Patience: 5 * time.Minute, Silences: runs.Silences{Number: 1, Longest: quiet, Shortest: quiet}}}
			rank.Last.Stepped = start.Add(-silent)
			run := &runs.Run{State: runs.Stalled, Since: start.Add(-silent), Ranks: []*runs.Rank{rank}, Members: runs.Members{All: make([]ranks.Rank, 1)}}
			found := 0
			detect.New()(&detect.State{Now: start, Runs: []*runs.Run{run}, GPUs: &gpus.Facts{}, Services: serving.NewFleet()},
				func(p problem.Problem) {
					if p.Kind == mlattr.ProblemLooksHung {
						found++
					}
				})
			assert.Equal(t, hangs || !learnt, found == 1, "%s after %s", silent, quiet)
		}
	}
}
