package detect_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/detect"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/ranks"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/serving"
)

// Ranks usually save at the same time. Whichever order they are in, the problem names the
// same one: else its record, its host and its steps change from emission to emission.
func TestCheckpointsThatAreEquallyOverdue(t *testing.T) {
	late := func(name string, last time.Duration) *runs.Rank {
		r := &runs.Rank{Name: name, Host: "host-" + name}
		r.Saves.Regular, r.Saves.Late, r.Saves.Missed.Last = true, true, last
		return r
	}
	all := []*runs.Rank{late("2", time.Hour), late("0", time.Hour), late("1", time.Hour), late("3", 2*time.Hour)}
	for range all {
		all = append(all[1:], all[0])
		var found []problem.Problem
		run := &runs.Run{State: runs.Running, Ranks: slices.Clone(all), Members: runs.Members{All: make([]ranks.Rank, len(all))}}
		detect.New()(&detect.State{
			Now: start, Runs: []*runs.Run{run}, GPUs: &gpus.Facts{}, Services: serving.NewFleet(),
		}, func(p problem.Problem) { found = append(found, p) })
		require.Len(t, found, 1)
		assert.Equal(t, "0", found[0].Rank)
		assert.Equal(t, "host-0", found[0].Host)
	}
}
