package model_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/model"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/testing/pagetest"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a store with a clock that the test sets.
type world struct {
	*model.Store
	now time.Time
}

func newWorld(settings input.Settings) *world {
	w := &world{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	settings.Now = func() time.Time { return w.now }
	w.Store = pagetest.NewStore(settings)
	return w
}

// point adds a value of a run's series.
func (w *world) point(metric series.Series, run string, value float64, own ...string) {
	p := series.Point{Series: metric, Update: series.Update{Value: value, Time: w.now.UnixNano()}}
	p.Labels.Service, p.Labels.Run = "trainer", run
	copy(p.Labels.Own[:], own)
	w.ApplyPoints([]series.Point{p})
}

// state returns the state after an interval.
func (w *world) state() *api.State {
	w.now = w.now.Add(2 * time.Second)
	return w.State()
}

func (w *world) span(edit func(*input.Span)) {
	in := input.Span{
		Trace: [16]byte{1}, ID: [8]byte{1}, Name: "forward", Start: w.now.UnixNano() - 1e9, End: w.now.UnixNano(),
		Source: &input.Source{Service: "trainer", Run: "r"}, ML: true,
		Call:    input.Call{Duration: 1, Queue: math.NaN(), Serialize: math.NaN()},
		Request: input.Request{FirstToken: math.NaN(), Decode: math.NaN(), Cached: math.NaN()},
	}
	in.Fact.Phase = "forward"
	edit(&in)
	w.ApplySpans([]input.Span{in}, nil)
}

func TestAStateIsKeptForAnInterval(t *testing.T) {
	w := newWorld(input.Settings{Interval: 2 * time.Second})
	first := w.State()
	w.point(series.Steps, "r", 1)
	w.now = w.now.Add(time.Second)
	assert.Same(t, first, w.State())
	w.now = w.now.Add(time.Second - 10*time.Millisecond)
	second := w.State()
	assert.NotSame(t, first, second, "a tick of the interval that comes early")
	assert.Empty(t, first.Runs)
	assert.Len(t, second.Runs, 1)
	w.now = w.now.Add(-time.Hour)
	assert.Len(t, w.State().Runs, 1, "the clock went back")
}

// An empty State has lists and no nulls, as the schema says.
func TestAnEmptyStateHasLists(t *testing.T) {
	s := newWorld(input.Settings{}).State()
	for _, isNil := range []bool{
		s.Needs == nil, s.Runs == nil, s.GPUs == nil, s.Failures == nil, s.Calls == nil, s.Pools == nil,
		s.Models == nil, s.Changes == nil, s.Missing == nil, s.Collector.GPUs == nil,
	} {
		assert.False(t, isNil)
	}
}

func TestEndedRunsMakeRoomFirst(t *testing.T) {
	w := newWorld(input.Settings{MaxRuns: 3})
	state := func(run, is string) { w.point(series.RunState, run, 1, is) }
	state("hung", "stalled")
	state("silent", "silent")
	w.now = w.now.Add(time.Second)
	state("ended", "ended")
	ids := func() (ids []string) {
		for _, r := range w.state().Runs {
			ids = append(ids, r.ID)
		}
		return ids
	}
	state("a", "running")
	assert.ElementsMatch(t, []string{"hung", "silent", "a"}, ids())
	state("b", "running")
	assert.ElementsMatch(t, []string{"hung", "a", "b"}, ids())
	state("c", "running")
	assert.ElementsMatch(t, []string{"hung", "a", "b"}, ids(), "none can go")
	assert.Equal(t, map[string]int{"runs": 3}, w.State().Collector.Hidden)
	missing := w.State().Missing
	require.NotEmpty(t, missing)
	assert.Contains(t, fmt.Sprint(missing), "max_runs")
}

// A run that ended makes room before those that were silent when the order was made.
func TestARunThatHasEndedSinceMakesRoomFirst(t *testing.T) {
	w := newWorld(input.Settings{MaxRuns: 40})
	for i := range 39 {
		w.point(series.RunState, "silent"+strconv.Itoa(i), 1, "silent")
		w.now = w.now.Add(10 * time.Millisecond)
	}
	w.point(series.RunState, "x", 1, "running")
	w.point(series.RunState, "first", 1, "running")
	w.now = w.now.Add(2 * time.Second)
	w.point(series.RunState, "x", 0, "running")
	w.point(series.RunState, "x", 1, "ended")
	w.point(series.RunState, "second", 1, "running")
	for _, r := range w.state().Runs {
		assert.NotEqual(t, "x", r.ID)
	}
}

// Problems of runs beyond the limit are shown all the same.
func TestAProblemNeedsNoRow(t *testing.T) {
	w := newWorld(input.Settings{MaxRuns: 1})
	w.point(series.RunState, "a", 1, "stalled")
	onset := float64(w.now.Add(-time.Hour).Unix())
	w.point(series.Problem, "b", onset, mlattr.ProblemLooksHung)
	w.point(series.RunState, "b", 1, "stalled")
	needs := w.state().Needs
	require.Len(t, needs, 1)
	assert.Equal(t, "b", needs[0].RunID)
	assert.Empty(t, needs[0].Run)
}

func TestLimits(t *testing.T) {
	w := newWorld(input.Settings{MaxRuns: 10, MaxGPUs: 10, MaxTraces: 5, TraceBytes: 1 << 20})
	long := strings.Repeat("ä", 10_000)
	for i := range 800 {
		name := strconv.Itoa(i)
		w.span(func(in *input.Span) {
			in.Source.Run, in.Source.Host, in.Source.Rank, in.Source.Version = name, "h"+name, name, name
			in.Trace, in.ID = [16]byte{byte(i), byte(i >> 8), 1}, [8]byte{byte(i), 1}
			in.Failed, in.Class, in.Message, in.Name = true, "E"+name, long, long
			in.Part, in.Fact.Function = input.WholeCall, "f"+name
			in.Asks, in.Fact.Requested = true, "m"+name
		})
		for s := series.Steps; s < series.Count; s++ {
			p := series.Point{Series: s, Update: series.Update{Value: float64(i)}}
			p.Labels = series.Labels{Service: "s" + name, Run: name, Rank: name, Host: name, GPU: name}
			for j := range p.Labels.Own {
				p.Labels.Own[j] = name
			}
			w.ApplyPoints([]series.Point{p})
		}
	}
	for i := range 3000 {
		w.span(func(in *input.Span) { in.Trace, in.ID = [16]byte{9}, [8]byte{byte(i), byte(i >> 8), 1} })
	}
	s := w.state()
	assert.Len(t, s.Runs, 10)
	assert.Len(t, s.GPUs, 10)
	assert.LessOrEqual(t, len(s.Calls), 200)
	assert.LessOrEqual(t, len(s.Failures), 500)
	assert.LessOrEqual(t, len(s.Models), 500)
	assert.LessOrEqual(t, len(s.Pools), 500)
	assert.LessOrEqual(t, len(s.Changes), 500)
	assert.Len(t, []rune(s.Failures[0].Message), 200)
	for _, name := range []string{"runs", "gpus", "models", "pools", "failures"} {
		assert.Positive(t, s.Collector.Hidden[name], name)
	}
	whole, ok := w.Trace("09" + strings.Repeat("0", 30))
	require.True(t, ok)
	assert.LessOrEqual(t, len(whole.Spans), 2000)
	assert.Equal(t, 3000, len(whole.Spans)+whole.Dropped)
	for _, one := range s.Failures {
		assert.LessOrEqual(t, len([]rune(one.Operation)), 128)
	}
}

func TestContent(t *testing.T) {
	for content, want := range map[bool]int{false: 200, true: 512} {
		w := newWorld(input.Settings{Content: content})
		w.span(func(in *input.Span) {
			in.Failed, in.Class, in.Message = true, "E", strings.Repeat("x", 10_000)
			in.Part = input.WholeCall
		})
		s := w.state()
		assert.Len(t, s.Failures[0].Message, want)
		assert.Len(t, s.Calls[0].Message, want)
	}
}

func TestRates(t *testing.T) {
	tests := map[string]struct {
		// values are those of a counter every 10 seconds, -1 for none.
		values []float64
		want   float64
	}{
		"one point":            {[]float64{5}, -1},
		"two points":           {[]float64{5, 25}, 2},
		"a minute":             {[]float64{0, 0, 0, 60, 60, 60, 60, 60, 60}, 1},
		"a reset":              {[]float64{100, 200, 10, 30}, 2},
		"no change":            {[]float64{7, 7, 7}, 0},
		"only one after reset": {[]float64{100, 200, 10}, -1},
		"the points ended":     {[]float64{0, 10, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1}, -1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(input.Settings{})
			for i, v := range tt.values {
				if i > 0 {
					w.now = w.now.Add(10 * time.Second)
				}
				if v >= 0 {
					w.point(series.Steps, "r", v)
				}
			}
			rate := w.state().Runs[0].StepRate
			if tt.want < 0 {
				assert.Nil(t, rate)
				return
			}
			require.NotNil(t, rate)
			assert.InDelta(t, tt.want, *rate, 1e-9)
		})
	}
}

