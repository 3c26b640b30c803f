package model_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// What is missing for one cause is one row.
func TestMissingOfSeveralRuns(t *testing.T) {
	w := newWorld(input.Settings{})
	add := func(service string, spans int) {
		p := series.Point{Series: series.Steps, Update: series.Update{Value: 1}}
		p.Labels = series.Labels{Service: service, Run: "r", Rank: "0"}
		w.ApplyPoints([]series.Point{p})
		for range spans {
			w.span(func(in *input.Span) { in.Source, in.Runless = &input.Source{Service: service}, true })
		}
	}
	rows := func() map[string]api.Missing {
		byKind := make(map[string]api.Missing)
		for _, m := range w.state().Missing {
			require.NotContains(t, byKind, m.Kind)
			byKind[m.Kind] = m
		}
		return byKind
	}
	add("trainer", 12)
	missing := rows()
	assert.Equal(t, "Tokens per second of trainer", missing["step_tokens"].What)
	assert.Equal(t, `ml_enrich: {training: [{service: "trainer", tokens_per_step: <tokens of one rank>}]}`, missing["step_tokens"].Fix)
	assert.Equal(t, "The run of spans of trainer", missing["run"].What)
	assert.EqualValues(t, 12, missing["run"].Count)
	assert.Equal(t, "The host of ranks of trainer", missing["rank_host"].What)

	for i := range 6 {
		add("s"+strconv.Itoa(i), 250)
	}
	missing = rows()
	assert.Equal(t, "Tokens per second of 7 runs: s0, s1, s2, s3, s4 and 2 more", missing["step_tokens"].What)
	assert.Contains(t, missing["step_tokens"].Fix, `{service: "s1", tokens_per_step`)
	assert.Equal(t, "The run of spans of 7 services: s0, s1, s2, s3, s4 and 2 more", missing["run"].What)
	assert.EqualValues(t, 1500, missing["run"].Count, "1512 with two digits that matter")
	assert.Equal(t, "The host of ranks of 7 runs: s0, s1, s2, s3, s4 and 2 more", missing["rank_host"].What)
	assert.EqualValues(t, 7, missing["rank_host"].Count)
}

// A run of a service that has several is counted with its name. One that counts
// samples needs no tokens.
func TestMissingTokens(t *testing.T) {
	w := newWorld(input.Settings{})
	for _, run := range []string{"a", "b", "c"} {
		w.point(series.Steps, run, 1)
	}
	w.point(series.Samples, "c", 64)
	s := w.state()
	var what []string
	for _, m := range s.Missing {
		if m.Kind == "step_tokens" {
			what = append(what, m.What)
		}
	}
	assert.Equal(t, []string{"Tokens per second of 2 runs: trainer (2)"}, what)
	for _, r := range s.Runs {
		if why := r.Why["token_rate"]; r.ID == "c" {
			assert.Equal(t, "counts samples, not tokens", why)
		} else {
			assert.Contains(t, why, `In the collector's configuration file, under processors, set ml_enrich: {training: [{service: "trainer", tokens_per_step:`)
			assert.Contains(t, why, "sequence length")
		}
	}
}

// The hidden rows are known without a State.
func TestHidden(t *testing.T) {
	w := newWorld(input.Settings{MaxGPUs: 1, Interval: time.Hour})
	w.gpu(series.GPUPower, "0", 1, nil)
	w.gpu(series.GPUPower, "1", 1, nil)
	assert.Equal(t, map[string]int{"gpus": 1}, w.Hidden())
	w.gpu(series.GPUPower, "2", 1, nil)
	assert.Equal(t, 2, w.State().Collector.Hidden["gpus"], "Hidden has taken no State")

	for range 2 {
		w.now = w.now.Add(50 * time.Minute)
		w.gpu(series.GPUPower, "2", 1, nil)
	}
	assert.Empty(t, w.Hidden(), "it is shown now")
	assert.Equal(t, "2", w.State().GPUs[0].ID)
}

func TestFailuresBeyondTheLimitAreCounted(t *testing.T) {
	w := newWorld(input.Settings{})
	var found []api.Failure
	for i := range 900 {
		found = append(found, api.Failure{Key: strconv.Itoa(i), Message: strings.Repeat("x", 600)})
	}
	w.SetFailures(found)
	s := w.state()
	assert.Equal(t, 500, len(s.Failures)) //nolint:testifylint // the whole list is too much to print
	assert.Equal(t, 400, s.Collector.Hidden["failures"])
	assert.Len(t, s.Failures[0].Message, 200, "content is withheld")
}

