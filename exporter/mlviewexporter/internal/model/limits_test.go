package model_test

import (
	"fmt"
	"runtime"
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

// points returns n points of a series, each with the labels that edit gives it.
func points(metric series.Series, n int, edit func(i int, l *series.Labels)) []series.Point {
	all := make([]series.Point, n)
	for i := range all {
		all[i] = series.Point{Series: metric, Update: series.Update{Value: 1}}
		all[i].Labels = series.Labels{Service: "trainer", Run: "r"}
		edit(i, &all[i].Labels)
	}
	return all
}

// dropped returns what the State says of limits.
func dropped(s *api.State) map[string]int64 {
	counts := make(map[string]int64)
	for _, m := range s.Missing {
		if m.Kind == "limit" {
			counts[m.Key] = m.Count
		}
	}
	return counts
}

// heap returns the memory in use, in MiB.
func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc >> 20)
}

// A run has few streams of its state, and no states that nobody has defined.
func TestStatesOfARunAreLimited(t *testing.T) {
	w := newWorld(input.Settings{})
	w.ApplyPoints(points(series.RunState, 3000, func(i int, l *series.Labels) { l.Own[0] = "state " + strconv.Itoa(i) }))
	assert.EqualValues(t, 3000, dropped(w.state())["limit series of one run"])
	running := points(series.RunState, 30_000, func(i int, l *series.Labels) { l.Own[0], l.Host = "running", strconv.Itoa(i) })
	w.ApplyPoints(running)
	w.ApplyPoints(running)
	s := w.state()
	assert.Equal(t, "running", s.Runs[0].State)
	assert.Greater(t, dropped(s)["limit series of one run"], int64(50_000))
}

// One run cannot take the room of all, and ended runs make room for others.
func TestARunCannotTakeAllRoom(t *testing.T) {
	w := newWorld(input.Settings{})
	w.point(series.RunState, "small", 1, "ended")
	for run := range 9 {
		id := strconv.Itoa(run)
		w.now = w.now.Add(2 * time.Second)
		w.ApplyPoints(points(series.RunState, 1, func(_ int, l *series.Labels) { l.Run, l.Own[0] = id, "ended" }))
		w.ApplyPoints(points(series.StepDuration, 37_600, func(i int, l *series.Labels) { l.Run, l.Own[0] = id, strconv.Itoa(i) }))
	}
	w.point(series.Steps, "new", 7)
	ids := make(map[string]bool)
	for _, r := range w.state().Runs {
		ids[r.ID] = true
	}
	assert.True(t, ids["new"])
	assert.True(t, ids["8"])
	assert.False(t, ids["0"], "it made room")
	assert.True(t, ids["small"], "it would have made little room")
}

// Rows and lists have limits, and say what is left out.
func TestListsOfRowsAreLimited(t *testing.T) {
	w := newWorld(input.Settings{})
	onset := float64(w.now.Unix())
	problems := points(series.Problem, 5000, func(i int, l *series.Labels) {
		l.Service, l.Run, l.Own[0] = "s"+strconv.Itoa(i), "", mlattr.ProblemFailing
	})
	for i := range problems {
		problems[i].Value = onset
	}
	w.ApplyPoints(problems)
	w.ApplyPoints(points(series.GPUWorkload, 5000, func(i int, l *series.Labels) { l.Host, l.GPU, l.Own[2] = "h", "g", strconv.Itoa(i) }))
	w.ApplyPoints(points(series.Requests, 5000, func(i int, l *series.Labels) { l.Run, l.Own[2] = "", strconv.Itoa(i) }))
	w.ApplyPoints(points(series.Errors, 5000, func(i int, l *series.Labels) { l.Run, l.Own[0], l.Own[1] = "", "execute_tool", strconv.Itoa(i) }))
	s := w.state()
	assert.Equal(t, 500, len(s.Needs)) //nolint:testifylint // the whole list is too much to print
	assert.Positive(t, s.Collector.Hidden["needs"])
	assert.Equal(t, 512, len(s.GPUs[0].Holders)) //nolint:testifylint // as above
	require.Len(t, s.Models, 1)
	assert.LessOrEqual(t, len(s.Models[0].Errors), 101)
	assert.LessOrEqual(t, len(s.Models[0].ToolErrors), 101)
	var errors float64
	for _, n := range s.Models[0].Errors {
		errors += n
	}
	assert.InDelta(t, 4000, errors, 0, "those beyond the classes count as other ones")
	for _, of := range []string{"problems", "series of one GPU", "series of one model", "series of one service"} {
		assert.Positive(t, dropped(s)["limit "+of], of)
	}
}

