package mlenrichprocessor

import (
	"context"
	"encoding/binary"
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

// chains gives n spans names and ids, in traces of four spans, each the next
// one's parent.
func chains(spans ptrace.SpanSlice, n int, names [4]string) {
	for i := range n {
		span := spans.AppendEmpty()
		span.SetName(names[i%4])
		span.SetTraceID(pcommon.TraceID{0: 1, 14: byte(i >> 10), 15: byte(i >> 2)})
		span.SetSpanID(pcommon.SpanID{0: 1, 6: byte(i >> 8), 7: byte(i)})
		if i%4 > 0 {
			span.SetParentSpanID(pcommon.SpanID{0: 1, 6: byte((i - 1) >> 8), 7: byte(i - 1)})
		}
		span.SetEndTimestamp(1e9)
	}
}

// tuningBatch is n spans of a fine-tuning service with ten attributes each,
// of which five have a canonical name. With what is derived they make ten
// more.
func tuningBatch(n int) ptrace.Traces {
	td := batchOf("tuft")
	spans := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	chains(spans, n, [4]string{"training_controller.run_forward", "future_store.execute_operation", "training_backend.forward", "hf_model.forward"})
	for _, span := range spans.All() {
		a := span.Attributes()
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

// agentBatch is n spans of an agent with ten attributes each, in which three
// have a canonical name for the root of a trace and none below it.
func agentBatch(n int) ptrace.Traces {
	td := batchOf("taskweaver.otlp.tracer")
	td.ResourceSpans().At(0).Resource().Attributes().PutStr("host.name", "n1")
	spans := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	chains(spans, n, [4]string{"Session.send_message", "Session._send_text_message", "Planner.reply", "_send_message"})
	for i, span := range spans.All() {
		a := span.Attributes()
		if i%4 == 0 {
			a.PutStr("session_id", "5f2c8e0a")
			a.PutStr("round_id", "c0ffee00")
		} else {
			a.PutStr("user_query", "what is the mean")
			a.PutInt("round_index", 2)
		}
		a.PutInt("internal_chat_num", 3)
		a.PutStr("message", "the mean is 3")
		a.PutStr("code.function", "run")
		a.PutStr("code.namespace", "taskweaver.session")
		a.PutInt("code.lineno", 100)
		a.PutInt("thread.id", 7)
		a.PutStr("thread.name", "main")
		a.PutBool("use_back_up_engine", false)
	}
	return td
}

// strangerBatch is n spans with ten attributes of a service that no
// vocabulary knows. Nothing is added to them.
func strangerBatch(n int) ptrace.Traces {
	td := batchOf("shop")
	spans := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
	chains(spans, n, [4]string{"GET /cart", "SELECT carts", "charge", "EXPIRE"})
	for _, span := range spans.All() {
		a := span.Attributes()
		a.PutStr("http.request.method", "GET")
		a.PutStr("url.path", "/cart")
		a.PutStr("url.scheme", "https")
		a.PutInt("http.response.status_code", 200)
		a.PutStr("server.address", "shop.example")
		a.PutInt("server.port", 443)
		a.PutStr("network.protocol.version", "2")
		a.PutStr("user_agent.original", "curl/8")
		a.PutStr("client.address", "192.0.2.7")
		a.PutInt("thread.id", 7)
	}
	return td
}

// renew gives the spans of a batch ids that were not there before, so that
// the store works as it does in service: what arrives is new, and it is full.
func renew(td ptrace.Traces, round int) {
	for _, span := range td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
		trace, id, parent := span.TraceID(), span.SpanID(), span.ParentSpanID()
		binary.BigEndian.PutUint32(trace[4:], uint32(round))
		binary.BigEndian.PutUint32(id[1:], uint32(round))
		binary.BigEndian.PutUint32(parent[1:], uint32(round))
		span.SetTraceID(trace)
		span.SetSpanID(id)
		if !span.ParentSpanID().IsEmpty() {
			span.SetParentSpanID(parent)
		}
		if request, ok := span.Attributes().Get("tuft.request_id"); ok {
			request.SetStr(trace.String())
		}
	}
}

// BenchmarkConsumeTraces measures batches of 512 spans through a processor
// whose store is full. The decoding of the batch is not timed; the garbage
// that it makes is collected meanwhile, as a receiver's is.
func BenchmarkConsumeTraces(b *testing.B) {
	const size, warm = 512, 200
	for _, bench := range []struct {
		name  string
		batch ptrace.Traces
	}{
		{"training/0_attributes", trainingBatch(size)},
		{"tuning/10_attributes", tuningBatch(size)},
		{"agent/10_attributes", agentBatch(size)},
		{"stranger/10_attributes", strangerBatch(size)},
	} {
		b.Run(bench.name, func(b *testing.B) {
			p, err := NewFactory().CreateTraces(context.Background(), processortest.NewNopSettings(metadata.Type), createDefaultConfig(), consumertest.NewNop())
			require.NoError(b, err)
			require.NoError(b, p.Start(context.Background(), componenttest.NewNopHost()))
			b.Cleanup(func() { require.NoError(b, p.Shutdown(context.Background())) })
			encoded, err := new(ptrace.ProtoMarshaler).MarshalTraces(bench.batch)
			require.NoError(b, err)
			b.ReportAllocs()
			for i := range b.N + warm {
				b.StopTimer()
				td, err := new(ptrace.ProtoUnmarshaler).UnmarshalTraces(encoded)
				if err != nil {
					b.Fatal(err)
				}
				renew(td, i)
				if i == warm {
					b.ResetTimer()
				}
				if i >= warm {
					b.StartTimer()
				}
				if err := p.ConsumeTraces(context.Background(), td); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/size, "ns/span")
		})
	}
}