func TestOrderOfNeeds(t *testing.T) {
	w := newWorld(input.Settings{})
	onset := func(kind, run string, ago time.Duration) {
		w.point(series.RunGPUs, run, 4)
		w.point(series.Problem, run, float64(w.now.Add(-ago).Unix()), kind)
		number := 4.0
		w.record(input.Record{ID: run, Kind: kind, Subject: input.Subject{Service: "trainer", Run: run}, Onset: w.now.Add(-ago), GPUs: &number})
	}
	onset(mlattr.ProblemHeldIdle, "idle", time.Hour)
	onset(mlattr.ProblemSlow, "slow", time.Hour)
	onset(mlattr.ProblemFailing, "failing", time.Hour)
	onset(mlattr.ProblemRestartLoop, "loop", time.Hour)
	onset(mlattr.ProblemGPUFailed, "gpu", time.Hour)
	onset(mlattr.ProblemLooksHung, "hung later", time.Minute)
	onset(mlattr.ProblemLooksHung, "hung", time.Hour)
	onset("something else", "x", time.Hour)
	var order []string
	for _, n := range w.state().Needs {
		order = append(order, n.RunID)
	}
	assert.Equal(t, []string{"hung", "hung later", "gpu", "failing", "slow", "loop", "idle"}, order)
	needs := w.State().Needs
	assert.InDelta(t, 4, *needs[0].GPUHours, 0.01)
	reported := w.now.Add(-2 * time.Second)
	w.now = w.now.Add(10 * time.Minute)
	needs = w.State().Needs
	require.Len(t, needs, 7, "nobody says that they are over")
	for _, n := range needs {
		require.NotNil(t, n.NoEvidenceSince)
		assert.Equal(t, reported, *n.NoEvidenceSince)
	}
	assert.InDelta(t, 4, *needs[0].GPUHours, 0.01, "of what is known")
	w.now = w.now.Add(time.Hour)
	order = nil
	for _, n := range w.State().Needs {
		order = append(order, n.RunID)
	}
	assert.Equal(t, []string{"hung", "hung later", "gpu"}, order, "what lasts for a day")
	w.now = w.now.Add(23 * time.Hour)
	assert.Empty(t, w.State().Needs)
}

