package model_test

import (
	"fmt"
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

func (w *world) run(t *testing.T) *api.RunDetail {
	runs := w.state().Runs
	require.Len(t, runs, 1)
	detail, ok := w.Run(runs[0].Key)
	require.True(t, ok)
	return detail
}

func TestAnUnknownKeyHasNoDetail(t *testing.T) {
	w := newWorld(input.Settings{})
	_, ok := w.Run("x")
	assert.False(t, ok)
	_, ok = w.Trace("x")
	assert.False(t, ok)
}

// Curves have each point of the last ten minutes and one a minute before.
func TestCurves(t *testing.T) {
	w := newWorld(input.Settings{Interval: 2 * time.Second, History: time.Hour})
	start := w.now
	for range 3 * 3600 / 5 {
		w.point(series.Loss, "r", w.now.Sub(start).Seconds(), "batch")
		w.now = w.now.Add(5 * time.Second)
	}
	detail := w.run(t)
	require.Len(t, detail.Curves, 1)
	curve := detail.Curves[0]
	assert.Equal(t, "loss", curve.Name)
	require.Len(t, curve.Values, len(curve.Times))
	// A point's value is its time; a minute's is the mean. All minutes have one, also those
	// of which the single points are known.
	minutes := len(curve.Times)
	assert.GreaterOrEqual(t, minutes, 60)
	assert.LessOrEqual(t, minutes, 60+60/4+2)
	for i, at := range curve.Times {
		if i > 0 {
			require.InDelta(t, 60, at-curve.Times[i-1], 0)
		}
		require.InDelta(t, at-float64(start.Unix())+27.5, curve.Values[i], 30)
	}
	assert.InDelta(t, float64(w.now.Unix()), curve.Times[minutes-1], 65)
	require.NotNil(t, curve.Fine)
	assert.InDelta(t, 119, len(curve.Fine.Times), 2)
	for i, at := range curve.Fine.Times {
		require.InDelta(t, at-float64(start.Unix()), curve.Fine.Values[i], 1)
	}
}

// TestCurvesOfAShortRun have each point, and nothing twice.
func TestCurvesOfAShortRun(t *testing.T) {
	w := newWorld(input.Settings{Interval: 2 * time.Second})
	for range 100 {
		w.point(series.Loss, "r", 1, "batch")
		w.now = w.now.Add(5 * time.Second)
	}
	curve := w.run(t).Curves[0]
	assert.InDelta(t, 100, len(curve.Times), 1)
	assert.Nil(t, curve.Fine)
}

// A number that is unknown at times leaves a gap.
func TestCurvesHaveGaps(t *testing.T) {
	w := newWorld(input.Settings{})
	for i := range 10 {
		w.point(series.RunGoodput, "r", 0.5)
		if i >= 3 && i < 6 {
			w.point(series.Loss, "r", float64(i), "batch")
		}
		if i == 6 {
			gone := series.Point{Series: series.Loss, Update: series.Update{Gone: true}}
			gone.Labels.Service, gone.Labels.Run, gone.Labels.Own[0] = "trainer", "r", "batch"
			w.ApplyPoints([]series.Point{gone})
		}
		w.now = w.now.Add(10 * time.Second)
	}
	for _, curve := range w.run(t).Curves {
		switch curve.Name {
		case "loss":
			assert.Equal(t, []float64{3, 4, 5}, curve.Values)
		case "goodput":
			assert.Len(t, curve.Values, 10)
		default:
			t.Error(curve.Name)
		}
	}
}

// trace adds spans of one trace: name, parent, start and end in seconds.
func (w *world) trace(spans ...[4]int) {
	for _, s := range spans {
		w.span(func(in *input.Span) {
			in.Trace, in.ID = [16]byte{7}, [8]byte{byte(s[0])}
			if s[1] > 0 {
				in.Parent = [8]byte{byte(s[1])}
			}
			in.Name = string(rune('a' + s[0] - 1))
			in.Start, in.End = w.now.Add(time.Duration(s[2])*time.Second).UnixNano(), w.now.Add(time.Duration(s[3])*time.Second).UnixNano()
		})
	}
}

func TestTheChainThatDecidedTheEnd(t *testing.T) {
	tests := map[string]struct {
		// spans are name, parent, start and end.
		spans [][4]int
		// order are the names in the order of the tree, in capitals where they are
		// critical.
		order string
		// depths are those of the spans in this order.
		depths []int
	}{
		"one after the other": {[][4]int{{1, 0, 0, 10}, {2, 1, 0, 4}, {3, 1, 4, 10}}, "ABC", []int{0, 1, 1}},
		"at the same time":    {[][4]int{{1, 0, 0, 10}, {2, 1, 0, 4}, {3, 1, 0, 9}}, "ACb", []int{0, 1, 1}},
		"nested": {
			[][4]int{{1, 0, 0, 10}, {2, 1, 0, 5}, {3, 2, 0, 5}, {4, 2, 1, 2}, {5, 1, 1, 3}, {6, 1, 5, 9}},
			"ABCdeF", []int{0, 1, 2, 2, 1, 1},
		},
		"goes on after the end":    {[][4]int{{1, 0, 0, 10}, {2, 1, 0, 20}, {3, 1, 0, 9}}, "AbC", []int{0, 1, 1}},
		"the parent comes last":    {[][4]int{{2, 1, 0, 4}, {3, 2, 1, 2}, {1, 0, 0, 10}}, "ABC", []int{0, 1, 2}},
		"the parent is not held":   {[][4]int{{2, 9, 0, 4}, {3, 9, 4, 12}}, "BC", []int{0, 0}},
		"each other's parent":      {[][4]int{{1, 2, 0, 4}, {2, 1, 0, 4}}, "AB", []int{0, 1}},
		"its own parent":           {[][4]int{{1, 1, 0, 4}}, "A", []int{0}},
		"two of one id":            {[][4]int{{1, 0, 0, 4}, {1, 0, 0, 4}}, "Aa", []int{0, 0}},
		"ends before it begins":    {[][4]int{{1, 0, 5, 0}}, "A", []int{0}},
		"a cycle beside the trace": {[][4]int{{1, 0, 0, 9}, {2, 3, 0, 4}, {3, 4, 0, 4}, {4, 2, 0, 4}}, "Abdc", []int{0, 0, 1, 2}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(input.Settings{})
			w.trace(tt.spans...)
			whole, ok := w.Trace("07000000000000000000000000000000")
			require.True(t, ok)
			var order strings.Builder
			var depths []int
			decided, roots := 0.0, 0
			for _, s := range whole.Spans {
				decided += s.CriticalTime
				if s.Depth == 0 {
					roots++
				}
				letter := s.Name
				if s.Critical {
					letter = string(s.Name[0] - 'a' + 'A')
				}
				order.WriteString(letter)
				depths = append(depths, s.Depth)
				assert.GreaterOrEqual(t, s.Offset, 0.0)
				assert.GreaterOrEqual(t, s.Duration, 0.0)
			}
			assert.Equal(t, tt.order, order.String())
			assert.Equal(t, tt.depths, depths)
			if roots == 1 {
				assert.InDelta(t, whole.Duration, decided, 1e-9)
			}
		})
	}
}

