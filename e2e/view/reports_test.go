package view_test

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
	"github.com/otelcol-ml/otelcol-ml/e2e/view"
)

// run is a row of the state, with its key.
type run struct {
	Key string `json:"key"`
	view.Run
}

// report is the part of a report that the test reads.
type report struct {
	Run      run `json:"run"`
	Problems []struct {
		Lasts bool       `json:"lasts"`
		Need  *view.Need `json:"need"`
	} `json:"problems"`
	Numbers []struct {
		Name  string  `json:"name"`
		Value float64 `json:"value"`
	} `json:"numbers"`
	Settings []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"settings"`
}

func read(t require.TestingT, test *testing.T, address, path string, into any) {
	body, err := harness.Get(test.Context(), "http://"+address+path)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal([]byte(body), into))
}

// TestReportsHaveTheNumbersOfTheState compares each run's report with the state, after
// all clients have stopped: runs that hang, are slow, and have ended.
func TestReportsHaveTheNumbersOfTheState(t *testing.T) {
	c := startCollector(t)
	harness.GenerateTo(t, endpoints(t, c), harness.Workload{Seed: 7, Incidents: "hang,slow-input", Duration: 15 * time.Second, Rate: 20, Ranks: 2, MetricsInterval: metricsInterval})
	harness.GenerateTo(t, endpoints(t, c), harness.Workload{Seed: 7, Scenarios: "torchtel", Duration: 5 * time.Second, Rate: 5, Ranks: 2, MetricsInterval: metricsInterval})
	view.AwaitParity(t, c)
	address := c.Address(t, "exporters::ml_view")
	require.EventuallyWithT(t, func(t2 *assert.CollectT) {
		var state struct {
			Runs  []run       `json:"runs"`
			Needs []view.Need `json:"needs"`
		}
		read(t2, t, address, "/api/v1/state", &state)
		states := map[string]bool{}
		for _, want := range state.Runs {
			states[want.State] = true
			var got report
			read(t2, t, address, "/api/v1/runs/"+want.Key+"/report?format=json", &got)
			// What was seen last and the time since differ by a moment.
			assert.Equal(t2, want.Run, got.Run.Run, want.ID)
			numbers := map[string]float64{}
			for _, n := range got.Numbers {
				numbers[n.Name] = n.Value
			}
			if want.Steps != nil {
				assert.InDelta(t2, *want.Steps, numbers["steps"], 0, want.ID)
			}
			var kinds, lasting []string
			for _, need := range state.Needs {
				if need.RunID == want.ID {
					kinds = append(kinds, need.Kind)
				}
			}
			for _, p := range got.Problems {
				if p.Lasts {
					lasting = append(lasting, p.Need.Kind)
				}
			}
			assert.ElementsMatch(t2, kinds, lasting, want.ID)
			assert.NotEmpty(t2, got.Settings, want.ID)
		}
		assert.True(t2, states["stalled"] && states["ended"], "%v", states)
	}, time.Minute, 200*time.Millisecond)
}

// TestASecondRunIsComparedWithTheFirst trains twice: the second run has the first one,
// which has ended without a problem, beside it, also in its report.
func TestASecondRunIsComparedWithTheFirst(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "reports")
	c := startCollector(t, map[string]any{"exporters::ml_view::reports::directory": directory})
	train := func(seed int64, job string) {
		harness.GenerateTo(t, endpoints(t, c), harness.Workload{Seed: seed, JobID: job, Scenarios: "torchtel", Duration: 10 * time.Second, Rate: 8, Ranks: 1, MetricsInterval: metricsInterval})
	}
	train(1, "48101")
	address := c.Address(t, "exporters::ml_view")
	await := func(runs int) (newest string) {
		require.EventuallyWithT(t, func(t2 *assert.CollectT) {
			var state struct {
				Runs []run `json:"runs"`
			}
			read(t2, t, address, "/api/v1/state", &state)
			ended := 0
			for _, r := range state.Runs {
				if r.State == "ended" {
					ended++
				}
			}
			if assert.Equal(t2, runs, ended) {
				newest = state.Runs[len(state.Runs)-1].Key
			}
			files, _ := filepath.Glob(filepath.Join(directory, "*.html")) // The pattern is valid.
			assert.Len(t2, files, runs, "each that has ended has its report")
		}, time.Minute, 200*time.Millisecond)
		return newest
	}
	first := await(1)
	train(2, "48102")
	second := await(2)
	require.NotEqual(t, first, second, "rows are ordered by their start")

	var comparison struct {
		With *struct {
			Run run `json:"run"`
		} `json:"with"`
		Basis    string                             `json:"basis"`
		Settings []struct{ Name, Run, With string } `json:"settings"`
	}
	read(t, t, address, "/api/v1/runs/"+second+"/compare", &comparison)
	require.NotNil(t, comparison.With)
	assert.Equal(t, first, comparison.With.Run.Key)
	assert.Equal(t, "last_good", comparison.Basis)
	assert.Empty(t, comparison.Settings, "both were started in the same way")
}
