package archive

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// question is one of examples/archive/questions. keys are the columns that name a row,
// values those that are compared.
type question struct {
	keys, values []string
	want         func(*archived) map[string][]float64
}

var questions = map[string]question{
	"step_times":  {[]string{"run", "rank"}, []string{"steps", "p50_s", "p95_s", "p99_s"}, func(a *archived) map[string][]float64 { return a.truth.stepTimes() }},
	"slow_ranks":  {[]string{"run", "rank"}, []string{"own_s", "ratio"}, func(a *archived) map[string][]float64 { return a.truth.ownTimes() }},
	"phases":      {[]string{"run", "minute", "phase"}, []string{"seconds", "share"}, func(a *archived) map[string][]float64 { return a.truth.phases() }},
	"first_token": {[]string{"model"}, []string{"requests", "p50_s", "p95_s", "p99_s"}, func(a *archived) map[string][]float64 { return a.truth.firstTokens() }},
	"failures": {[]string{"service"}, []string{"failures"}, func(a *archived) map[string][]float64 {
		want := a.truth.failures()
		want["planted"] = []float64{1}
		return want
	}},
	"restarts": {[]string{"run"}, []string{"restarts", "lost_rank_hours", "repeated_steps"}, func(a *archived) map[string][]float64 { return a.truth.restarts() }},
	"gaps":     {[]string{"run"}, []string{"longest_gap_s", "since_last_s"}, func(a *archived) map[string][]float64 { return a.truth.gaps() }},
	"tokens_by_user": {[]string{"user"}, []string{"requests", "input_tokens", "output_tokens"}, func(*archived) map[string][]float64 {
		return map[string][]float64{hashOf("alice"): {2, 400, 60}, hashOf("bob"): {3, 1007, 9}}
	}},
	"requests": {[]string{"model"}, []string{"requests", "failures", "failed_share"}, func(a *archived) map[string][]float64 {
		return map[string][]float64{
			"model-a": {4, 1, 0.25}, "model-b": {1, 0, 0},
			"llama-3.3-70b": {a.truth.firstTokens()["llama-3.3-70b"][0], 0, 0},
		}
	}},
	"costs": {[]string{"model"}, []string{"requests", "cost_usd", "unpriced"}, func(*archived) map[string][]float64 {
		return map[string][]float64{"model-a": {4, 2.75, 1}, "model-b": {1, 0, 1}}
	}},
}

// testQuestions compares each answer with what was sent. The answers have more rows than
// the truth: runs and models of the clients whose names are not canonical.
func testQuestions(t *testing.T, a *archived) {
	files, err := os.ReadDir(harness.Path("examples", "archive", "questions"))
	require.NoError(t, err)
	assert.Len(t, files, len(questions))
	for name, q := range questions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := map[string][]float64{}
			for _, one := range ask(t, a.parquet, name) {
				var key []string
				for _, column := range q.keys {
					key = append(key, fmt.Sprint(one[column]))
				}
				at := strings.Join(key, "/")
				values := make([]float64, len(q.values))
				for i, column := range q.values {
					values[i], _ = one[column].(float64)
				}
				if name == "failures" && got[at] != nil {
					values[0] += got[at][0]
				}
				got[at] = values
			}
			want := q.want(a)
			require.NotEmpty(t, want)
			for key, values := range want {
				if !assert.Len(t, got[key], len(values), key) {
					continue
				}
				assert.InDeltaSlice(t, values, got[key], 1e-6, "%s: wanted %v, got %v", key, values, got[key])
			}
		})
	}
	t.Run("steps of clients", func(t *testing.T) { testClientSteps(t, a) })
}

// testClientSteps compares the steps of the clients with what mlgen counted.
func testClientSteps(t *testing.T, a *archived) {
	steps := map[string]int64{}
	for _, one := range ask(t, a.parquet, "step_times") {
		steps[fmt.Sprint(one["run"])+"/"+fmt.Sprint(one["rank"])] = int64(one["steps"].(float64))
	}
	for run, count := range a.first.Summary.Scenarios["tuft"].Truth.Steps {
		assert.Equal(t, count, steps[run+"/<nil>"], "TuFT's run %s", run)
	}
	ranks := map[string]int64{}
	for key, count := range steps {
		run, rank, _ := strings.Cut(key, "/")
		if rank != "<nil>" && !strings.Contains(run, "-") {
			ranks[rank] = count
		}
	}
	for rank, count := range a.first.Summary.Scenarios["torchtel"].Truth.Steps {
		assert.Equal(t, count, ranks[rank], "TorchTel's rank %s", rank)
	}
}
