package mlmetricsconnector

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// trained is a step of a program that numbers none, when it starts by the program's clock.
type trained struct{ start, took time.Duration }

// irregular are steps one after the other, each up to a tenth shorter or longer than usual.
func irregular(count int, usual time.Duration) (steps []trained) {
	random := rand.New(rand.NewPCG(1, 2))
	at := time.Duration(0)
	for range count {
		took := time.Duration(float64(usual) * (0.9 + 0.2*random.Float64()))
		steps = append(steps, trained{at, took})
		at += took
	}
	return steps
}

// setBack has the clock of steps be behind from the n-th on.
func setBack(steps []trained, n int, by time.Duration) []trained {
	steps = slices.Clone(steps)
	for i := n; i < len(steps); i++ {
		steps[i].start -= by
	}
	return steps
}

// requestsOfSteps returns the spans of steps, of so many steps in a request, each with a forward
// pass and so many optimizers.
func requestsOfSteps(steps []trained, began time.Time, inRequest, optimizers int) (requests []ptrace.Traces) {
	id := uint16(0)
	for _, few := range slices.Collect(slices.Chunk(steps, inRequest)) {
		td := ptrace.NewTraces()
		for _, s := range few {
			add := func(phase string, from, to float64) {
				id++
				span := addSpan(td, "run-a", 1, id)
				span.SetParentSpanID(pcommon.SpanID{9})
				span.Attributes().PutStr("ml.phase", phase)
				begin := began.Add(s.start)
				span.SetStartTimestamp(pcommon.NewTimestampFromTime(begin.Add(time.Duration(from * float64(s.took)))))
				span.SetEndTimestamp(pcommon.NewTimestampFromTime(begin.Add(time.Duration(to * float64(s.took)))))
			}
			add("forward", 0, 0.4)
			for n := range optimizers {
				each := 0.2 / float64(optimizers)
				from := 0.75 + each*float64(n)
				add("optimizer", from, from+each)
			}
		}
		requests = append(requests, td)
	}
	return requests
}

// stepsIn is how many steps are counted of requests.
func (r *run) stepsIn(t *testing.T, requests []ptrace.Traces) int64 {
	t.Helper()
	for _, td := range requests {
		again := ptrace.NewTraces() // a connector may change what it gets
		td.CopyTo(again)
		require.NoError(t, r.connector.ConsumeTraces(t.Context(), again))
	}
	return counters(r.after(t, 0))["ml.steps"]
}

// Steps without numbers that lie among earlier ones, because a clock was set back, are told
// apart by their times alone. So many are missing; docs/limits.md says so. In whatever
// order their requests come, and however often, none counts twice.
func TestAClockThatIsSetBackAmongUnnumberedSteps(t *testing.T) {
	for _, tt := range []struct {
		back        time.Duration
		usual       time.Duration
		steps, from int
		optimizers  int
		want        int64
		// about is by how much it differs with the size of requests.
		about float64
	}{
		{20 * time.Second, time.Second / 2, 875, 400, 1, 835, 0},
		{20 * time.Second, time.Second / 2, 875, 400, 2, 835, 0},
		{20 * time.Second, 5 * time.Second, 875, 400, 1, 871, 0},
		{20 * time.Second, time.Second / 10, 875, 400, 1, 813, 0},
		// Those of the hour are all there, until the clock has reached the old time again.
		{time.Hour, 5 * time.Second, 1000, 400, 1, 1000, 0},
		{time.Hour, 5 * time.Second, 1000, 400, 2, 1000, 0},
		{time.Hour, 5 * time.Second, 1300, 400, 1, 1225, 0},
		{time.Hour, 5 * time.Second, 1300, 400, 2, 1252, 5},
	} {
		t.Run(fmt.Sprint(tt.back, tt.usual, tt.steps, tt.optimizers), func(t *testing.T) {
			steps := setBack(irregular(tt.steps, tt.usual), tt.from, tt.back)
			began := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
			for _, inRequest := range []int{1, 10} {
				requests := requestsOfSteps(steps, began, inRequest, tt.optimizers)
				got := newRun(t, createDefaultConfig().(*Config)).stepsIn(t, requests)
				assert.InDelta(t, tt.want, got, tt.about, "%d in a request", inRequest)

				var twice []ptrace.Traces
				for i, td := range requests {
					twice = append(twice, td, requests[max(0, i-3)])
				}
				assert.Equal(t, got, newRun(t, createDefaultConfig().(*Config)).stepsIn(t, twice), "again, %d in a request", inRequest)

				for pair := range slices.Chunk(requests, 2) {
					slices.Reverse(pair)
				}
				got = newRun(t, createDefaultConfig().(*Config)).stepsIn(t, requests)
				assert.LessOrEqual(t, got, int64(tt.steps), "out of order, %d in a request", inRequest)
				assert.InDelta(t, tt.want, got, tt.about+2, "out of order, %d in a request", inRequest)
			}
		})
	}
}

// Why these steps are not told: a program that two instrumentations report, or a second
// rank without an id, sends the same spans in the same requests as one whose clock was set
// back, if those of the second come late. Their steps must count once.
func TestSpansOfASecondInstrumentationThatComeLate(t *testing.T) {
	const usual, later = time.Second / 2, time.Second / 10
	var regular []trained
	for n := range 120 {
		regular = append(regular, trained{time.Duration(n) * usual, usual})
	}
	// Its hooks are called after those of the first, before and after each part of a step.
	var second []trained
	for _, s := range regular[40:80] {
		second = append(second, trained{s.start + later, s.took})
	}
	began := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	late := requestsOfSteps(append(slices.Clone(regular[:80]), second...), began, 10, 2)
	back := requestsOfSteps(setBack(regular, 80, 20*time.Second-later), began, 10, 2)
	require.Equal(t, back, late, "nothing tells them apart")
	assert.Equal(t, int64(80), newRun(t, createDefaultConfig().(*Config)).stepsIn(t, late))
}