func TestRanksOfAllRunsAreLimited(t *testing.T) {
	w := newWorld(input.Settings{})
	for run := range 6 {
		w.ApplyPoints(points(series.LastStep, 15_000, func(i int, l *series.Labels) {
			l.Run, l.Rank, l.Host = strconv.Itoa(run), strconv.Itoa(i), "h"+strconv.Itoa(i)
		}))
	}
	ranks := 0
	for _, r := range w.state().Runs {
		ranks += r.Ranks
	}
	assert.Equal(t, 65_536, ranks)
	assert.Positive(t, dropped(w.State())["limit ranks"])
	w.now = w.now.Add(13 * time.Hour)
	w.point(series.LastStep, "new", 1)
	w.span(func(in *input.Span) { in.Source.Run, in.Source.Rank = "new", "0" })
	assert.Equal(t, 1, w.state().Runs[0].Ranks, "runs that are gone have no ranks")
}

// A run that makes room takes its streams from its service and its model.
func TestARunThatLeavesTakesItsStreams(t *testing.T) {
	w := newWorld(input.Settings{MaxRuns: 1})
	add := func(run string, value float64) {
		w.point(series.Errors, run, value, "execute_tool", "E")
		w.point(series.Requests, run, value, "chat", "m")
		w.point(series.RunState, run, 1, "ended")
	}
	add("a", 5)
	w.now = w.now.Add(2 * time.Second)
	add("b", 7)
	s := w.state()
	require.Len(t, s.Models, 1)
	assert.Equal(t, map[string]float64{"E": 7}, s.Models[0].ToolErrors)
	assert.InDelta(t, 7, *s.Models[0].Requests, 0)
}

// Many services with one run id and many workloads of it.
func TestARunIDOfManyServices(t *testing.T) {
	w := newWorld(input.Settings{})
	w.ApplyPoints(points(series.Steps, 900, func(i int, l *series.Labels) { l.Service = "s" + strconv.Itoa(i) }))
	w.span(func(in *input.Span) { in.Source.Service, in.Source.Host = "at h", "h" })
	for i := range 400 {
		w.gpu(series.GPUWorkload, strconv.Itoa(i), 1, func(p *series.Point) { p.Labels.Run = "r" })
	}
	holder := func() string { return w.state().GPUs[0].Holders[0].Service }
	assert.Equal(t, "at h", holder())
	w.now = w.now.Add(time.Minute)
	w.gpu(series.GPUWorkload, "0", 1, func(p *series.Point) { p.Labels.Run, p.Labels.Own[6] = "r", "later" })
	assert.Equal(t, "at h", holder())
	w.span(func(in *input.Span) { in.Source.Service, in.Source.Host = "later", "h" })
	w.gpu(series.GPUWorkload, "0", 1, func(p *series.Point) { p.Labels.Run, p.Labels.Own[6] = "r", "later" })
	assert.Equal(t, "later", holder(), "the run of its service is known now")
}

// Names of any length take little memory.
func TestLongNamesAreCut(t *testing.T) {
	w := newWorld(input.Settings{})
	before := heap()
	for i := range 60 {
		name := strings.Repeat("a", 1<<20) + strconv.Itoa(i)
		w.span(func(in *input.Span) {
			in.Fact.Phase, in.Name, in.Failed, in.Class, in.Source.Service = "", name, true, name, name
		})
	}
	assert.Equal(t, 1, len(w.state().Failures)) //nolint:testifylint // as above
	assert.Less(t, heap()-before, 20)
	runtime.KeepAlive(w)
}

// The size of held traces includes their texts.
func TestTheSizeOfTraces(t *testing.T) {
	w := newWorld(input.Settings{TraceBytes: 8 << 20})
	before := heap()
	for i := range 40_000 {
		text := strconv.Itoa(i) + strings.Repeat("\U0001F600", 120)
		w.span(func(in *input.Span) {
			in.Trace, in.ID = [16]byte{1, byte(i / 2000)}, [8]byte{1, byte(i), byte(i >> 8)}
			in.Name, in.Fact.Operation, in.Fact.Phase, in.Source.Run = "n"+text, "o"+text, "", ""
		})
	}
	assert.Less(t, heap()-before, 8+10, "the traces and what is remembered of texts")
	_, ok := w.Trace(fmt.Sprintf("01%02x", 39_999/2000) + strings.Repeat("0", 28))
	assert.True(t, ok, "the newest")
	runtime.KeepAlive(w)
}
