//go:build linux

package main

import (
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

// spansOfTrace is how many spans the traces of a service have.
const spansOfTrace = 8

// client is a system that sends spans: its resource, and the spans of one
// trace in the order in which they begin. The first is the root.
type client struct {
	resource map[string]any
	spans    []call
}

// call is a span. A value that is nil is a text that no two traces share.
type call struct {
	name       string
	attributes map[string]any
}

// clients are made after what the real ones were seen to send, see
// docs/evidence/vocabulary-notes.md. Spans have 4 to 12 attributes, except TorchTel's,
// which have none, and some of a program that is none of them.
var clients = []client{
	{
		resource: map[string]any{
			"service.name": "torchtel", "job_id": 4711, "job_name": "llama", "user": "ada", "cluster": "c1",
			"local_rank": 1, "global_rank": 3, "world_size": 8, "host": "gpu-node-1",
		},
		spans: []call{{name: "dataloader.next"}, {name: "Llama.forward"}, {name: "autograd.backward"}, {name: "AdamW.step"}},
	},
	{
		resource: map[string]any{"service.name": "tuft", "service.version": "0.3", "telemetry.sdk.language": "python"},
		spans: []call{
			{"training_controller.run_forward_backward", map[string]any{
				"tuft.session_id": nil, "tuft.training_run_id": nil, "tuft.request_id": nil, "tuft.operation_type": "forward_backward",
				"tuft.base_model": "Qwen/Qwen3-8B", "tuft.data_count": 32, "tuft.backward": true, "tuft.loss_fn": "cross_entropy",
			}},
			{"future_store.execute_operation", map[string]any{
				"tuft.request_id": nil, "tuft.operation_type": "forward_backward", "tuft.model_id": nil, "tuft.queue_state": "active",
			}},
			{"hf_model.forward_backward", map[string]any{
				"tuft.lora_id": nil, "tuft.data_count": 32, "tuft.num_micro_batches": 4, "tuft.lora_rank": 16, "tuft.lora_alpha": 32, "tuft.backward": true,
			}},
			{"hf_model.optim_step", map[string]any{
				"tuft.lora_id": nil, "tuft.learning_rate": 0.0001, "tuft.optimizer": "adamw", "tuft.checkpoint_type": "none",
			}},
		},
	},
	{
		resource: map[string]any{"service.name": "snakepit", "service.instance.id": "w-1"},
		spans: []call{
			{"snakepit.grpc.execute.predict", map[string]any{
				"snakepit.worker.id": "w-1", "snakepit.worker.pid": 4242, "snakepit.pool": "default", "snakepit.command": "predict",
				"snakepit.session_id": nil, "snakepit.correlation_id": nil, "snakepit.timeout_ms": 30000, "snakepit.grpc.duration_ms": 12.5, "snakepit.grpc.status": "ok",
			}},
			{"BridgeService/ExecuteTool", map[string]any{
				"snakepit.session_id": nil, "snakepit.tool": "predict", "snakepit.thread": "t-1", "snakepit.correlation_id": nil,
			}},
		},
	},
	{
		resource: map[string]any{"service.name": "fx"},
		spans: []call{{"batch_processing", map[string]any{
			"batch_index": 17, "batch_size": 64, "loss": 0.693, "task.direction": 0.4, "task.volatility": 0.29, "epoch": 3,
		}}},
	},
	{
		resource: map[string]any{"service.name": "taskweaver.otlp.tracer"},
		spans: []call{
			{"Session.send_message", map[string]any{"session_id": nil, "round_id": nil, "prompt": "what is it", "message": "m"}},
			{"Planner.reply", map[string]any{"prompt_size": 1200, "output_size": 80, "round_id": nil, "round_index": 1}},
			{"CodeInterpreter.reply", map[string]any{"prompt_size": 900, "output_size": 120, "round_id": nil, "round_index": 1}},
		},
	},
	{
		resource: map[string]any{"service.name": "chat", "deployment.environment.name": "prod"},
		spans: []call{
			{"agent", map[string]any{"openinference.span.kind": "AGENT", "session.id": nil, "input.value": "question", "output.value": "answer"}},
			{"ChatCompletion", map[string]any{
				"openinference.span.kind": "LLM", "llm.model_name": "m", "llm.token_count.prompt": 900, "llm.token_count.completion": 120,
				"llm.token_count.total": 1020, "llm.provider": "p", "llm.invocation_parameters": "{}", "input.value": "q", "output.value": "a",
				"input.mime_type": "text/plain", "session.id": nil, "user.id": nil,
			}},
		},
	},
	{
		resource: map[string]any{"service.name": "shop", "service.version": "1"},
		spans: []call{
			{"GET /cart", map[string]any{
				"http.request.method": "GET", "url.path": "/cart", "http.response.status_code": 200, "server.address": "shop",
				"network.protocol.version": "1.1", "user_agent.original": "curl",
			}},
			{"SELECT", map[string]any{"db.system.name": "postgresql", "db.namespace": "shop", "db.query.text": "SELECT 1", "server.address": "db"}},
		},
	},
}

// failing is how many spans there are for each that failed with a call that
// can be reproduced.
const failing = 100

// tracesRequest has each client's spans in turn, as a gateway gets them.
func tracesRequest(random *rand.Rand) ptrace.Traces {
	td := ptrace.NewTraces()
	left := itemsOfRequest
	for at := 0; left > 0; at++ {
		c := &clients[at%len(clients)]
		rs := td.ResourceSpans().AppendEmpty()
		put(rs.Resource().Attributes(), c.resource, "")
		spans := rs.ScopeSpans().AppendEmpty().Spans()
		for n := min(left, 4*spansOfTrace); n > 0; {
			n -= c.trace(spans, min(n, spansOfTrace), random)
		}
		left -= spans.Len()
	}
	return td
}

// trace appends the spans of one trace, children first, as they end.
func (c *client) trace(to ptrace.SpanSlice, size int, random *rand.Rand) int {
	var trace [16]byte
	binary.NativeEndian.PutUint64(trace[:], random.Uint64())
	binary.NativeEndian.PutUint64(trace[8:], random.Uint64())
	unique := strconv.FormatUint(random.Uint64(), 36)
	root := random.Uint64() | 1
	end := time.Now()
	for i := size - 1; i >= 0; i-- {
		call := &c.spans[i%len(c.spans)]
		span := to.AppendEmpty()
		span.SetTraceID(trace)
		span.SetName(call.name)
		id := root
		if i > 0 {
			id = root + uint64(i)
			span.SetParentSpanID(spanID(root))
		}
		span.SetSpanID(spanID(id))
		span.SetStartTimestamp(pcommon.NewTimestampFromTime(end.Add(-time.Duration(20+i) * time.Millisecond)))
		span.SetEndTimestamp(pcommon.NewTimestampFromTime(end.Add(-time.Duration(i) * time.Millisecond)))
		put(span.Attributes(), call.attributes, unique)
		if random.IntN(failing) == 0 {
			fail(span)
		}
	}
	return size
}

func spanID(id uint64) (raw pcommon.SpanID) {
	binary.NativeEndian.PutUint64(raw[:], id)
	return raw
}

// fail makes a span one of a call that failed.
func fail(span ptrace.Span) {
	span.Status().SetCode(ptrace.StatusCodeError)
	span.Attributes().PutStr("repro.payload", `{"python_module":"math","function":"sqrt","args":[-1],"kwargs":{},"call_type":"function"}`)
	event := span.Events().AppendEmpty()
	event.SetName("exception")
	event.Attributes().PutStr("exception.type", "ValueError")
	event.Attributes().PutStr("exception.message", "math domain error")
	event.Attributes().PutStr("exception.stacktrace", "Traceback (most recent call last):\n  File \"app.py\", line 7, in predict\nValueError: math domain error\n")
}

func put(to pcommon.Map, values map[string]any, unique string) {
	to.EnsureCapacity(len(values))
	// In order: the same seed makes the same spans.
	for _, key := range slices.Sorted(maps.Keys(values)) {
		switch v := values[key].(type) {
		case string:
			to.PutStr(key, v)
		case int:
			to.PutInt(key, int64(v))
		case float64:
			to.PutDouble(key, v)
		case bool:
			to.PutBool(key, v)
		default:
			to.PutStr(key, unique)
		}
	}
}

func countSpans(encoded []byte) (items, attributes int, err error) {
	request := ptraceotlp.NewExportRequest()
	if err := request.UnmarshalProto(encoded); err != nil {
		return 0, 0, err
	}
	for _, rs := range request.Traces().ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			items += ss.Spans().Len()
			for _, span := range ss.Spans().All() {
				attributes += span.Attributes().Len()
			}
		}
	}
	return items, attributes, nil
}
