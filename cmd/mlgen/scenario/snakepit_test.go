package scenario

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
)

func TestSnakepitVocabulary(t *testing.T) {
	out := send(t, "snakepit", 120)
	assert.Equal(t, []string{
		"BridgeService/CleanupSession", "BridgeService/ExecuteStreamingTool", "BridgeService/ExecuteTool",
		"BridgeService/GetSession", "BridgeService/Heartbeat", "BridgeService/InitializeSession", "BridgeService/Ping", "HeartbeatClient/SendPing",
		"snakepit.grpc.call", "snakepit.grpc.execute-session.tensor_op",
		"snakepit.grpc.execute.call", "snakepit.grpc.execute.infer",
		"snakepit.grpc.execute.train_step", "snakepit.grpc.infer", "snakepit.grpc.train_step",
	}, names(out.spans))
	assert.Equal(t, []string{
		"repro.payload", "repro.payload.sha256", "repro.payload.size",
		"snakepit.command", "snakepit.correlation_id", "snakepit.grpc.duration_ms", "snakepit.grpc.error",
		"snakepit.grpc.error_kind", "snakepit.grpc.errors", "snakepit.grpc.executions", "snakepit.grpc.status",
		"snakepit.pool", "snakepit.request_id", "snakepit.session_id", "snakepit.telemetry.operation", "snakepit.thread", "snakepit.timeout_ms",
		"snakepit.tool", "snakepit.worker.id", "snakepit.worker.pid",
	}, keys(out.spans))
	assert.Equal(t, []string{
		"snakepit.call.duration histogram ms", "snakepit.call.exceptions sum {exception}",
		"snakepit.call.queue_time histogram ms", "snakepit.call.total sum {call}",
		"snakepit.gpu.memory.used_mb gauge MB", "snakepit.gpu.power.watts gauge W", "snakepit.gpu.utilization.percent gauge %",
		"snakepit.memory.allocated_bytes gauge By", "snakepit.memory.gpu.allocated_mb gauge MB", "snakepit.memory.gpu.free_mb gauge MB",
		"snakepit.ml.inference.duration histogram ms", "snakepit.ml.inference.tokens_per_second histogram tokens/s",
		"snakepit.pool.busy gauge {worker}", "snakepit.pool.idle gauge {worker}", "snakepit.pool.size gauge {worker}",
		"snakepit.worker.crashes sum {crash}",
	}, metricNames(out.metrics))
	events := map[string]bool{}
	for _, span := range out.spans {
		for _, e := range span.Events {
			events[e.Name] = true
		}
	}
	for _, name := range []string{
		"snakepit.grpc.duration", "snakepit.call.start", "snakepit.call.stop", "snakepit.call.exception",
		"snakepit.pool.checkout", "snakepit.pool.checkin", "snakepit.pool.size", "snakepit.memory.allocate", "snakepit.memory.release",
		"snakepit.memory.gpu", "snakepit.serialize.stop", "snakepit.ml.tensor_op", "snakepit.ml.inference",
		"snakepit.ml.train_step", "snakepit.worker.crash", "snakepit.circuit_breaker.open", "snakepit.health.alert", "exception",
	} {
		assert.True(t, events[name], "no event %s", name)
	}
}

func TestSnakepitResources(t *testing.T) {
	right, wrong, python := 0, 0, 0
	for _, span := range send(t, "snakepit", 30).spans {
		switch span.Resource["service.name"] {
		case "snakepit":
			right++
			assert.NotContains(t, span.Resource, "service_name")
		case "unknown_service:erl":
			wrong++
			assert.Equal(t, "snakepit", span.Resource["service_name"])
		case "snakepit.python.bridge":
			python++
			assert.Equal(t, "snakepit.bridge", span.Scope.Name)
		default:
			t.Errorf("unexpected resource %v", span.Resource)
		}
	}
	assert.NotZero(t, right)
	assert.NotZero(t, wrong)
	assert.NotZero(t, python)
}