func TestFailuresOfSpansAndOfTheDirectory(t *testing.T) {
	w := newWorld(input.Settings{})
	fail := func(id, parent byte, fingerprint string) {
		w.span(func(in *input.Span) {
			in.ID, in.Parent = [8]byte{id}, [8]byte{parent}
			in.Failed, in.Class, in.Fingerprint = true, "E", fingerprint
		})
	}
	fail(3, 2, "")
	fail(2, 1, "")
	fail(1, 0, "")
	s := w.state()
	require.Len(t, s.Failures, 1)
	assert.EqualValues(t, 1, s.Failures[0].Count, "the spans above report the same failure")

	fail(9, 0, "abc")
	seen := w.now.Add(-time.Hour)
	w.SetFailures([]api.Failure{
		{Key: "abc", Kind: "python_call", Class: "E", Count: 7, Command: "python3 repro.py", Replays: true, FirstSeen: &seen, LastSeen: &seen},
		{Key: "old", Class: "Old", Count: 1, LastSeen: &seen, RunID: "r", Service: "trainer"},
	})
	s = w.state()
	require.Len(t, s.Failures, 3)
	for _, f := range s.Failures {
		switch f.Key {
		case "abc":
			assert.EqualValues(t, 7, f.Count)
			assert.Equal(t, "python3 repro.py", f.Command)
			assert.Equal(t, s.Runs[0].Key, f.Run)
			assert.Equal(t, seen, *f.FirstSeen)
			assert.True(t, f.LastSeen.After(seen))
		case "old":
			assert.Equal(t, s.Runs[0].Key, f.Run)
		}
	}
	w.SetFailures(nil)
	assert.Len(t, w.state().Failures, 2)
}

