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

// change is a record of a change, now unless it has a time.
func (w *world) change(c api.Change) {
	if c.Time.IsZero() {
		c.Time = w.now
	}
	w.ApplyEvents([]input.Event{{Change: &c}})
}

// record is a record of a problem.
func (w *world) record(r input.Record) {
	if r.Onset.IsZero() {
		r.Onset = w.now
	}
	w.ApplyEvents([]input.Event{{Problem: &r}})
}

// Changes are shown once each, with their run, the newest first, and on the curves
// of what they may matter to.
func TestChanges(t *testing.T) {
	w := newWorld(input.Settings{})
	w.point(series.RunState, "r", 1, "running")
	w.span(func(in *input.Span) { in.Source.Host, in.Source.Rank = "h1", "0" })
	w.change(api.Change{Kind: "version", Service: "trainer", RunID: "r", From: "1", To: "2", Text: "version 2 (was 1)"})
	w.change(api.Change{Kind: "version", Service: "trainer", RunID: "r", From: "1", To: "2", Text: "version 2 (was 1)"})
	w.now = w.now.Add(time.Minute)
	w.change(api.Change{Kind: "commit", Service: "trainer", From: "a", To: "b", Text: "commit b (was a)"})
	w.change(api.Change{Kind: "driver", Host: "h1", From: "1", To: "2", Text: "driver 2 (was 1)"})
	w.change(api.Change{Kind: "driver", Host: "h2", From: "1", To: "2"})
	w.change(api.Change{Kind: "version", Service: "trainer", RunID: "other", To: "3", Text: "version 3"})
	changes := w.state().Changes
	require.Len(t, changes, 5)
	assert.Equal(t, "version 2 (was 1)", changes[4].Text)
	assert.Equal(t, w.State().Runs[0].Key, changes[4].Run)
	assert.Contains(t, fmt.Sprint(changes), "driver 2", "a record without a body has its kind")
	var marks []string
	for _, m := range w.run(t).Marks {
		if m.Kind == "change" {
			marks = append(marks, m.Text)
		}
	}
	assert.Equal(t, []string{"version 2 (was 1)", "commit b (was a)", "driver 2 (was 1)"}, marks)
}

// A problem of a kind without words of the page says what its record says, and what
// was before it.
func TestARecordOfAProblem(t *testing.T) {
	w := newWorld(input.Settings{})
	onset, changed := float64(w.now.Unix()), w.now.UTC().Format(time.RFC3339)
	w.point(series.RunState, "r", 1, "running")
	w.change(api.Change{Kind: "version", Service: "trainer", RunID: "r", From: "1", To: "2", Text: "version 2 (was 1)"})
	w.point(series.Problem, "r", onset, mlattr.ProblemNonfinite)
	need := func() api.Need {
		t.Helper()
		needs := w.state().Needs
		require.Len(t, needs, 1)
		return needs[0]
	}
	assert.Equal(t, mlattr.ProblemNonfinite, need().Kind, "it is shown before its record arrives")
	assert.Empty(t, need().Evidence)

	value := 3.0
	r := input.Record{
		ID: "1", Kind: mlattr.ProblemNonfinite, Subject: input.Subject{Service: "trainer", Run: "r", Host: "h1"}, Value: &value, Unit: "{value}",
		Evidence: []string{"loss NaN at step 7"}, Excluded: []string{"validation"}, Advice: input.Advice{Next: "Look at the data."},
		Before: []string{changed + " version 2 (was 1)", "2026-01-01T00:00:00Z commit b (was a)", "nonsense"},
	}
	w.record(r)
	n := need()
	assert.Equal(t, []string{"loss NaN at step 7", "without validation"}, n.Evidence)
	assert.Equal(t, []any{3.0, "{value}", "Look at the data.", ""}, []any{*n.Value, n.Unit, n.Next, n.Command})
	require.Len(t, n.Before, 2)
	assert.Equal(t, w.State().Changes[0].Key, n.Before[0].Key)
	assert.Equal(t, "commit b (was a)", n.Before[1].Text)

	r.Ended = w.now
	w.record(r)
	assert.Empty(t, need().Evidence, "the next one has another record")
}

