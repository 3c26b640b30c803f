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
		cfg.Steps = StepConfig{OneIn: 10}
		b := newBed(t, cfg)
		l := &loop{run: "llama", ranks: 4, numbers: numbers, clock: begun}
		for range 500 {
			b.consume(t, l.take(time.Second, nil))
			b.pass(t, time.Second)
		}
		spans := b.end(t)
		steps := stepsOf(t, spans)
		assert.Len(t, steps, 50, "numbers: %v", numbers)
		sorted := slices.Sorted(maps.Keys(steps))
		for i, step := range sorted {
			assert.Equal(t, 4*5, steps[step], "step %d", step)
			if i > 0 {
				assert.Equal(t, int64(10), step-sorted[i-1])
			}
		}
		for _, span := range spans {
			assert.Equal(t, int64(10), countOf(span))
		}
	}
}