// A busy service does not displace the traces of others, nor the good ones those
// that failed.
func TestTracesOfAllServicesAreHeld(t *testing.T) {
	w := newWorld(input.Settings{MaxTraces: 10})
	add := func(service string, i int, failed bool) {
		w.span(func(in *input.Span) {
			in.Source = &input.Source{Service: service, Run: service}
			in.Trace, in.Failed, in.Class = [16]byte{byte(i), byte(i >> 8), service[0]}, failed, "E"
		})
	}
	add("quiet", 1, false)
	add("busy", 2, true)
	for i := range 500 {
		add("busy", 10+i, false)
	}
	held := 0
	for _, r := range w.state().Runs {
		detail, _ := w.Run(r.Key)
		held += len(detail.Traces)
		if r.Service == "quiet" {
			assert.Len(t, detail.Traces, 1)
		}
	}
	assert.Equal(t, 10, held)
	_, ok := w.Trace("020062" + "00000000000000000000000000")
	assert.True(t, ok, "the one that failed")
}

// Of more traces than can be opened before they leave some are held: these whole, all that
// failed or have a slow call among them. The calls of others are not listed.
func TestOfManyTracesSomeAreHeld(t *testing.T) {
	w := newWorld(input.Settings{MaxTraces: 20})
	source := &input.Source{Service: "busy", Run: "r"}
	span := func(trace, id int) input.Span {
		in := input.Span{
			Trace: [16]byte{byte(trace), byte(trace >> 8), 1, 15: 1}, ID: [8]byte{byte(id)}, Name: "call", Start: w.now.UnixNano(), End: w.now.UnixNano() + 1e8, Source: source, ML: true,
			Call: input.Call{Part: input.WholeCall, Duration: 0.1},
		}
		in.Trace[8], in.Trace[9] = byte(trace), byte(trace>>8) // as random ones differ
		return in
	}
	const traces, failed, slow = 1000, 700, 701
	opened := make(map[int]int)
	for second := range 10 {
		var request []input.Span
		for i := range traces {
			inner, outer := span(second*traces+i, 1), span(second*traces+i, 2)
			switch i {
			case failed:
				outer.Failed, outer.Class = true, "E"
			case slow:
				outer.Duration = 2
			}
			request = append(request, inner, outer)
		}
		detailed := func(i int) input.Details { opened[second]++; return input.Details{}.Attribute("k", fmt.Append(nil, i)) }
		w.ApplySpans(request[:traces], detailed)
		w.now = w.now.Add(time.Second)
		w.ApplySpans(request[traces:], detailed)
	}
	assert.Less(t, opened[9], traces/10, "attributes of spans that are not held are not read")
	for _, number := range []int{failed, slow} {
		one := span(9*traces+number, 0)
		held, ok := w.Trace(api.HexID(one.Trace[:]))
		require.True(t, ok, number)
		assert.Len(t, held.Spans, 2)
		assert.Zero(t, held.Dropped)
	}
	seconds := make(map[time.Time]bool)
	for _, call := range w.state().Calls {
		if held, ok := w.Trace(call.TraceID); ok {
			assert.Equal(t, 2, len(held.Spans)+held.Dropped, "no trace seems whole that is not")
			seconds[call.Time] = true
		}
	}
	assert.Greater(t, len(seconds), 4, "they are of the last seconds")

	w.now = w.now.Add(time.Minute)
	for i := range 40 {
		one := span(20*traces+i, 1)
		w.ApplySpans([]input.Span{one}, nil)
		w.now = w.now.Add(time.Second)
		_, ok := w.Trace(api.HexID(one.Trace[:]))
		assert.True(t, ok, "at a rate that can be read each is held")
	}
}