// A record is found by what has the problem, however long its names are.
func TestARecordOfALongNamespace(t *testing.T) {
	w := newWorld(input.Settings{})
	of := input.Subject{Namespace: strings.Repeat("n", 200), Service: "trainer", Run: "r"}
	p := series.Point{Series: series.Problem, Update: series.Update{Value: float64(w.now.Unix()), Time: w.now.UnixNano()}}
	p.Labels.Namespace, p.Labels.Service, p.Labels.Run, p.Labels.Own[0] = of.Namespace, of.Service, of.Run, mlattr.ProblemNonfinite
	w.ApplyPoints([]series.Point{p})
	w.record(input.Record{ID: "1", Kind: mlattr.ProblemNonfinite, Subject: of, Evidence: []string{"loss NaN at step 7"}})
	require.Len(t, w.state().Needs, 1)
	assert.Equal(t, []string{"loss NaN at step 7"}, w.State().Needs[0].Evidence)
}

// What follows from another problem comes after it, and names it.
func TestAProblemThatFollows(t *testing.T) {
	w := newWorld(input.Settings{})
	onset := float64(w.now.Unix())
	for _, kind := range []string{mlattr.ProblemLooksHung, mlattr.ProblemRankMissing, mlattr.ProblemRestartLoop} {
		w.point(series.Problem, "r", onset, kind)
	}
	w.record(input.Record{ID: "1", Kind: mlattr.ProblemLooksHung, Subject: input.Subject{Service: "trainer", Run: "r"}, Cause: "2"})
	w.record(input.Record{ID: "2", Kind: mlattr.ProblemRankMissing, Subject: input.Subject{Service: "trainer", Run: "r"}})
	kinds := func() (kinds []string) {
		for _, n := range w.state().Needs {
			kinds = append(kinds, n.Kind)
		}
		return kinds
	}
	assert.Equal(t, []string{mlattr.ProblemRankMissing, mlattr.ProblemLooksHung, mlattr.ProblemRestartLoop}, kinds())
	assert.Equal(t, w.State().Needs[0].Key, w.State().Needs[1].Cause)
	assert.Empty(t, w.State().Needs[0].Cause)

	w.record(input.Record{ID: "2", Kind: mlattr.ProblemRankMissing, Subject: input.Subject{Service: "trainer", Run: "r"}, Cause: "1"})
	assert.Len(t, kinds(), 3, "records that name each other hide nothing")
	w.record(input.Record{ID: "2", Kind: mlattr.ProblemRankMissing, Subject: input.Subject{Service: "trainer", Run: "r"}, Cause: "2"})
	assert.Len(t, kinds(), 3)
}

// A ticket that a page follows from comes where the page would.
func TestAPageThatFollowsFromATicket(t *testing.T) {
	w := newWorld(input.Settings{})
	onset := float64(w.now.Unix())
	for _, kind := range []string{mlattr.ProblemSlow, mlattr.ProblemToolErrors, mlattr.ProblemFailing} {
		w.point(series.Problem, "r", onset, kind)
	}
	w.record(input.Record{ID: "1", Kind: mlattr.ProblemFailing, Subject: input.Subject{Service: "trainer", Run: "r"}, Cause: "2"})
	w.record(input.Record{ID: "2", Kind: mlattr.ProblemToolErrors, Subject: input.Subject{Service: "trainer", Run: "r"}})
	var order []string
	for _, n := range w.state().Needs {
		order = append(order, fmt.Sprintf("%d %s %s", n.Urgency, n.Severity, n.Kind))
	}
	assert.Equal(t, []string{"1 page tool_errors", "1 page failing", "2 ticket slow"}, order)
}

// A problem that is only a mark is on the curves of its run.
func TestMarks(t *testing.T) {
	w := newWorld(input.Settings{})
	w.point(series.RunState, "r", 1, "running")
	spike := input.Record{ID: "1", Kind: mlattr.ProblemLossSpike, Subject: input.Subject{Service: "trainer", Run: "r"}, Evidence: []string{"loss 9.1 at step 7"}}
	w.record(spike)
	w.record(spike)
	spike.Ended = w.now
	w.record(spike)
	w.record(input.Record{ID: "3", Kind: "sad", Subject: input.Subject{Service: "trainer", Run: "r"}})
	assert.Empty(t, w.state().Needs)
	marks := w.run(t).Marks
	require.Len(t, marks, 1)
	assert.Equal(t, "loss spike: loss 9.1 at step 7", marks[0].Text)
	assert.Equal(t, mlattr.ProblemLossSpike, marks[0].Kind)
}