func TestACallThatSeveralSpansRecordIsOne(t *testing.T) {
	w := newWorld(input.Settings{})
	call := func(id, parent byte, part input.CallPart, duration float64, library string) {
		w.span(func(in *input.Span) {
			in.ID, in.Parent, in.Part, in.Duration, in.Fact.Library, in.Fact.Function = [8]byte{id}, [8]byte{parent}, part, duration, library, "f"
		})
	}
	call(2, 1, input.WholeCall, 1, "")
	call(1, 0, input.WholeCall, 2, "")
	require.Len(t, w.state().Calls, 1)
	assert.InDelta(t, 2, w.State().Calls[0].Duration, 0, "the outermost")
	call(3, 1, input.RecordedCall, 1.5, "np")
	require.Len(t, w.state().Calls, 1)
	assert.InDelta(t, 1.5, w.State().Calls[0].Duration, 0, "the client's own event")
	assert.Equal(t, "np", w.State().Calls[0].Library)
	assert.True(t, w.State().Calls[0].Slow)
}

func TestExportAndImport(t *testing.T) {
	w := newWorld(input.Settings{})
	w.span(func(in *input.Span) { in.Source.Version, in.Source.JobName = "1", "job" })
	w.span(func(in *input.Span) {
		in.Source.Version, in.Failed, in.Class, in.Fingerprint = "2", true, "E", "abc"
	})
	w.change(api.Change{Kind: "version", Service: "trainer", RunID: "r", From: "1", To: "2", Text: "version 2 (was 1)"})
	w.point(series.RunState, "r", 1, "running")
	w.point(series.RunState, "r", 0, "running")
	w.point(series.RunState, "r", 1, "ended")
	before := w.state()
	require.NotEmpty(t, before.Changes)
	data, err := w.Export()
	require.NoError(t, err)

	same, err := w.Export()
	require.NoError(t, err)
	assert.Equal(t, data, same)
	again := newWorld(input.Settings{})
	again.now = w.now.Add(time.Hour)
	require.NoError(t, again.Import(data))
	after := again.state()
	assert.Equal(t, before.Changes, after.Changes)
	assert.Equal(t, before.Failures, after.Failures)
	require.Len(t, after.Runs, 1)
	assert.Equal(t, "ended", after.Runs[0].State)
	assert.Equal(t, "job", after.Runs[0].Job)
	assert.Equal(t, before.Runs[0].FirstSeen, after.Runs[0].FirstSeen)
	detail, ok := again.Run(after.Runs[0].Key)
	require.True(t, ok)
	assert.Contains(t, fmt.Sprint(detail.Marks), "ended (was running)")

	late := newWorld(input.Settings{})
	late.now = w.now.Add(8 * 24 * time.Hour)
	require.NoError(t, late.Import(data))
	assert.Empty(t, late.state().Changes)
	assert.Empty(t, late.State().Failures)

	for _, bad := range []string{"", "{", "[]", `{"version":2}`, strings.Repeat(" ", 17<<20)} {
		require.Error(t, late.Import([]byte(bad)))
	}
}

func TestMissingOfOthers(t *testing.T) {
	reported := []api.Missing{{Key: "k", Kind: "limit", What: "Artifacts"}}
	w := newWorld(input.Settings{Reported: func() []api.Missing { return reported }})
	assert.Contains(t, fmt.Sprint(w.State().Missing), "Artifacts")
	reported = nil
	assert.NotContains(t, fmt.Sprint(w.state().Missing), "Artifacts")
}

// The series of a rank's earlier host stay for a while and do not move it back.
func TestARankStaysOnItsNewHost(t *testing.T) {
	w := newWorld(input.Settings{})
	step := func(host string, at float64) {
		p := series.Point{Series: series.LastStep, Update: series.Update{Value: at}}
		p.Labels.Service, p.Labels.Run, p.Labels.Rank, p.Labels.Host = "trainer", "r", "0", host
		w.ApplyPoints([]series.Point{p})
	}
	step("h1", 100)
	step("h2", 200)
	step("h1", 100)
	assert.Equal(t, []string{"h2"}, w.state().Runs[0].Hosts)
}

// A run whose series come before its service is one run.
func TestARunWithoutAService(t *testing.T) {
	w := newWorld(input.Settings{})
	p := series.Point{Series: series.RunGPUs, Update: series.Update{Value: 4}}
	p.Labels.Run = "r"
	w.ApplyPoints([]series.Point{p})
	assert.Len(t, w.state().Runs, 1)
	w.point(series.Steps, "r", 1)
	w.ApplyPoints([]series.Point{p})
	runs := w.state().Runs
	require.Len(t, runs, 1)
	assert.Equal(t, "trainer", runs[0].Service)
	assert.InDelta(t, 4, *runs[0].GPUs, 0)
}