func TestRanks(t *testing.T) {
	w := newWorld(input.Settings{})
	for _, rank := range []string{"10", "2", "0", "x"} {
		w.span(func(in *input.Span) { in.Source.Rank, in.Source.Host = rank, "h" })
	}
	detail := w.run(t)
	var ranks []string
	for _, r := range detail.Ranks {
		ranks = append(ranks, r.Rank)
		assert.Equal(t, "forward", r.LastSpan)
	}
	assert.Equal(t, []string{"0", "2", "10", "x"}, ranks)
	assert.Equal(t, []string{"1", "3", "4", "5", "6", "7", "8", "9"}, detail.MissingRanks)
	w.span(func(in *input.Span) { in.Source.Rank, in.Source.Host, in.Source.SomeRanks = "10", "h", true })
	assert.Empty(t, w.run(t).MissingRanks, "its program sends from some ranks only")
}

// The rate of a run's tokens is what its client reports, and a rate of all ranks
// counts once; else it rests on the tokens of a step.
func TestTokenRateOfARun(t *testing.T) {
	w := newWorld(input.Settings{})
	w.point(series.RunTokenRate, "r", 900, "steps")
	rate := func() (rate float64, basis string) {
		row := w.state().Runs[0]
		return *row.TokenRate, row.TokenBasis
	}
	is, basis := rate()
	assert.InDelta(t, 900, is, 0)
	assert.Equal(t, "steps", basis)
	for rank, value := range map[string]float64{"0": 1000, "7": 1001} {
		p := series.Point{Series: series.ClientThroughput, Update: series.Update{Value: value, Time: w.now.UnixNano()}}
		p.Labels.Service, p.Labels.Run, p.Labels.Rank = "trainer", "r", rank
		p.Labels.Own = [series.MaxOwn]string{0: "input", 2: "reported", 3: "tokens_per_sec", 4: "global"}
		w.ApplyPoints([]series.Point{p})
	}
	is, basis = rate()
	assert.InDelta(t, 1001, is, 0)
	assert.Equal(t, "reported", basis)
}

