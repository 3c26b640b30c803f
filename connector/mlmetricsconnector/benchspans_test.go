package mlmetricsconnector

import (
	"encoding/binary"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// benchSpan is a kind of span as it leaves ml_enrich.
type benchSpan struct {
	name       string
	attributes map[string]any
}

// benchClients are the clients whose spans are measured, with what ml_enrich
// adds to them.
var benchClients = []struct {
	name     string
	resource map[string]any
	spans    []benchSpan
}{
	{
		name:     "stranger",
		resource: map[string]any{"service.name": "shop", "ml.run.id": "s", "ml.run.inferred": true},
		spans: []benchSpan{{"GET /cart", map[string]any{
			"http.request.method": "GET", "url.path": "/cart", "url.scheme": "https", "http.response.status_code": 200,
			"server.address": "shop.example", "server.port": 443, "network.protocol.version": "2",
			"user_agent.original": "curl/8", "client.address": "192.0.2.7", "thread.id": 7,
		}}},
	},
	{
		name: "training",
		resource: map[string]any{
			"service.name": "torchtel", "job_id": 4711, "global_rank": 3, "host": "n1",
			"ml.run.id": "4711", "ml.job.id": "4711", "ml.rank.global": 3, "host.name": "n1",
		},
		spans: []benchSpan{
			{"dataloader.next", map[string]any{"ml.phase": "data_load"}},
			{"Llama.forward", map[string]any{"ml.phase": "forward"}},
			{"autograd.backward", map[string]any{"ml.phase": "backward"}},
			{"AdamW.step", map[string]any{"ml.phase": "optimizer"}},
		},
	},
	{
		name:     "tuning",
		resource: map[string]any{"service.name": "tuft", "service.version": "0.3"},
		spans: []benchSpan{
			{"training_controller.run_forward_backward", map[string]any{
				"tuft.session_id": "s1", "tuft.training_run_id": "r1", "tuft.request_id": "q1", "tuft.operation_type": "forward_backward",
				"tuft.base_model": "Qwen/Qwen3-8B", "tuft.data_count": 32, "tuft.backward": true, "tuft.loss_fn": "cross_entropy",
				"ml.session.id": "s1", "ml.training_run.id": "r1", "ml.request.id": "q1", "ml.operation": "forward_backward",
				"ml.phase": "forward_backward", "gen_ai.request.model": "Qwen/Qwen3-8B", "ml.batch.size": 32,
				"ml.samples_per_second": 12.5, "ml.throughput.basis": "span", "ml.run.id": "r1",
			}},
			{"hf_model.optim_step", map[string]any{
				"tuft.lora_id": "r1", "tuft.learning_rate": 0.0001, "tuft.optimizer": "adamw", "tuft.checkpoint_type": "none",
				"ml.training_run.id": "r1", "ml.phase": "optimizer", "ml.operation": "optim_step", "ml.learning_rate": 0.0001,
				"ml.session.id": "s1", "ml.run.id": "r1", "ml.correlation.source": "session=trace,run=trace",
			}},
		},
	},
	{
		name:     "agent",
		resource: map[string]any{"service.name": "taskweaver.otlp.tracer", "ml.run.id": "t", "ml.run.inferred": true},
		spans: []benchSpan{
			{"Session.send_message", map[string]any{
				"session_id": "s1", "round_id": "q1", "prompt": "what is it", "message": "m",
				"ml.session.id": "s1", "gen_ai.conversation.id": "s1", "ml.request.id": "q1",
			}},
			{"Planner.reply", map[string]any{
				"prompt_size": 1200, "output_size": 80, "round_id": "q1", "round_index": 1, "ml.role": "Planner",
				"gen_ai.usage.input_tokens": 1200, "gen_ai.usage.output_tokens": 80, "ml.tokens.estimated": true,
				"ml.tokens_per_second": 33.0, "ml.throughput.basis": "span", "ml.request.id": "q1", "ml.session.id": "s1",
				"ml.correlation.source": "session=trace",
			}},
		},
	},
	{
		name:     "llm",
		resource: map[string]any{"service.name": "chat", "ml.run.id": "c", "ml.run.inferred": true},
		spans: []benchSpan{{"chat gpt-4o-mini", map[string]any{
			"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-4o-mini",
			"gen_ai.response.model": "gpt-4o-mini-2024-07-18", "gen_ai.response.id": "chatcmpl", "gen_ai.usage.input_tokens": 100,
			"gen_ai.usage.output_tokens": 51, "llm.usage.total_tokens": 151, "llm.is_streaming": false, "server.address": "api.example",
			"ml.tokens_per_second": 33.0, "ml.throughput.basis": "span", "ml.request.id": "chatcmpl",
		}}},
	},
	{
		name:     "batches",
		resource: map[string]any{"service.name": "fx", "ml.run.id": "f", "ml.run.inferred": true},
		spans: []benchSpan{{"batch_processing", map[string]any{
			"batch_index": 17, "batch_size": 64, "loss": 0.693, "task.direction": 0.4, "task.volatility": 0.29, "epoch": 3,
			"ml.batch.index": 17, "ml.batch.size": 64, "ml.loss": 0.693, "ml.loss.task.direction": 0.4, "ml.loss.task.volatility": 0.29,
			"ml.epoch": 3, "ml.phase": "batch", "ml.operation": "batch_processing", "ml.loss.scope": "batch", "ml.samples_per_second": 3200.0,
		}}},
	},
}

// benchSpans is a request of n spans of the client of a name, or with all of
// them in turn, as a gateway gets them.
func benchSpans(client string, n int) ptrace.Traces {
	td := ptrace.NewTraces()
	for i := 0; td.SpanCount() < n; i++ {
		c := &benchClients[i%len(benchClients)]
		if client != "mixed" && client != c.name {
			continue
		}
		rs := td.ResourceSpans().AppendEmpty()
		if err := rs.Resource().Attributes().FromRaw(c.resource); err != nil {
			panic(err)
		}
		spans := rs.ScopeSpans().AppendEmpty().Spans()
		for j := range 32 {
			s := &c.spans[j%len(c.spans)]
			span := spans.AppendEmpty()
			span.SetName(s.name)
			if err := span.Attributes().FromRaw(s.attributes); err != nil {
				panic(err)
			}
			if j > 0 {
				span.SetParentSpanID(pcommon.SpanID{1})
			}
		}
	}
	return td
}

// renew gives the spans new ids, and times that go on.
func renew(td ptrace.Traces, round uint64) {
	now := time.Now()
	for i, rs := range td.ResourceSpans().All() {
		for j, span := range rs.ScopeSpans().At(0).Spans().All() {
			var trace pcommon.TraceID
			binary.BigEndian.PutUint64(trace[:], round)
			binary.BigEndian.PutUint64(trace[8:], uint64(i)) // #nosec G115 -- not negative
			span.SetTraceID(trace)
			var id pcommon.SpanID
			binary.BigEndian.PutUint64(id[:], round<<16|uint64(i)<<8|uint64(j)) // #nosec G115 -- not negative
			span.SetSpanID(id)
			span.SetStartTimestamp(pcommon.NewTimestampFromTime(now.Add(-time.Millisecond)))
			span.SetEndTimestamp(pcommon.NewTimestampFromTime(now))
		}
	}
}