// A mark of a service without a run is listed with the changes. It is no change before
// a problem.
func TestMarksOfServices(t *testing.T) {
	w := newWorld(input.Settings{})
	w.record(input.Record{ID: "1", Kind: mlattr.ProblemLooping, Subject: input.Subject{Service: "agent"}, Onset: w.now, Evidence: []string{"search 12 times"}})
	w.span(func(in *input.Span) { in.Source = &input.Source{Service: "agent"} })
	w.failing(w.now)
	s := w.state()
	require.Len(t, s.Changes, 1)
	assert.Equal(t, "looping: search 12 times", s.Changes[0].Text)
	require.Len(t, s.Needs, 1)
	assert.Empty(t, s.Needs[0].Before)
}

// A problem of a host.
func TestAProblemOfAHost(t *testing.T) {
	w := newWorld(input.Settings{})
	p := series.Point{Series: series.Problem, Update: series.Update{Value: float64(w.now.Unix())}}
	p.Labels.Host, p.Labels.Own[0] = "h1", mlattr.ProblemSlowHost
	w.ApplyPoints([]series.Point{p})
	w.record(input.Record{ID: "1", Kind: mlattr.ProblemSlowHost, Subject: input.Subject{Host: "h1", GPU: "g"}, Evidence: []string{"in 3 runs"}})
	needs := w.state().Needs
	require.Len(t, needs, 1)
	assert.Equal(t, "host h1", needs[0].Subject)
	assert.Equal(t, []string{"in 3 runs"}, needs[0].Evidence)
}

// A problem of the fleet has no other subject.
func TestAProblemOfTheFleet(t *testing.T) {
	w := newWorld(input.Settings{})
	p := series.Point{Series: series.Problem, Update: series.Update{Value: float64(w.now.Unix())}}
	p.Labels.Own[0] = mlattr.ProblemLemonVersion
	w.ApplyPoints([]series.Point{p})
	w.record(input.Record{ID: "1", Kind: mlattr.ProblemLemonVersion, Evidence: []string{"driver 570: slower"}})
	needs := w.state().Needs
	require.Len(t, needs, 1)
	assert.Equal(t, "fleet", needs[0].Subject)
	assert.Equal(t, []string{"driver 570: slower"}, needs[0].Evidence)
}

// However many records there are, and however long, few are kept.
func TestRecordsAreBounded(t *testing.T) {
	w := newWorld(input.Settings{})
	long := strings.Repeat("\U0001F600", 10_000)
	many := make([]string, 1000)
	for i := range many {
		many[i] = long
	}
	before := heap()
	for i := range 6000 {
		w.record(input.Record{
			ID: long, Kind: mlattr.ProblemSlow, Subject: input.Subject{Service: "s" + strconv.Itoa(i), Run: "r"}, Advice: input.Advice{Next: long},
			Evidence: many[:1], Before: many, Excluded: many[:1],
		})
		w.change(api.Change{Kind: "version", Service: "s" + strconv.Itoa(i), To: long, Text: long})
	}
	assert.Less(t, heap()-before, 64)
	w.point(series.Problem, "r", float64(w.now.Unix()), mlattr.ProblemSlow)
	assert.LessOrEqual(t, len(w.state().Changes), 500)
}

// A record with an onset in the future is forgotten like any other.
func TestARecordFromTheFuture(t *testing.T) {
	w := newWorld(input.Settings{})
	for i := range 1024 {
		w.record(input.Record{Kind: mlattr.ProblemNonfinite, Subject: input.Subject{Service: "s", Run: strconv.Itoa(i)}, Onset: w.now.AddDate(200, 0, 0)})
	}
	w.now = w.now.AddDate(0, 0, 8)
	w.point(series.RunState, "r", 1, "running")
	w.point(series.Problem, "r", float64(w.now.Unix()), mlattr.ProblemNonfinite)
	w.record(input.Record{Kind: mlattr.ProblemNonfinite, Subject: input.Subject{Service: "trainer", Run: "r"}, Evidence: []string{"loss NaN"}})
	needs := w.state().Needs
	require.Len(t, needs, 1)
	assert.Equal(t, []string{"loss NaN"}, needs[0].Evidence)
}