// The numbers of steps end with the last step, those of GPUs go on. The onset of the
// hang is one mark.
func TestCurvesOfAHang(t *testing.T) {
	w := newWorld(input.Settings{})
	report := func(state string, lastStep time.Time) {
		for _, other := range []string{"running", "stalled"} {
			w.point(series.RunState, "r", 0, other)
		}
		w.point(series.RunState, "r", 1, state)
		w.point(series.Loss, "r", 1, "batch")
		w.point(series.RunGPUUtilization, "r", 1)
		w.point(series.LastStep, "r", float64(lastStep.Unix()))
		w.now = w.now.Add(4 * time.Second)
	}
	for range 3 {
		report("running", w.now)
	}
	last := w.now
	for range 3 {
		report("running", last)
	}
	w.point(series.Problem, "r", float64(last.Unix()), mlattr.ProblemLooksHung)
	report("stalled", last)
	detail := w.run(t)
	curves := make(map[string]api.Curve)
	for _, c := range detail.Curves {
		curves[c.Name] = c
	}
	require.NotEmpty(t, curves["loss"].Times)
	assert.LessOrEqual(t, curves["loss"].Times[len(curves["loss"].Times)-1], float64(last.Unix()))
	use := curves["gpu_utilization"].Times
	assert.Greater(t, use[len(use)-1], float64(last.Unix()))
	require.Len(t, detail.Marks, 1)
	assert.Equal(t, api.Mark{Time: last, Kind: mlattr.ProblemLooksHung, Text: "looks hung"}, detail.Marks[0])
	report("running", w.now)
	assert.Len(t, w.run(t).Marks, 2, "it goes on")
}

// A rate of the first seconds, when senders have held back data, is on no curve.
func TestCurvesOfRatesBeginLater(t *testing.T) {
	w := newWorld(input.Settings{Interval: 2 * time.Second})
	began := w.now
	for i := range 40 {
		w.now = began.Add(time.Duration(2*i) * time.Second)
		tokens := 1000 + 200*float64(i)
		if i == 0 {
			tokens = 0 // 1000 are held back
		}
		w.point(series.Tokens, "r", tokens)
	}
	w.now = w.now.Add(2 * time.Second)
	for _, c := range w.run(t).Curves {
		if c.Name != "token_rate" {
			continue
		}
		assert.GreaterOrEqual(t, c.Times[0]-float64(began.Unix()), 30.0)
		assert.Less(t, c.Values[0], 140.0, "100 a second")
		return
	}
	t.Fatal("there is no curve")
}

// The step of a rank counts what the step of its run counts, and not its batches.
func TestStepsOfRanks(t *testing.T) {
	w := newWorld(input.Settings{})
	w.point(series.Batches, "r", 9)
	w.span(func(*input.Span) {})
	require.Len(t, w.run(t).Ranks, 1)
	assert.InDelta(t, 9, *w.run(t).Ranks[0].Steps, 0)
	w.point(series.Steps, "r", 3)
	w.now = w.now.Add(time.Minute)
	assert.InDelta(t, 3, *w.run(t).Ranks[0].Steps, 0)
	assert.InDelta(t, 3, *w.run(t).Run.Steps, 0)
}

// A run that has failed stays so when its series have ended: it neither runs nor takes
// time, and its last step is its last.
func TestARunThatHasFailed(t *testing.T) {
	w := newWorld(input.Settings{})
	w.point(series.LastStep, "r", float64(w.now.Unix()))
	w.point(series.RunState, "r", 1, "failed")
	for range 40 {
		w.state()
		w.now = w.now.Add(time.Minute)
	}
	run := w.run(t)
	assert.Equal(t, "failed", w.state().Runs[0].State)
	assert.Empty(t, run.Spent.States)
}

// A flood of failures leaves each held trace for some seconds, too, and the row of a failure
// has one that can be opened.
func TestOfManyFailedTracesSomeAreHeld(t *testing.T) {
	w := newWorld(input.Settings{MaxTraces: 20})
	source := &input.Source{Service: "busy"}
	for second := range 10 {
		var request []input.Span
		for i := range 1000 {
			in := input.Span{
				Trace: [16]byte{byte(i), byte(i >> 8), byte(second), 15: 1}, ID: [8]byte{1}, Name: "call", Start: w.now.UnixNano(), End: w.now.UnixNano() + 1e8,
				Source: source, ML: true, Failure: input.Failure{Failed: true, Class: "E"},
			}
			in.Trace[8], in.Trace[9] = in.Trace[0], in.Trace[1]
			request = append(request, in)
		}
		details := 0
		w.ApplySpans(request, func(int) input.Details { details++; return nil })
		assert.Less(t, details, 30, second)
		failure := w.state().Failures[0]
		assert.Equal(t, int64(1000*(second+1)), failure.Count)
		_, ok := w.Trace(failure.TraceID)
		assert.True(t, ok, second)
		w.now = w.now.Add(time.Second)
	}
}
