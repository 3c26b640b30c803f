package problem_test

import (
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/change"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/problem"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

var begin = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func nothing(problem.Subject, time.Time) []change.Change { return nil }

// always is that of newer data at each emission.
func always(e *problem.Entry) time.Time { return e.Evident.Add(time.Nanosecond) }

func ofRun(kind, run string, onset time.Time) problem.Problem {
	return problem.Problem{
		Kind: kind, Onset: onset, Measure: problem.Measure{Value: 2, Usual: 1, Unit: "s", Telemetry: math.NaN()},
		Subject: problem.Subject{Resource: streams.Resource{Service: "trainer"}, Run: run},
	}
}

func kinds(entries []problem.Entry) []string {
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Kind)
	}
	return names
}

// A problem begins once, keeps its id and onset, has the newest value, and ends
// when nobody reports it.
func TestAProblemFromBeginningToEnd(t *testing.T) {
	b := problem.NewBoard()
	var asked time.Time
	before := func(s problem.Subject, at time.Time) []change.Change {
		assert.Equal(t, "a", s.Run)
		asked = at
		return []change.Change{{Time: begin, Text: "version 2 (was 1)"}}
	}
	p := ofRun(mlattr.ProblemSlow, "a", begin)
	p.GPUs = 4
	b.Report(p)
	began, ended, open := b.Settle(begin.Add(time.Minute), false, before, always)
	require.Len(t, began, 1)
	assert.Empty(t, ended)
	require.Len(t, open, 1)
	assert.Equal(t, began[0].ID, open[0].ID)
	first := began[0]
	assert.Equal(t, begin, asked)
	assert.Equal(t, begin.Add(time.Minute), first.Detected)
	assert.Equal(t, mlattr.SeverityTicket, first.Severity)
	assert.Len(t, first.ID, 16)
	assert.Equal(t, "version 2 (was 1)", first.Before[0].Text)

	p.Onset, p.Value = begin.Add(30*time.Second), 3
	b.Report(p)
	began, ended, open = b.Settle(begin.Add(30*time.Minute), false, nothing, always)
	assert.Empty(t, began)
	assert.Empty(t, ended)
	require.Len(t, open, 1)
	assert.InDelta(t, 3, open[0].Value, 0)
	assert.Equal(t, begin, open[0].Onset, "the first onset counts")
	assert.InDelta(t, 2, open[0].GPUHours(begin.Add(30*time.Minute)), 1e-9)

	began, ended, open = b.Settle(begin.Add(time.Hour), false, nothing, always)
	assert.Empty(t, began)
	assert.Empty(t, open)
	require.Len(t, ended, 1)
	assert.Equal(t, first.ID, ended[0].ID)
	assert.Equal(t, begin.Add(time.Hour), ended[0].Ended)
	assert.InDelta(t, 4, ended[0].GPUHours(begin.Add(5*time.Hour)), 1e-9)

	b.Report(p)
	began, _, _ = b.Settle(begin.Add(2*time.Hour), false, nothing, always)
	assert.NotEqual(t, first.ID, began[0].ID, "it is another problem")
}

// A problem that comes and goes at each emission is one that lasts, from its second
// beginning on, until it has been gone for 10 minutes.
func TestAProblemThatComesAndGoes(t *testing.T) {
	b := problem.NewBoard()
	now := begin
	records := 0
	settle := func(report bool) (ended, open []problem.Entry) {
		if report {
			b.Report(ofRun(mlattr.ProblemSlow, "a", now))
		}
		began, ended, open := b.Settle(now, false, nothing, always)
		records += len(began) + len(ended)
		now = now.Add(15 * time.Second)
		return ended, open
	}
	for n := range 240 {
		settle(n%2 == 0)
	}
	assert.Equal(t, 3, records, "it began, ended and began")
	last := now.Add(-30 * time.Second) // of those that were reported
	for range 38 {
		ended, open := settle(false)
		require.Empty(t, ended)
		require.Len(t, open, 1)
	}
	ended, open := settle(false)
	require.Len(t, ended, 1)
	assert.Empty(t, open)
	assert.Equal(t, last, ended[0].Ended, "when it was there")

	now = now.Add(time.Hour)
	settle(true)
	ended, _ = settle(false)
	assert.Len(t, ended, 1, "an hour later it is another problem")
}

