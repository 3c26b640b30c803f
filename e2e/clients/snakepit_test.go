package clients

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
	"github.com/otelcol-ml/otelcol-ml/e2e/view"
)

// snakepitBridge is the service of Snakepit's Python workers.
const snakepitBridge = "snakepit.python.bridge"

// TestSnakepit follows calls through Snakepit's two sides, which have nothing
// in common but an id in an attribute, and failed calls to programs that fail
// in the same way.
func TestSnakepit(t *testing.T) {
	truth := harness.RunExample(t, harness.Example{Name: "snakepit", Endpoint: overHTTP(t)})
	spans := jaeger.AwaitSpanCounts(t, truth.Services, truth.Spans)

	t.Run("session", func(t *testing.T) {
		require.Len(t, truth.Keys["session"], 1)
		session := truth.Keys["session"][0]
		for _, span := range spans {
			// A ping has no session.
			if span.Span.Name() != "BridgeService/Ping" {
				assert.Equal(t, session, span.Attributes["ml.session.id"], span.Span.Name())
			}
		}
	})
	t.Run("operations", func(t *testing.T) {
		assert.Equal(t, map[string]int{
			"ping": 1, "initialize_session": 2, "get_session": 1, "cleanup_session": 2, "heartbeat": 2,
			"execute_tool": 11, "execute_streaming_tool": 1,
			"call": 18, "reported_call": 2,
		}, values(spans, "ml.operation"))
	})
	t.Run("both sides share a request id", func(t *testing.T) { checkBothSides(t, spans, truth) })
	t.Run("heartbeats", func(t *testing.T) { checkHeartbeats(t, spans) })
	t.Run("failures", func(t *testing.T) { checkSnakepitFailures(t, spans, truth) })
	t.Run("kept back", func(t *testing.T) { checkKeptBack(t, spans) })
	t.Run("calls", func(t *testing.T) {
		// A plain call has a span around this one, and is one call all the same.
		calls := withPrefix(spans, "snakepit.grpc.execute.", "snakepit.grpc.execute-session.")
		checkCalls(t, "ml_call_duration_seconds", "snakepit/snakepit", calls, attribute("snakepit.command"), false)
		checkCalls(t, "ml_call_python_time_seconds", "snakepit/"+snakepitBridge,
			withPrefix(spans, "BridgeService/Execute"), attribute("snakepit.tool"), true)
	})
	t.Run("error counts", func(t *testing.T) {
		prometheus.AwaitValues(t, `sum by (error_type) (ml_errors_total{job="snakepit/snakepit.python.bridge"})`,
			"error_type", map[string]float64{"statistics.StatisticsError": 1, "ValueError": 1})
		require.InDelta(t, 3, truth.Numbers["python failures"], 0)
		// Elixir prints the class without its module, and so knows of one more
		// failure than the spans of Python.
		prometheus.AwaitValues(t, `sum by (error_type) (ml_errors_total{job="snakepit/snakepit"})`,
			"error_type", map[string]float64{"StatisticsError": 1, "ValueError": 1, "JSONDecodeError": 1})
	})

	t.Run("the live page", func(t *testing.T) { view.AwaitParity(t, collector) })
}

// checkBothSides looks at the spans of each call: one in Python, the root of a
// trace of its own, and, unless the call streams, one or two in Elixir.
func checkBothSides(t *testing.T, spans []harness.StoredSpan, truth harness.Truth) {
	byRequest := map[any][]harness.StoredSpan{}
	for _, span := range spans {
		id := span.Attributes["ml.request.id"]
		require.NotEmpty(t, id, "span %s", span.Span.Name())
		byRequest[id] = append(byRequest[id], span)
	}
	streams := 0
	for _, id := range truth.Keys["request"] {
		var python, elixir []harness.StoredSpan
		for _, span := range byRequest[id] {
			if span.Resource["service.name"] == snakepitBridge {
				python = append(python, span)
			} else {
				elixir = append(elixir, span)
			}
		}
		require.Len(t, python, 1, "request %s", id)
		assert.True(t, python[0].Span.ParentSpanID().IsEmpty())
		if python[0].Span.Name() == "BridgeService/ExecuteStreamingTool" {
			streams++
			assert.Empty(t, elixir)
			continue
		}
		assert.NotEmpty(t, elixir, "request %s", id)
		for _, span := range elixir {
			assert.NotEqual(t, python[0].Span.TraceID(), span.Span.TraceID())
		}
	}
	assert.Equal(t, 1, streams)
}

// checkHeartbeats looks at the one span of a worker that has a parent: it
// inherits what was current when the session began.
func checkHeartbeats(t *testing.T, spans []harness.StoredSpan) {
	sent := named(spans, "HeartbeatClient/SendPing")
	require.Len(t, sent, 1)
	for _, span := range named(spans, "BridgeService/InitializeSession") {
		if span.Span.SpanID() == sent[0].Span.ParentSpanID() {
			assert.Equal(t, span.Span.TraceID(), sent[0].Span.TraceID())
			assert.Equal(t, span.Attributes["ml.request.id"], sent[0].Attributes["ml.request.id"])
			return
		}
	}
	assert.Fail(t, "the heartbeat's parent is no InitializeSession")
}

// checkSnakepitFailures runs the programs that the collector wrote.
func checkSnakepitFailures(t *testing.T, spans []harness.StoredSpan, truth harness.Truth) {
	require.Len(t, truth.Errors, 2)
	for _, failure := range truth.Errors {
		t.Run(failure.Type, func(t *testing.T) {
			require.True(t, failure.Payload)
			span, artifact := awaitFailure(t, spans, failure)
			assert.Equal(t, snakepitBridge, span.Resource["service.name"])
			assert.NotEmpty(t, span.Attributes["repro.payload"])
			verdict, output := harness.Reproduce(t, artifact.Script(), "")
			assert.Equal(t, harness.Reproduced, verdict, output)
			assert.Contains(t, output, failure.Message)
		})
	}
}

// checkKeptBack looks at the failure that Snakepit's process server catches
// within the span: Python says nothing of it, and Elixir has no payload.
func checkKeptBack(t *testing.T, spans []harness.StoredSpan) {
	var request any
	for _, span := range spans {
		reason, _ := span.Attributes["snakepit.grpc.error"].(string)
		if strings.Contains(reason, "JSONDecodeError") {
			request = span.Attributes["ml.request.id"]
			assert.Equal(t, "Error", span.Span.Status().Code().String())
		}
	}
	require.NotNil(t, request, "no Elixir span has the failure")
	for _, span := range named(spans, "BridgeService/ExecuteTool") {
		if span.Attributes["ml.request.id"] == request {
			assert.Equal(t, "Unset", span.Span.Status().Code().String())
			assert.NotContains(t, span.Attributes, "repro.artifact.path")
		}
	}
}