// Simulated data is labelled wherever it is shown.
func TestSimulated(t *testing.T) {
	for _, simulated := range []bool{true, false} {
		w := newWorld(input.Settings{})
		w.span(func(in *input.Span) {
			in.Source = &input.Source{Service: "agent", Simulated: simulated}
			in.Failed, in.Class, in.Part, in.Asks, in.Fact.Requested = true, "E", input.WholeCall, true, "m"
		})
		w.failing(w.now)
		s := w.state()
		assert.Equal(t, simulated, s.Needs[0].Simulated)
		assert.Equal(t, simulated, s.Models[0].Simulated)
		assert.Equal(t, simulated, s.Failures[0].Simulated)
		assert.Equal(t, simulated, s.Calls[0].Simulated)
	}
	for source, recorded := range map[string]bool{"simulated": false, mlattr.GPUSourceReplay: true} {
		w := newWorld(input.Settings{})
		w.gpu(series.GPUPower, "0", 1, func(p *series.Point) { p.Simulated, p.GPU = true, &series.Device{Source: source} })
		w.problem(mlattr.ProblemHeldIdle, "0", time.Hour)
		s := w.state()
		assert.True(t, s.Needs[0].Simulated)
		assert.Equal(t, recorded, s.Needs[0].Recorded)
		assert.Equal(t, recorded, s.GPUs[0].Recorded)
	}
}

// Of a service that fails and of which nothing names an owner, the page says how to
// name one.
func TestOwnersOfServices(t *testing.T) {
	missing := func(w *world) (fixes []string) {
		w.span(func(in *input.Span) {
			in.Source = &input.Source{Service: "agent"}
			in.Failed, in.Class, in.Asks, in.Fact.Requested = true, "E", true, "m"
		})
		w.failing(w.now)
		for _, m := range w.state().Missing {
			if m.Kind == "owner" {
				fixes = append(fixes, m.Fix)
			}
		}
		return fixes
	}
	w := newWorld(input.Settings{})
	assert.Equal(t, []string{`ml_view: {owners: {"agent": <who>}}`}, missing(w))
	assert.Empty(t, w.state().Needs[0].Owner)

	w = newWorld(input.Settings{Owners: map[string]string{"agent": "Ada"}})
	assert.Empty(t, missing(w))
	assert.Equal(t, "Ada", w.state().Needs[0].Owner)
}

// A workload that is joined to its run in the next reading is one, and not two.
func TestAWorkloadThatIsJoinedLater(t *testing.T) {
	w := newWorld(input.Settings{})
	w.point(series.Steps, "r", 1)
	for _, rank := range []string{"", "0", "0"} {
		w.gpu(series.GPUWorkload, "0", 60, func(p *series.Point) {
			p.Labels.Run, p.Labels.Rank, p.Time = "r", rank, w.now.UnixNano()
		})
		w.gpu(series.GPUWorkload, "0", 20, func(p *series.Point) {
			p.Labels.Run, p.Labels.Rank, p.Labels.Own[4], p.Time = "r", rank, "7", w.now.UnixNano()
		})
		w.gpu(series.GPUMemoryUsed, "0", 100, nil)
		w.point(series.RunGoodput, "r", 0.5)
		w.now = w.now.Add(2 * time.Second)
	}
	s := w.state()
	assert.Len(t, s.GPUs[0].Holders, 2)
	assert.InDelta(t, 20, *s.GPUs[0].MemoryUnattributed, 0)
	for _, curve := range w.run(t).Curves {
		if curve.Name == "gpu_memory" {
			for _, v := range curve.Values {
				assert.InDelta(t, 80, v, 0, fmt.Sprint(curve.Values))
			}
		}
	}
}

// A run or service with many changes does not push out those of others.
func TestChangesOfOneRun(t *testing.T) {
	w := newWorld(input.Settings{})
	w.change(api.Change{Kind: "version", Service: "other", From: "1", To: "2", Text: "version 2 (was 1)"})
	w.point(series.Problem, "quiet", float64(w.now.Unix()), mlattr.ProblemSlow)
	for i := range 3000 {
		w.change(api.Change{Kind: "attempt", Service: "trainer", RunID: "r", To: strconv.Itoa(i), Text: "attempt " + strconv.Itoa(i)})
		w.point(series.Problem, "r", float64(w.now.Unix()+int64(i)), mlattr.ProblemSlow)
	}
	changes := w.state().Changes
	assert.Len(t, changes, 51)
	texts := fmt.Sprint(changes)
	assert.Contains(t, texts, "version 2 (was 1)")
	assert.Contains(t, texts, "attempt 2999", "the newest")
	for _, r := range w.State().Runs {
		detail, _ := w.Run(r.Key)
		assert.NotEmpty(t, detail.Marks, r.ID)
	}
}

// States are named as the page names them.
func TestMarksOfStates(t *testing.T) {
	w := newWorld(input.Settings{})
	for _, state := range []string{"running", "stalled", "ended"} {
		for _, other := range []string{"running", "stalled", "ended"} {
			w.point(series.RunState, "r", 0, other)
		}
		w.point(series.RunState, "r", 1, state)
	}
	var texts []string
	for _, m := range w.run(t).Marks {
		texts = append(texts, m.Text)
	}
	assert.Equal(t, []string{"looks hung (was running)", "ended (was looks hung)"}, texts)
}