// A moment begins and ends at once, each time that it is reported.
func TestAMoment(t *testing.T) {
	b := problem.NewBoard()
	for n := range 3 {
		at := begin.Add(time.Duration(n) * time.Minute)
		b.Report(ofRun(mlattr.ProblemLossSpike, "a", at))
		began, ended, open := b.Settle(at, false, nothing, always)
		assert.Len(t, began, 1)
		assert.True(t, began[0].Ended.IsZero())
		assert.Len(t, ended, 1)
		assert.Equal(t, at, ended[0].Ended)
		assert.Empty(t, open)
	}
}

// Of two reports about the same the earlier one counts, and no unknown kind does.
func TestReports(t *testing.T) {
	b := problem.NewBoard()
	b.Report(ofRun(mlattr.ProblemSlow, "a", begin.Add(time.Second)))
	b.Report(ofRun(mlattr.ProblemSlow, "a", begin))
	b.Report(ofRun(mlattr.ProblemSlow, "a", begin.Add(time.Minute)))
	b.Report(ofRun("sad", "a", begin))
	began, _, _ := b.Settle(begin, false, nothing, always)
	require.Len(t, began, 1)
	assert.Equal(t, begin, began[0].Onset)
}

// A change that came before a problem, or as soon, may be seen only after its onset.
func TestChangesThatAreSeenLate(t *testing.T) {
	b := problem.NewBoard()
	p := ofRun(mlattr.ProblemGPUFailed, "a", begin)
	p.Subject.Host, p.Subject.GPU = "n1", "g"
	seen := func(problem.Subject, time.Time) []change.Change {
		return []change.Change{{Time: begin, Text: "attempt 2"}}
	}
	for _, step := range []struct {
		after  time.Duration
		before func(problem.Subject, time.Time) []change.Change
		began  int
	}{{0, nothing, 1}, {10 * time.Second, seen, 1}, {20 * time.Second, seen, 0}, {time.Minute, nothing, 0}} {
		b.Report(p)
		began, _, open := b.Settle(begin.Add(step.after), false, step.before, always)
		assert.Len(t, began, step.began, step.after)
		assert.Equal(t, step.after > 0, len(open[0].Before) == 1, step.after)
	}
}

// One failed GPU is one thing: what follows from it names it, also when the GPU is
// known to have failed only later.
func TestWhatFollowsFromAnother(t *testing.T) {
	b := problem.NewBoard()
	hung := ofRun(mlattr.ProblemLooksHung, "a", begin)
	other := ofRun(mlattr.ProblemLooksHung, "b", begin)
	idle := problem.Problem{Kind: mlattr.ProblemHeldIdle, Onset: begin, Subject: problem.Subject{Host: "n1", GPU: "g"}}
	b.Report(hung)
	b.Report(other)
	b.Report(idle)
	began, _, _ := b.Settle(begin, false, nothing, always)
	for _, e := range began {
		assert.Empty(t, e.Cause)
	}
	failed := ofRun(mlattr.ProblemGPUFailed, "a", begin.Add(time.Minute))
	failed.Subject.Host, failed.Subject.GPU = "n1", "g"
	for _, p := range []problem.Problem{hung, other, idle, failed} {
		b.Report(p)
	}
	began, _, open := b.Settle(begin.Add(time.Minute), false, nothing, always)
	assert.ElementsMatch(t, []string{mlattr.ProblemGPUFailed, mlattr.ProblemLooksHung, mlattr.ProblemHeldIdle}, kinds(began))
	causes, id := map[string]string{}, ""
	for _, e := range open {
		causes[e.Kind+e.Subject.Run] = e.Cause
		if e.Kind == mlattr.ProblemGPUFailed {
			id = e.ID
		}
	}
	assert.Equal(t, map[string]string{"looks_hunga": id, "looks_hungb": "", "held_idle": id, "gpu_faileda": ""}, causes)

	for _, p := range []problem.Problem{hung, other, idle, failed} {
		b.Report(p)
	}
	began, _, _ = b.Settle(begin.Add(2*time.Minute), false, nothing, always)
	assert.Empty(t, began, "what is known is not said again")
}

// What begins long after a problem is not its cause.
func TestALaterProblemIsNoCause(t *testing.T) {
	b := problem.NewBoard()
	b.Report(ofRun(mlattr.ProblemLooksHung, "a", begin))
	b.Report(ofRun(mlattr.ProblemGPUFailed, "a", begin.Add(time.Hour)))
	_, _, open := b.Settle(begin.Add(time.Hour), false, nothing, always)
	for _, e := range open {
		assert.Empty(t, e.Cause)
	}
}