// TestSnakepitCorrelation shows that a call and its Python side share the
// correlation id and no trace, and that a streaming call has a Python side only.
// All else has an id that nothing else has.
func TestSnakepitCorrelation(t *testing.T) {
	out := send(t, "snakepit", 60)
	elixir := map[any]string{}
	for _, span := range out.spans {
		if strings.HasPrefix(span.Name, "snakepit.grpc.") {
			elixir[span.Attributes["snakepit.correlation_id"]] = span.TraceID
		}
	}
	tools := 0
	for _, span := range out.spans {
		if !strings.HasPrefix(span.Name, "BridgeService/Execute") {
			continue
		}
		tools++
		assert.Empty(t, span.ParentSpanID)
		assert.Regexp(t, "^sp-[0-9a-f]{24}$", span.Attributes["snakepit.correlation_id"])
		trace, ok := elixir[span.Attributes["snakepit.correlation_id"]]
		assert.Equal(t, span.Name == "BridgeService/ExecuteTool", ok, "%s is known by its correlation id", span.Name)
		assert.NotEqual(t, trace, span.TraceID)
	}
	assert.NotZero(t, tools)
	assert.NotEmpty(t, out.named("BridgeService/ExecuteStreamingTool"))
	for _, name := range []string{"Ping", "Heartbeat", "GetSession", "InitializeSession", "CleanupSession"} {
		for _, span := range out.named("BridgeService/" + name) {
			assert.Empty(t, span.ParentSpanID)
			assert.Regexp(t, "^[0-9a-f]{32}$", span.Attributes["snakepit.correlation_id"], name)
		}
	}
}

// TestSnakepitPings shows that the pings of the default server belong to the span
// that opened the session, which ended long before.
func TestSnakepitPings(t *testing.T) {
	out := send(t, "snakepit", 60)
	byID := map[string]*sentlog.Span{}
	for _, span := range out.spans {
		byID[span.SpanID] = span
	}
	pings := out.named("HeartbeatClient/SendPing")
	require.Len(t, pings, 10)
	for _, span := range pings {
		opened := byID[span.ParentSpanID]
		require.NotNil(t, opened)
		assert.Equal(t, "BridgeService/InitializeSession", opened.Name)
		assert.Equal(t, opened.TraceID, span.TraceID)
		assert.Equal(t, opened.Attributes["snakepit.correlation_id"], span.Attributes["snakepit.correlation_id"])
		assert.Equal(t, opened.Attributes["snakepit.session_id"], span.Attributes["snakepit.session_id"])
	}
	last := pings[len(pings)-1]
	assert.Greater(t, last.StartUnixNano, byID[last.ParentSpanID].EndUnixNano)
}

// TestSnakepitServers tells the two kinds of server apart: the one with threads
// numbers its calls and reports exceptions, the default does neither.
func TestSnakepitServers(t *testing.T) {
	numbers := map[any][]int64{}
	failed := 0
	out := send(t, "snakepit", 120)
	for _, span := range append(out.named("BridgeService/ExecuteTool"), out.named("BridgeService/ExecuteStreamingTool")...) {
		if span.Status.Code == "error" {
			failed++
			require.Len(t, span.Events, 1)
			assert.Contains(t, span.Attributes, "snakepit.thread")
		} else {
			assert.Empty(t, span.Events)
			assert.Equal(t, "unset", span.Status.Code)
		}
		number, ok := span.Attributes["snakepit.request_id"]
		if !ok {
			assert.NotContains(t, span.Attributes, "snakepit.thread")
			continue
		}
		assert.Equal(t, "MainThread", span.Attributes["snakepit.thread"])
		instance := span.Resource["service.instance.id"]
		numbers[instance] = append(numbers[instance], number.(int64))
	}
	assert.NotZero(t, failed)
	require.Len(t, numbers, 1, "one of the nodes has the server with threads")
	for _, list := range numbers {
		slices.Sort(list)
		for i, number := range list {
			assert.Equal(t, int64(i+1), number)
		}
	}
}

func TestSnakepitFailure(t *testing.T) {
	batches := perform(t, "snakepit", testSettings(), 70)
	out := flatten(batches)
	byID := map[string]*sentlog.Span{}
	for _, span := range out.spans {
		byID[span.SpanID] = span
	}
	targets := map[string]int{}
	for _, failure := range out.truth.Failures {
		span := byID[failure.SpanID]
		require.NotNil(t, span)
		assert.Equal(t, failure.TraceID, span.TraceID)
		assert.Equal(t, "error", span.Status.Code)
		if failure.ExceptionType == "worker_crash" {
			assert.Equal(t, "worker_crash", span.Attributes["snakepit.grpc.error_kind"])
		} else {
			assert.NotContains(t, span.Attributes, "snakepit.grpc.error_kind", "what failed is only within the text")
		}
		if !failure.Payload {
			continue
		}
		assert.Regexp(t, `^%Snakepit\.Error\.(PythonException|ValueError)\{message: "`, span.Attributes["snakepit.grpc.error"])
		assert.Equal(t, span.Attributes["snakepit.grpc.error"], span.Status.Message)
		short := failure.ExceptionType[strings.LastIndexByte(failure.ExceptionType, '.')+1:]
		assert.Contains(t, span.Status.Message, "python_type: \""+short+"\"")
		targets[failure.Target]++
		text := span.Attributes["repro.payload"].(string)
		sum := sha256.Sum256([]byte(text))
		assert.Equal(t, hex.EncodeToString(sum[:]), span.Attributes["repro.payload.sha256"])
		assert.Equal(t, int64(len(text)), span.Attributes["repro.payload.size"])
		var call payload
		require.NoError(t, json.Unmarshal([]byte(text), &call))
		assert.Equal(t, failure.Target, call.PythonModule+"."+call.Function)
		parent := byID[span.ParentSpanID]
		require.NotNil(t, parent)
		assert.Equal(t, "error", parent.Status.Code)
		assert.NotContains(t, parent.Attributes, "repro.payload", "the deepest span has the payload")
	}
	assert.Equal(t, map[string]int{"statistics.mean": 7, "json.loads": 1, "datetime.date": 1}, targets)
	assertPayloadFirst(t, batches)
}

