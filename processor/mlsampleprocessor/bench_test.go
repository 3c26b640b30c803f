package mlsampleprocessor

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// discard accepts and forgets everything.
func discard(b *bed) {
	b.next, _ = consumer.NewTraces(func(context.Context, ptrace.Traces) error { return nil })
}

// wide adds the attributes that spans usually have after ml_enrich.
func wide(_ int, span ptrace.Span) {
	span.Attributes().PutStr("ml.correlation.source", "run=resource")
	span.Attributes().PutStr("ml.operation", "step")
	span.Attributes().PutInt("ml.epoch", 3)
	span.Attributes().PutStr("thread.name", "MainThread")
	span.Attributes().PutInt("thread.id", 4711)
	span.Attributes().PutStr("code.function.name", "train_step")
}

// BenchmarkConsume reports the time for each span of the request: of training, where a
// request has some steps of a rank, and of calls.
func BenchmarkConsume(b *testing.B) {
	for _, name := range []string{"steps", "calls"} {
		b.Run(name, func(b *testing.B) {
			cfg := defaults()
			cfg.MaxBytes = 256 << 20
			bed := newBed(b, cfg)
			discard(bed)
			l := &loop{run: "llama", ranks: 1, numbers: true, clock: begun}
			s := &service{name: "agent"}
			ctx := mlattr.WithEnriched(b.Context())
			spans := 0
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				td := ptrace.NewTraces()
				for range 50 {
					if name == "steps" {
						l.take(time.Second, wide).ResourceSpans().MoveAndAppendTo(td.ResourceSpans())
					} else {
						s.call(bed.clock, time.Second, fmt.Sprint(s.calls), wideCall).ResourceSpans().MoveAndAppendTo(td.ResourceSpans())
					}
				}
				merge(td)
				bed.clock = bed.clock.Add(50 * time.Millisecond)
				b.StartTimer()
				if err := bed.ConsumeTraces(ctx, td); err != nil {
					b.Fatal(err)
				}
				if bed.sampler.Tick(bed.clock) {
					bed.send(ctx)
				}
				spans += td.SpanCount()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(spans), "ns/span")
		})
	}
}

func wideCall(root, chat ptrace.Span) { wide(0, root); wide(0, chat) }

// merge moves all spans to the first resource, as a client sends them.
func merge(td ptrace.Traces) {
	first := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	for i, rs := range td.ResourceSpans().All() {
		if i > 0 {
			rs.ScopeSpans().At(0).Spans().MoveAndAppendTo(first)
		}
	}
	n := 0
	td.ResourceSpans().RemoveIf(func(ptrace.ResourceSpans) bool { n++; return n > 1 })
}

// TestMemoryWhileSpansWait compares the memory that is counted with the heap, at 10,000
// spans a second that wait for 30 seconds.
func TestMemoryWhileSpansWait(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	cfg := defaults()
	b := newBed(t, cfg)
	b.next = consumertest.NewNop()
	l := &loop{run: "llama", ranks: 100, numbers: true, clock: begun}
	s := &service{name: "agent"}
	before := heap()
	for range 60 {
		for range 10 {
			b.consume(t, l.take(100*time.Millisecond, wide))
		}
		for range 100 {
			td := ptrace.NewTraces()
			for range 25 {
				s.call(b.clock, time.Second, fmt.Sprint(s.calls), wideCall).ResourceSpans().MoveAndAppendTo(td.ResourceSpans())
			}
			merge(td)
			b.consume(t, td)
		}
		b.pass(t, time.Second)
	}
	used, counted := int64(heap()-before), b.sampler.Bytes()
	t.Logf("%d MiB of heap, %d MiB counted", used>>20, counted>>20)
	require.Less(t, used, int64(256<<20))
	require.InEpsilon(t, used, counted, 0.3)
	runtime.KeepAlive(b)
}

func heap() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// traceOf returns a trace id.
func traceOf(n uint64) (id pcommon.TraceID) {
	binary.BigEndian.PutUint64(id[:], n)
	return id
}