// However many problems there are, few are kept, and one run does not hide others.
func TestProblemsAreBounded(t *testing.T) {
	b := problem.NewBoard()
	for n := range 10_000 {
		p := ofRun(mlattr.ProblemGPUFailed, "a", begin)
		p.Subject.GPU = strconv.Itoa(n)
		b.Report(p)
		b.Report(ofRun(mlattr.ProblemSlow, "other"+strconv.Itoa(n), begin))
	}
	_, _, open := b.Settle(begin, false, nothing, always)
	assert.Len(t, open, 64+1024)
	of := 0
	for _, e := range open {
		if e.Subject.Run == "a" {
			of++
		}
	}
	assert.LessOrEqual(t, of, 64)
	assert.Equal(t, int64(20_000-64-1024), b.Left())
	assert.Zero(t, b.Left())
	_, ended, _ := b.Settle(begin.Add(10*time.Minute), false, nothing, always)
	assert.Len(t, ended, 64+1024)
	b.Report(ofRun(mlattr.ProblemSlow, "a", begin))
	began, _, _ := b.Settle(begin.Add(10*time.Minute), false, nothing, always)
	assert.Len(t, began, 1)
}

// However many tickets there are, a page is reported.
func TestPagesHaveRoom(t *testing.T) {
	b := problem.NewBoard()
	for _, kind := range []string{mlattr.ProblemHeldIdle, mlattr.ProblemSlow, mlattr.ProblemRestartLoop, mlattr.ProblemThrottled, mlattr.ProblemGPUFailed} {
		for n := range 8192 {
			b.Report(problem.Problem{Kind: kind, Onset: begin, Subject: problem.Subject{Host: "n", GPU: strconv.Itoa(n)}})
		}
	}
	for range 2 {
		_, _, open := b.Settle(begin, false, nothing, always)
		assert.Len(t, open, 2048+1024)
		for _, e := range open {
			p := e.Problem
			b.Report(p)
		}
	}
	b.Report(ofRun(mlattr.ProblemLooksHung, "a", begin))
	began, _, _ := b.Settle(begin, false, nothing, always)
	assert.Len(t, began, 1)
	_, ended, _ := b.Settle(begin.Add(10*time.Minute), false, nothing, always)
	assert.Len(t, ended, 2048+1024+1)
	for n := range 2048 {
		b.Report(problem.Problem{Kind: mlattr.ProblemSlow, Onset: begin, Subject: problem.Subject{Host: "n", GPU: strconv.Itoa(n)}})
	}
	began, _, _ = b.Settle(begin, false, nothing, always)
	assert.Len(t, began, 1024, "what has ended makes room")
}