// assertPayloadFirst looks at the order on the wire, which a map has not.
func assertPayloadFirst(t *testing.T, batches []Batch) {
	t.Helper()
	eachSpan(batches, func(span ptrace.Span) {
		if _, ok := span.Attributes().Get("repro.payload"); !ok {
			return
		}
		for k := range span.Attributes().All() {
			assert.Equal(t, "repro.payload", k)
			break
		}
	})
}

func eachSpan(batches []Batch, visit func(ptrace.Span)) {
	for _, b := range batches {
		if b.Signal != sentlog.SignalTraces {
			continue
		}
		for _, rs := range b.Traces.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, span := range ss.Spans().All() {
					visit(span)
				}
			}
		}
	}
}

func TestSnakepitCallsAreCounted(t *testing.T) {
	out := send(t, "snakepit", 60)
	total := map[string]int64{}
	for _, point := range out.last("snakepit.call.total") {
		total[point.Attributes["library"].(string)+"."+point.Attributes["function"].(string)] += int64(point.Value)
	}
	assert.Equal(t, out.truth.Requests, total)
}

// TestSnakepitWorkers adds up what the events tell of pools and memory.
func TestSnakepitWorkers(t *testing.T) {
	held := map[any]int64{}
	sizes, slow := 0, 0
	for _, span := range send(t, "snakepit", 120).spans {
		instance := span.Resource["service.instance.id"]
		for _, e := range span.Events {
			number := func(key string) int64 {
				n, ok := e.Attributes[key].(int64)
				require.True(t, ok, "%s has no %s", e.Name, key)
				return n
			}
			switch e.Name {
			case "snakepit.pool.size":
				sizes++
				assert.Equal(t, number("size"), number("idle")+number("busy"))
			case "snakepit.memory.allocate":
				held[instance] += number("bytes")
			case "snakepit.memory.release":
				held[instance] -= number("bytes")
			case "snakepit.call.stop":
				if number("duration") > 1e9 {
					slow++
				}
			}
		}
	}
	assert.NotZero(t, sizes)
	assert.NotZero(t, slow)
	require.Len(t, held, 2, "the nodes are told apart by their instance")
	for instance, bytes := range held {
		assert.NotEmpty(t, instance)
		assert.GreaterOrEqual(t, bytes, int64(snakepitTensor), "%s holds its last tensor", instance)
		assert.LessOrEqual(t, bytes, int64(4*snakepitTensor), instance)
	}
}

// TestFailuresAreReal asks a real Python whether the calls fail as the spans say.
func TestFailuresAreReal(t *testing.T) {
	python, err := exec.LookPath("python3")
	require.NoError(t, err, "this test runs the calls in a real Python")
	const program = `
import importlib, json, sys
call = json.loads(sys.argv[1])
try:
    getattr(importlib.import_module(call["python_module"]), call["function"])(*call["args"], **call["kwargs"])
except Exception as e:
    kind = type(e)
    name = kind.__qualname__ if kind.__module__ == "builtins" else kind.__module__ + "." + kind.__qualname__
    print(json.dumps([name, str(e), sys.version_info[:2] == (3, 11)]))
`
	for _, failure := range pythonFailures {
		t.Run(failure.module+"."+failure.function, func(t *testing.T) {
			output, err := exec.CommandContext(t.Context(), python, "-I", "-c", program, failure.payload()).CombinedOutput()
			require.NoError(t, err, string(output))
			var said []any
			require.NoError(t, json.Unmarshal(output, &said), "the call did not fail: %s", output)
			assert.Equal(t, failure.exception.kind, said[0])
			if said[2] == true {
				assert.Equal(t, failure.exception.message, said[1])
			}
		})
	}
}
