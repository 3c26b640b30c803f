package mlsampleprocessor

import (
	"encoding/binary"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/processor/mlsampleprocessor/internal/sample"
)

// loop is a training loop of several ranks, with a trace for each step of a rank.
type loop struct {
	run   string
	ranks int
	// numbers reports whether spans have ml.step.
	numbers bool
	clock   time.Time
	step    int
	ids     uint64
}

// phases are those of a step, with the share of its time that each takes.
var phases = []struct {
	name  string
	share float64
}{{"data_load", 0.1}, {"forward", 0.3}, {"backward", 0.4}, {"optimizer", 0.2}}

// take takes a step of the length on all ranks and returns its spans. change may
// change each span.
func (l *loop) take(length time.Duration, change func(rank int, span ptrace.Span)) ptrace.Traces {
	l.step++
	td := ptrace.NewTraces()
	for rank := range l.ranks {
		rs := td.ResourceSpans().AppendEmpty()
		attrs := rs.Resource().Attributes()
		attrs.PutStr("service.name", "trainer")
		attrs.PutStr("ml.run.id", l.run)
		attrs.PutInt("ml.rank.global", int64(rank))
		attrs.PutStr("host.name", "gpu-01")
		spans := rs.ScopeSpans().AppendEmpty().Spans()
		l.ids++
		var trace pcommon.TraceID
		binary.BigEndian.PutUint64(trace[:], l.ids)
		trace[15] = byte(rank)
		root := l.id()
		at := l.clock
		for _, p := range phases {
			end := at.Add(time.Duration(p.share * float64(length)))
			span := spans.AppendEmpty()
			l.fill(span, trace, p.name, at, end)
			span.SetSpanID(l.id())
			span.SetParentSpanID(root)
			span.Attributes().PutStr("ml.phase", p.name)
			if change != nil {
				change(rank, span)
			}
			at = end
		}
		span := spans.AppendEmpty()
		l.fill(span, trace, "train_step", l.clock, at)
		span.SetSpanID(root)
		if change != nil {
			change(rank, span)
		}
	}
	l.clock = l.clock.Add(length)
	return td
}

func (l *loop) id() (id pcommon.SpanID) {
	l.ids++
	binary.BigEndian.PutUint64(id[:], l.ids)
	return id
}

func (l *loop) fill(span ptrace.Span, trace pcommon.TraceID, name string, from, end time.Time) {
	span.SetTraceID(trace)
	span.SetName(name)
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(from))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(end))
	span.Attributes().PutInt("step", int64(l.step))
	if l.numbers {
		span.Attributes().PutInt("ml.step", int64(l.step))
	}
}

// stepsOf returns the number of spans by step.
func stepsOf(t testing.TB, spans []ptrace.Span) map[int64]int {
	t.Helper()
	steps := make(map[int64]int)
	for _, span := range spans {
		v, ok := span.Attributes().Get("step")
		require.True(t, ok)
		steps[v.Int()]++
	}
	return steps
}

func TestSystematicStepsAreWholeOnAllRanks(t *testing.T) {
	for _, numbers := range []bool{true, false} {
		cfg := defaults()
		cfg.Steps = sample.Steps{OneIn: 10}
		b := newBed(t, cfg)
		l := &loop{run: "llama", ranks: 4, numbers: numbers, clock: begun}
		for range 500 {
			b.consume(t, l.take(time.Second, nil))
			b.pass(t, time.Second)
		}
		spans := b.end(t)
		steps := stepsOf(t, spans)
		assertTenth(t, 500, len(steps), numbers)
		sorted := slices.Sorted(maps.Keys(steps))
		for i, step := range sorted {
			assert.Equal(t, 4*5, steps[step], "step %d", step)
			if i > 0 && numbers {
				assert.Equal(t, int64(10), step-sorted[i-1])
			}
		}
		for _, span := range spans {
			assert.Equal(t, int64(10), countOf(span))
		}
	}
}

// assertTenth asserts that one in ten steps of a second is kept: of steps without
// numbers, the first and the last ten seconds may be parts.
func assertTenth(t *testing.T, steps, kept int, numbers bool) {
	t.Helper()
	if numbers {
		assert.Equal(t, steps/10, kept)
		return
	}
	assert.InDelta(t, steps/10, kept, 1)
}

// train consumes steps of a second each and returns what was sent in the end. change
// may change each span of a step.
func train(t *testing.T, cfg *Config, steps int, change func(step, rank int, span ptrace.Span)) map[int64]int {
	t.Helper()
	b := newBed(t, cfg)
	l := &loop{run: "llama", ranks: 4, numbers: true, clock: begun}
	for range steps {
		b.consume(t, l.take(time.Second, func(rank int, span ptrace.Span) {
			if change != nil {
				change(l.step, rank, span)
			}
		}))
		b.pass(t, time.Second)
	}
	return stepsOf(t, b.end(t))
}

// whole returns the steps with all spans of four ranks.
func whole(steps ...int64) map[int64]int {
	all := make(map[int64]int)
	for _, step := range steps {
		all[step] = 4 * 5
	}
	return all
}