// A problem of which nothing newer arrives lasts: it is stale, and ends when its kind
// says so. Newer data that does not show it ends it, of some kinds after a while.
func TestWithoutEvidence(t *testing.T) {
	for _, kind := range mlattr.Problems {
		if kind.Moment {
			continue
		}
		t.Run(kind.Name, func(t *testing.T) {
			b := problem.NewBoard()
			newest := begin
			settle := func(after time.Duration) (began, ended, open []problem.Entry) {
				return b.Settle(begin.Add(after), false, nothing, func(*problem.Entry) time.Time { return newest })
			}
			p := ofRun(kind.Name, "a", begin.Add(-time.Minute))
			p.Evident, p.GPUs = begin, 1
			b.Report(p)
			began, _, _ := settle(0)
			require.Len(t, began, 1)
			first := began[0]
			assert.False(t, first.Stale)
			began, ended, open := settle(time.Minute)
			assert.Empty(t, began)
			assert.Empty(t, ended)
			require.Len(t, open, 1)
			assert.False(t, open[0].Stale)

			b.Report(p) // by a detector that knows nothing newer
			began, _, _ = settle(2 * time.Minute)
			require.Len(t, began, 1, "it has become stale")
			assert.True(t, began[0].Stale)
			assert.Equal(t, first.ID, began[0].ID)
			assert.Contains(t, began[0].Sentence(), "without new evidence since 2026-11-22T12:00:00Z")
			began, ended, open = settle(kind.EndsAfter() - time.Second)
			assert.Empty(t, began)
			assert.Empty(t, ended)
			require.Len(t, open, 1)
			assert.InDelta(t, 1.0/60, open[0].GPUHours(begin.Add(time.Hour)), 1e-9, "nothing is known to be lost")

			renewed := p
			renewed.Evident = begin.Add(kind.EndsAfter())
			b.Report(renewed)
			began, _, _ = settle(kind.EndsAfter())
			require.Len(t, began, 1, "it is stale no longer")
			assert.False(t, began[0].Stale)

			b.Report(renewed)
			_, ended, open = settle(2 * kind.EndsAfter())
			assert.Empty(t, open)
			require.Len(t, ended, 1)
			assert.Equal(t, mlattr.ProblemNoEvidence, ended[0].EndReason)
			assert.Equal(t, begin.Add(2*kind.EndsAfter()), ended[0].Ended)
			b.Report(renewed)
			began, _, open = settle(2*kind.EndsAfter() + time.Minute)
			assert.Empty(t, began, "old evidence begins nothing")
			assert.Empty(t, open)

			at := 3 * kind.EndsAfter()
			p.Onset, p.Evident = begin.Add(at), begin.Add(at)
			b.Report(p)
			_, _, open = settle(at)
			require.Len(t, open, 1)
			newest = begin.Add(at + 15*time.Second)
			_, ended, _ = settle(at + 15*time.Second)
			assert.Len(t, ended, map[bool]int{true: 1}[kind.Calm == 0])
			_, ended, open = settle(at + max(kind.Calm, 15*time.Second))
			assert.Empty(t, open)
			if kind.Calm > 0 {
				require.Len(t, ended, 1)
				assert.Equal(t, mlattr.ProblemOver, ended[0].EndReason)
				assert.Equal(t, begin.Add(at), ended[0].Ended, "when it was there")
			}
		})
	}
}

// A problem whose evidence comes seldom is stale after three of its intervals.
func TestSeldomEvidence(t *testing.T) {
	b := problem.NewBoard()
	p := ofRun(mlattr.ProblemSlow, "a", begin)
	p.Evident, p.Interval = begin, 5*time.Minute
	b.Report(p)
	for minute := range 20 {
		_, _, open := b.Settle(begin.Add(time.Duration(minute)*time.Minute), false, nothing, func(*problem.Entry) time.Time { return begin })
		require.Len(t, open, 1)
		assert.Equal(t, minute >= 15, open[0].Stale, minute)
	}
}

// Who had a GPU at the onset has its problem, whoever holds it now and whichever
// program has the run by then.
func TestWhoseAtTheOnset(t *testing.T) {
	b := problem.NewBoard()
	failed := problem.Problem{
		Kind: mlattr.ProblemGPUFailed, Onset: begin, Holder: gpus.Owner{Job: "815", UserID: "1000"},
		Subject: problem.Subject{Resource: streams.Resource{Namespace: "team", Service: "trainer"}, Run: "a", Host: "n1", GPU: "g"},
	}
	b.Report(failed)
	began, _, _ := b.Settle(begin, false, nothing, always)
	require.Len(t, began, 1)
	for n, change := range []func(*problem.Problem){
		func(p *problem.Problem) { p.Subject.Resource = streams.Resource{Service: "other"} },
		func(p *problem.Problem) { p.Subject.Resource, p.Subject.Run = streams.Resource{}, "" },
		func(p *problem.Problem) { p.Holder = gpus.Owner{Job: "816"} },
	} {
		p := failed
		change(&p)
		b.Report(p)
		again, ended, open := b.Settle(begin.Add(time.Duration(n)*time.Second), false, nothing, always)
		assert.Empty(t, again)
		assert.Empty(t, ended)
		require.Len(t, open, 1)
		assert.Equal(t, began[0].ID, open[0].ID)
		assert.Equal(t, failed.Subject, open[0].Subject)
		assert.Equal(t, failed.Holder, open[0].Holder)
	}
}

// Evidence is bounded.
func TestEvidenceIsBounded(t *testing.T) {
	b := problem.NewBoard()
	p := ofRun(mlattr.ProblemSlow, "a", begin)
	p.Evidence, p.Excluded = make([]string, 1000), make([]string, 1000)
	b.Report(p)
	began, _, _ := b.Settle(begin, false, nothing, always)
	assert.Len(t, began[0].Evidence, 16)
	assert.Len(t, began[0].Excluded, 16)
}
