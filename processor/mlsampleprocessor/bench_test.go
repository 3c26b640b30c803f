package mlsampleprocessor

import (
	"context"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
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

// BenchmarkConsume reports the time for each span of 10,000 in a second, from its
// arrival until it is sent or dropped: of training, where a request has ten steps of one
// of 20 ranks, and of calls, of which a request has 25. "ratio" is the quotient of it and
// of the time that the Collector needs to encode the same requests, in turns.
func BenchmarkConsume(b *testing.B) {
	for name, requests := range map[string]func(*bed) []ptrace.Traces{"steps": stepRequests(), "calls": callRequests()} {
		b.Run(name, func(b *testing.B) {
			bed := newBed(b, defaults())
			discard(bed)
			ctx, end := vocabulary.WithEnriched(b.Context())
			defer end()
			spans, spent, encoding := 0, time.Duration(0), time.Duration(0)
			for b.Loop() {
				all := requests(bed)
				start := time.Now()
				for _, td := range all {
					if err := bed.ConsumeTraces(ctx, td); err != nil {
						b.Fatal(err)
					}
					spans += td.SpanCount()
				}
				if bed.sampler.Tick(bed.clock) {
					bed.send(ctx, false)
				}
				encoded := time.Now()
				spent += encoded.Sub(start)
				for _, td := range all {
					if _, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td); err != nil {
						b.Fatal(err)
					}
				}
				encoding += time.Since(encoded)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(spent.Nanoseconds())/float64(spans), "ns/span")
			b.ReportMetric(float64(spent)/float64(encoding), "ratio")
		})
	}
}

// stepRequests returns what 20 ranks send in a tenth of a second, ten steps each.
func stepRequests() func(*bed) []ptrace.Traces {
	l := &loop{run: "llama", ranks: 20, numbers: true, clock: begun}
	return func(bed *bed) []ptrace.Traces {
		all := make([]ptrace.Traces, l.ranks)
		for i := range all {
			all[i] = ptrace.NewTraces()
		}
		for range 10 {
			for rank, rs := range l.take(10*time.Millisecond, wide).ResourceSpans().All() {
				rs.CopyTo(all[rank].ResourceSpans().AppendEmpty())
			}
		}
		for _, td := range all {
			merge(td)
		}
		bed.clock = bed.clock.Add(100 * time.Millisecond)
		return all
	}
}

// callRequests returns what services send in a tenth of a second.
func callRequests() func(*bed) []ptrace.Traces {
	s := &service{name: "agent"}
	return func(bed *bed) (all []ptrace.Traces) {
		for range 20 {
			td := ptrace.NewTraces()
			for range 25 {
				s.call(bed.clock, time.Second, strconv.FormatUint(s.calls, 10), wideCall).ResourceSpans().MoveAndAppendTo(td.ResourceSpans())
			}
			merge(td)
			all = append(all, td)
		}
		bed.clock = bed.clock.Add(100 * time.Millisecond)
		return all
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
				s.call(b.clock, time.Second, strconv.FormatUint(s.calls, 10), wideCall).ResourceSpans().MoveAndAppendTo(td.ResourceSpans())
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
