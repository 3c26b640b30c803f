package mlenrichprocessor

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/metadata"
)

// trainingBatch is n spans of a training loop: no attributes, one trace.
func trainingBatch(n int) ptrace.Traces {
	td := batchOf("torchtel")
	attrs := td.ResourceSpans().At(0).Resource().Attributes()
	for key, value := range map[string]int64{"job_id": 0, "global_rank": 1, "local_rank": 1, "world_size": 8} {
		attrs.PutInt(key, value)
	}
	attrs.PutStr("host", "n1")
	spans := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	for i := range n {
		span := spans.AppendEmpty()
		span.SetName([]string{"GPT.forward", "autograd.backward", "AdamW.step", "dataloader.next"}[i%4])
		span.SetTraceID(pcommon.TraceID{0: 1})
		span.SetSpanID(pcommon.SpanID{0: 1, 6: byte(i >> 8), 7: byte(i)})
		span.SetParentSpanID(pcommon.SpanID{0: 9})
		span.SetEndTimestamp(1e9)
	}
	return td
}

// tuningBatch is n spans of a fine-tuning service, ten attributes each, in
// traces of four.
func tuningBatch(n int) ptrace.Traces {
	td := batchOf("tuft")
	spans := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	names := []string{"training_controller.run_forward", "future_store.execute_operation", "training_backend.forward", "hf_model.forward"}
	for i := range n {
		span := spans.AppendEmpty()
		span.SetName(names[i%4])
		span.SetTraceID(pcommon.TraceID{0: 1, 14: byte(i >> 10), 15: byte(i >> 2)})
		span.SetSpanID(pcommon.SpanID{0: 1, 6: byte(i >> 8), 7: byte(i)})
		if i%4 > 0 {
			span.SetParentSpanID(pcommon.SpanID{0: 1, 6: byte((i - 1) >> 8), 7: byte(i - 1)})
		}
		span.SetEndTimestamp(1e9)
		a := span.Attributes()
		a.EnsureCapacity(10)
		a.PutStr("tuft.session_id", "5f2c8e0a")
		a.PutStr("tuft.training_run_id", "0b9d5b7e")
		a.PutStr("tuft.request_id", "c0ffee00")
		a.PutStr("tuft.base_model", "Qwen/Qwen3-4B")
		a.PutInt("tuft.data_count", 8)
		a.PutInt("tuft.lora_rank", 16)
		a.PutStr("tuft.loss_fn", "cross_entropy")
		a.PutBool("tuft.backward", true)
		a.PutStr("code.function", "run")
		a.PutInt("thread.id", 7)
	}
	return td
}

func BenchmarkConsumeTraces(b *testing.B) {
	const size = 512
	for name, batch := range map[string]ptrace.Traces{
		"training/0_attributes": trainingBatch(size),
		"tuning/10_attributes":  tuningBatch(size),
	} {
		b.Run(name, func(b *testing.B) {
			p, err := NewFactory().CreateTraces(context.Background(), processortest.NewNopSettings(metadata.Type), createDefaultConfig(), consumertest.NewNop())
			require.NoError(b, err)
			require.NoError(b, p.Start(context.Background(), componenttest.NewNopHost()))
			b.Cleanup(func() { require.NoError(b, p.Shutdown(context.Background())) })
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				b.StopTimer()
				td := ptrace.NewTraces()
				batch.CopyTo(td)
				b.StartTimer()
				if err := p.ConsumeTraces(context.Background(), td); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/size, "ns/span")
		})
	}
}
