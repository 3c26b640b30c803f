package mlenrichprocessor

import (
	"context"
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/correlate"
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

// llmBatch is n spans of an instrumented LLM client with ten attributes each:
// an agent, a chain, a call and a tool.
func llmBatch(n int) ptrace.Traces {
	td := batchOf("assistant")
	ss := td.ResourceSpans().At(0).ScopeSpans().At(0)
	ss.Scope().SetName("opentelemetry.instrumentation.openai.v1")
	chains(ss.Spans(), n, [4]string{"agent", "chain", "openai.chat", "tool"})
	for i, span := range ss.Spans().All() {
		a := span.Attributes()
		if i%4 == 2 {
			a.PutStr("gen_ai.operation.name", "chat")
			a.PutStr("gen_ai.provider.name", "openai")
			a.PutStr("gen_ai.request.model", "gpt-4o-mini")
			a.PutStr("gen_ai.response.model", "gpt-4o-mini-2024-07-18")
			a.PutStr("gen_ai.response.id", "chatcmpl")
			a.PutInt("gen_ai.usage.input_tokens", 100)
			a.PutInt("gen_ai.usage.output_tokens", 51)
			a.PutInt("llm.usage.total_tokens", 151)
			a.PutBool("llm.is_streaming", false)
			a.PutStr("server.address", "api.example")
			continue
		}
		a.PutStr("traceloop.workflow.name", "answer")
		a.PutStr("traceloop.entity.name", "answer")
		a.PutStr("traceloop.entity.path", "")
		a.PutStr("traceloop.entity.input", "{}")
		a.PutStr("traceloop.entity.output", "{}")
		a.PutStr("code.function", "run")
		a.PutStr("code.namespace", "app")
		a.PutInt("code.lineno", 100)
		a.PutInt("thread.id", 7)
		a.PutStr("thread.name", "main")
	}
	return td
}

// mixedBatch is n spans of all of these, as one collector for several teams
// gets them.
func mixedBatch(n int) ptrace.Traces {
	td := ptrace.NewTraces()
	for _, batch := range []func(int) ptrace.Traces{trainingBatch, tuningBatch, agentBatch, strangerBatch, llmBatch} {
		batch(n / 5).ResourceSpans().MoveAndAppendTo(td.ResourceSpans())
	}
	for i, rs := range td.ResourceSpans().All() {
		for _, span := range rs.ScopeSpans().At(0).Spans().All() {
			trace := span.TraceID()
			trace[1] = byte(i) // each client has traces of its own
			span.SetTraceID(trace)
		}
	}
	return td
}

// benchBatches are what the benchmark and the count of allocations send.
func benchBatches(size int) map[string]ptrace.Traces {
	return map[string]ptrace.Traces{
		"training/0_attributes":  trainingBatch(size),
		"training/route_by_run":  trainingBatch(size),
		"tuning/10_attributes":   tuningBatch(size),
		"tuning/route_by_run":    tuningBatch(size),
		"agent/10_attributes":    agentBatch(size),
		"llm/10_attributes":      llmBatch(size),
		"llm/route_by_run":       llmBatch(size),
		"stranger/10_attributes": strangerBatch(size),
		"mixed":                  mixedBatch(size),
	}
}

// benchConfig returns the configuration for a batch of benchBatches.
func benchConfig(name string) *Config {
	cfg := createDefaultConfig().(*Config)
	cfg.RouteByRun = strings.HasSuffix(name, "/route_by_run")
	return cfg
}

// renew gives the spans of a batch ids that were not there before, so that
// the store works as it does in service: what arrives is new, and it is full.
func renew(td ptrace.Traces, round int) {
	for _, rs := range td.ResourceSpans().All() {
		for _, span := range rs.ScopeSpans().At(0).Spans().All() {
			trace, id, parent := span.TraceID(), span.SpanID(), span.ParentSpanID()
			binary.BigEndian.PutUint32(trace[4:], uint32(round))
			binary.BigEndian.PutUint32(id[1:], uint32(round))
			binary.BigEndian.PutUint32(parent[1:], uint32(round))
			span.SetTraceID(trace)
			span.SetSpanID(id)
			if !span.ParentSpanID().IsEmpty() {
				span.SetParentSpanID(parent)
			}
			for _, key := range [...]string{"tuft.request_id", "gen_ai.response.id"} {
				if request, ok := span.Attributes().Get(key); ok {
					request.SetStr(trace.String())
				}
			}
		}
	}
}

// BenchmarkConsumeTraces measures batches of 512 spans through a processor
// whose store is full. The decoding of the batch is not timed; the garbage
// that it makes is collected meanwhile, as a receiver's is.
func BenchmarkConsumeTraces(b *testing.B) {
	const size, warm = 512, 200
	batches := benchBatches(size)
	for _, name := range slices.Sorted(maps.Keys(batches)) {
		b.Run(name, func(b *testing.B) {
			p, err := NewFactory().CreateTraces(context.Background(), processortest.NewNopSettings(metadata.Type), benchConfig(name), consumertest.NewNop())
			require.NoError(b, err)
			require.NoError(b, p.Start(context.Background(), componenttest.NewNopHost()))
			b.Cleanup(func() { require.NoError(b, p.Shutdown(context.Background())) })
			encoded, err := new(ptrace.ProtoMarshaler).MarshalTraces(batches[name])
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
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(batches[name].SpanCount()), "ns/span")
		})
	}
}

// TestAllocations shows what enriching a span costs in allocations where the
// store is full: one for each attribute that it gets, which pdata makes, and one
// for the longer list of attributes.
func TestAllocations(t *testing.T) {
	const size, rounds = 512, 10
	for name, batch := range benchBatches(size) {
		t.Run(name, func(t *testing.T) {
			e := newEnricher(processortest.NewNopSettings(metadata.Type), benchConfig(name), new(shared.Registry[*store]))
			require.NoError(t, e.start(context.Background(), componenttest.NewNopHost()))
			t.Cleanup(func() { require.NoError(t, e.stores.Shutdown(context.Background())) })
			// Full after two batches.
			limits := correlate.DefaultLimits()
			limits.Traces, limits.Joins, limits.Answers = size/2, size/2, size/2
			e.store.keys = correlate.NewStore(e.store.now, limits)
			sent := make([]ptrace.Traces, 3*rounds)
			for i := range sent {
				sent[i] = ptrace.NewTraces()
				batch.CopyTo(sent[i])
				renew(sent[i], i)
			}
			had := attributesOf(sent[0])
			next := 0
			consume := func() {
				_, err := e.processTraces(context.Background(), sent[next])
				require.NoError(t, err)
				next++
			}
			for range rounds {
				consume()
			}
			spans := float64(batch.SpanCount())
			// The race detector lets the pool lose a batch's memory every fourth time,
			// so the least of several batches is what one costs.
			allocations := math.Inf(1)
			for range rounds {
				allocations = min(allocations, testing.AllocsPerRun(1, consume)/spans)
			}
			added := float64(attributesOf(sent[0])-had) / spans
			t.Logf("%.2f attributes added and %.2f allocations a span", added, allocations)
			assert.LessOrEqual(t, allocations, added+1+0.1)
			if name == "mixed" {
				assert.LessOrEqual(t, added, 4.0)
			}
		})
	}
}

func attributesOf(td ptrace.Traces) (n int) {
	for _, m := range tracesMaps(td) {
		n += m.Len()
	}
	return n
}