// only is a configuration that keeps no step for itself: the systematic ones are too
// rare for a test.
func only(steps sample.Steps) *Config {
	cfg := defaults()
	cfg.Steps = steps
	cfg.Steps.OneIn = maxOneIn
	return cfg
}

func TestAFailedStepIsKeptOnAllRanks(t *testing.T) {
	got := train(t, only(sample.Steps{}), 100, func(step, rank int, span ptrace.Span) {
		if step == 50 && rank == 2 && span.Name() == "backward" {
			span.Status().SetCode(ptrace.StatusCodeError)
		}
	})
	assert.Equal(t, whole(50), got)
}

func TestTheStepsBeforeAFailureAreKept(t *testing.T) {
	got := train(t, only(sample.Steps{Before: 3}), 200, func(step, rank int, span ptrace.Span) {
		if step == 150 && rank == 2 && span.Name() == "backward" {
			span.Status().SetCode(ptrace.StatusCodeError)
		}
	})
	assert.Equal(t, whole(147, 148, 149, 150), got)
}

func TestTheEndOfALoaderIsNoFailure(t *testing.T) {
	got := train(t, only(sample.Steps{}), 100, func(step, _ int, span ptrace.Span) {
		if step == 50 && span.Name() == "data_load" {
			span.Status().SetCode(ptrace.StatusCodeError)
			span.Attributes().PutBool("ml.epoch_end", true)
		}
	})
	assert.Empty(t, got)
}

func TestAMarkedStepIsKept(t *testing.T) {
	got := train(t, only(sample.Steps{}), 100, func(step, rank int, span ptrace.Span) {
		if step == 50 && rank == 3 && span.Name() == "forward" {
			span.Attributes().PutBool("ml.sample.keep", true)
		}
	})
	assert.Equal(t, whole(50), got)
}

func TestTheFirstStepsAreKept(t *testing.T) {
	got := train(t, only(sample.Steps{First: 2}), 100, func(step, _ int, span ptrace.Span) {
		attempt := int64(0)
		if step > 60 {
			attempt = 1
		}
		span.Attributes().PutInt("ml.run.attempt", attempt)
	})
	assert.Equal(t, whole(1, 2, 61, 62), got)
}

// The numbers go back to those of a checkpoint.
func TestTheFirstStepsAfterARestartAreKept(t *testing.T) {
	got := train(t, only(sample.Steps{First: 2}), 100, func(step, _ int, span ptrace.Span) {
		if step > 60 {
			span.Attributes().PutInt("ml.step", int64(step-20))
		}
	})
	assert.Equal(t, whole(1, 2, 61, 62), got)
}

func TestASlowStepIsKept(t *testing.T) {
	for name, cfg := range map[string]*Config{
		"by the median":     only(sample.Steps{Slow: 3}),
		"by the quantile":   only(sample.Steps{SlowQuantile: 0.99}),
		"by one rank alone": only(sample.Steps{Slow: 3}),
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, cfg)
			l := &loop{run: "llama", ranks: 4, numbers: true, clock: begun}
			for step := range 200 {
				length := time.Second
				if step+1 == 170 {
					length = 4 * time.Second
				}
				b.consume(t, l.take(length, nil))
				b.pass(t, length)
			}
			assert.Equal(t, whole(170), stepsOf(t, b.end(t)))
		})
	}
}

// Checkpoints and validations take time that is not the step's.
func TestACheckpointMakesNoStepSlow(t *testing.T) {
	b := newBed(t, only(sample.Steps{Slow: 3}))
	l := &loop{run: "llama", ranks: 2, numbers: true, clock: begun}
	for step := range 100 {
		td := l.take(time.Second, nil)
		if step == 50 {
			for _, rs := range td.ResourceSpans().All() {
				spans := rs.ScopeSpans().At(0).Spans()
				span := spans.AppendEmpty()
				l.fill(span, spans.At(0).TraceID(), "save_checkpoint", l.clock, l.clock.Add(5*time.Second))
				span.SetSpanID(l.id())
				span.Attributes().PutStr("ml.phase", "checkpoint")
				span.Attributes().PutStr("ml.operation", "save_checkpoint")
			}
			l.clock = l.clock.Add(5 * time.Second)
		}
		b.consume(t, td)
		b.pass(t, time.Second)
	}
	steps := stepsOf(t, b.end(t))
	assert.Equal(t, map[int64]int{51: 2 * 6}, steps, "only the rare operation")
}

func TestValidationsEpochsAndTheRunsRootAreKept(t *testing.T) {
	for _, phase := range []string{"validation", "epoch", "train"} {
		b := newBed(t, only(sample.Steps{}))
		l := &loop{run: "llama", ranks: 1, numbers: true, clock: begun}
		for range 10 {
			b.consume(t, l.take(time.Second, nil))
		}
		td := ptrace.NewTraces()
		span := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		l.fill(span, pcommon.TraceID{7}, phase, begun, l.clock)
		span.SetSpanID(l.id())
		span.Attributes().Remove("ml.step")
		span.Attributes().PutStr("ml.phase", phase)
		b.consume(t, td)
		got := b.end(t)
		require.Len(t, got, 1, phase)
		assert.Equal(t, phase, got[0].Name())
		assert.Equal(t, int64(1), countOf(got[0]))
	}
}
