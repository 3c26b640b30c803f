package harness

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// PricesOfChats returns a file with the price of the model that SendChats asks.
func PricesOfChats(tb testing.TB) string {
	tb.Helper()
	file := filepath.Join(tb.TempDir(), "prices.json")
	const prices = `[{"id": "openai", "models": [{"match": {"equals": "small"}, "prices": {"input_mtok": 1, "output_mtok": 2}}]}]`
	if err := os.WriteFile(file, []byte(prices), 0o600); err != nil {
		tb.Fatal(err)
	}
	return file
}

// SendChats sends a request to a model each second until the test ends, because no
// scenario has tokens of a model that is named.
func SendChats(tb testing.TB, collector *Collector) {
	tb.Helper()
	sender, err := NewGRPCSender(collector.Address(tb, "receivers::otlp::protocols::grpc"))
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(tb.Context())
	var running sync.WaitGroup
	tb.Cleanup(func() {
		cancel()
		running.Wait()
		if err := sender.Close(); err != nil {
			tb.Error(err)
		}
	})
	running.Go(func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for n := uint16(1); ; n++ {
			select {
			case now := <-ticker.C:
				if sender.Traces(ctx, chatAt(now, n)) != nil {
					return // the collector has ended
				}
			case <-ctx.Done():
				return
			}
		}
	})
}

// chatAt is the n-th request to a model.
func chatAt(end time.Time, n uint16) ptrace.Traces {
	traces := ptrace.NewTraces()
	resource := traces.ResourceSpans().AppendEmpty()
	resource.Resource().Attributes().PutStr("service.name", "assistant")
	span := resource.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.SetName("chat small")
	span.SetKind(ptrace.SpanKindClient)
	span.SetTraceID(pcommon.TraceID{15: 1, 0: byte(n), 1: byte(n >> 8)})
	span.SetSpanID(pcommon.SpanID{7: 1, 0: byte(n), 1: byte(n >> 8)})
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(end.Add(-time.Second)))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(end))
	span.Attributes().PutStr("gen_ai.operation.name", "chat")
	span.Attributes().PutStr("gen_ai.provider.name", "openai")
	span.Attributes().PutStr("gen_ai.request.model", "small")
	span.Attributes().PutInt("gen_ai.usage.input_tokens", 1000)
	span.Attributes().PutInt("gen_ai.usage.output_tokens", 100)
	return traces
}
