package scenario

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
)

// pythonFailure is a call into Python's standard library that really raises,
// with the message of CPython 3.11. TestFailuresAreReal compares it with
// Python.
type pythonFailure struct {
	module, function string
	callType         string
	args             []any
	exception        exception
	// inner are the innermost lines of the stack trace.
	inner string
}

// pythonFailures are the failures; the first is by far the most frequent.
var pythonFailures = []pythonFailure{
	{
		module: "statistics", function: "mean", callType: "function", args: []any{[]any{}},
		exception: exception{kind: "statistics.StatisticsError", message: "mean requires at least one data point"},
		inner: "  File \"/usr/lib/python3.11/statistics.py\", line 432, in mean\n" +
			"    raise StatisticsError('mean requires at least one data point')\n",
	},
	{
		module: "json", function: "loads", callType: "function", args: []any{`{"model": gpt2}`},
		exception: exception{kind: "json.decoder.JSONDecodeError", message: "Expecting value: line 1 column 11 (char 10)"},
		inner: "  File \"/usr/lib/python3.11/json/__init__.py\", line 346, in loads\n" +
			"    return _default_decoder.decode(s)\n" +
			"           ^^^^^^^^^^^^^^^^^^^^^^^^^^\n" +
			"  File \"/usr/lib/python3.11/json/decoder.py\", line 337, in decode\n" +
			"    obj, end = self.raw_decode(s, idx=_w(s, 0).end())\n" +
			"               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n" +
			"  File \"/usr/lib/python3.11/json/decoder.py\", line 355, in raw_decode\n" +
			"    raise JSONDecodeError(\"Expecting value\", s, err.value) from None\n",
	},
	{
		module: "datetime", function: "date", callType: "class", args: []any{2026, 2, 30},
		exception: exception{kind: "ValueError", message: "day is out of range for month"},
	},
}

// pickFailure returns the n-th failure: every fourth one is not the mean.
func pickFailure(n int) pythonFailure {
	switch n % 8 {
	case 3:
		return pythonFailures[1]
	case 7:
		return pythonFailures[2]
	default:
		return pythonFailures[0]
	}
}

// payload is Snakepit's description of a call, in the order of its members.
type payload struct {
	ProtocolVersion     int            `json:"protocol_version"`
	MinSupportedVersion int            `json:"min_supported_version"`
	Library             string         `json:"library"`
	PythonModule        string         `json:"python_module"`
	Function            string         `json:"function"`
	Args                []any          `json:"args"`
	Kwargs              map[string]any `json:"kwargs"`
	Idempotent          bool           `json:"idempotent"`
	CallType            string         `json:"call_type"`
}

func (f pythonFailure) payload() string {
	text, err := json.Marshal(payload{
		ProtocolVersion: 1, MinSupportedVersion: 1,
		Library: f.module, PythonModule: f.module, Function: f.function,
		Args: f.args, Kwargs: map[string]any{}, Idempotent: true, CallType: f.callType,
	})
	if err != nil {
		panic(fmt.Sprintf("payload of %s.%s: %v", f.module, f.function, err))
	}
	return string(text)
}

func (f pythonFailure) raised() exception {
	e := f.exception
	e.trace = "Traceback (most recent call last):\n" +
		"  File \"/opt/snakepit/priv/python/snakepit_bridge/base_adapter.py\", line 214, in execute_tool\n" +
		"    return target(*args, **kwargs)\n" +
		"           ^^^^^^^^^^^^^^^^^^^^^^^\n" +
		f.inner + e.kind + ": " + e.message + "\n"
	return e
}

// elixirErrors are the Python types above for which Snakepit has a struct.
var elixirErrors = map[string]bool{"ValueError": true}

// elixir returns how Elixir prints the struct that Snakepit creates for a
// Python exception. It contains the exception's class, which no attribute has.
func (f pythonFailure) elixir() string {
	e := f.raised()
	short := e.kind[strings.LastIndexByte(e.kind, '.')+1:]
	module := "PythonException"
	if elixirErrors[short] {
		module = short
	}
	return fmt.Sprintf("%%Snakepit.Error.%s{message: %q, context: %%{}, stacktrace: [], python_type: %q, python_traceback: %q}",
		module, e.message, short, e.trace)
}

// failing records a call that raises. The application describes the call in its
// span before any other attribute, because limits drop what was set last, and
// records the exception there. Snakepit does neither.
func (c *activeCall) failing(f pythonFailure) {
	const command = "call"
	t := c.timing(0.004)
	raised := f.raised()
	text := f.payload()
	sum := sha256.Sum256([]byte(text))
	before := []attr{
		{"repro.payload", text},
		{"repro.payload.size", len(text)},
		{"repro.payload.sha256", hex.EncodeToString(sum[:])},
	}
	reason := f.elixir()
	stop := []attr{
		{"snakepit.grpc.duration_ms", t.milliseconds()},
		{"snakepit.grpc.status", "error"},
		{"snakepit.grpc.error", reason},
	}
	worker := c.worker.execute(c, command, false, t)
	if c.worker.threaded {
		fail(worker, worker.EndTimestamp().AsTime(), raised)
		c.worker.truth.Fail(sentlog.Failure{
			TraceID: worker.TraceID().String(), SpanID: worker.SpanID().String(), Name: worker.Name(),
			ExceptionType: raised.kind, ExceptionMessage: raised.message,
		})
	}

	span, outer := c.spans(command, t, before, stop)
	put(outer.Attributes(), []attr{{"snakepit.grpc.executions", 1}, {"snakepit.grpc.errors", 1}})
	c.callEvents(span, f.module, f.function, t)
	event(span, t.received, "exception",
		attr{"exception.type", raised.kind},
		attr{"exception.message", raised.message},
		attr{"exception.stacktrace", raised.trace},
	)
	event(span, t.closed, "snakepit.call.exception",
		attr{"duration", t.total().Nanoseconds()},
		attr{"operation", "call"}, attr{"library", f.module}, attr{"function", f.function},
		attr{"worker_id", c.workerID()}, attr{"result", "error"}, attr{"error_type", raised.kind},
	)
	c.checkin(span, t)
	for _, s := range []ptrace.Span{span, outer} {
		s.Status().SetCode(ptrace.StatusCodeError)
		s.Status().SetMessage(reason)
	}
	c.count(&c.truth, f.module, f.function, t)
	c.exceptions.record(1, attr{"library", f.module}, attr{"function", f.function}, attr{"error_type", raised.kind})
	c.truth.Fail(sentlog.Failure{
		TraceID: c.inner.trace.String(), SpanID: c.inner.span.String(), Name: span.Name(),
		ExceptionType: raised.kind, ExceptionMessage: raised.message,
		Payload: true, Target: f.module + "." + f.function,
	})
}

// crashing records a call whose worker crashes: no answer, no span of the
// worker, and the pool's events. Only such an error, a pair of a kind and a
// reason, has its kind in an attribute.
func (c *activeCall) crashing() {
	const command, library, function = "infer", "transformers", "generate"
	t := c.timing(0.3)
	reason := ":exit_status: 137"
	stop := []attr{
		{"snakepit.grpc.duration_ms", t.milliseconds()},
		{"snakepit.grpc.status", "error"},
		{"snakepit.grpc.error", reason},
		{"snakepit.grpc.error_kind", "worker_crash"},
	}
	span, outer := c.spans(command, t, nil, stop)
	put(outer.Attributes(), []attr{{"snakepit.grpc.executions", 1}, {"snakepit.grpc.errors", 1}})
	c.callEvents(span, library, function, t)
	event(span, t.closed, "snakepit.worker.crash",
		attr{"worker_id", c.workerID()}, attr{"pool", "default"}, attr{"type", "killed"},
		attr{"reason", "{:exit_status, 137}"}, attr{"exit_code", 137}, attr{"device", snakepitDevice})
	event(span, t.closed, "snakepit.circuit_breaker.open", attr{"pool", "default"}, attr{"failure_count", 1})
	event(span, t.closed, "snakepit.health.alert", attr{"pool", "default"}, attr{"alert_type", "high_crash_rate"}, attr{"crash_count", 1})
	for _, s := range []ptrace.Span{span, outer} {
		s.Status().SetCode(ptrace.StatusCodeError)
		s.Status().SetMessage(reason)
	}
	c.count(&c.truth, library, function, t)
	c.crashes.record(1, attr{"pool", "default"})
	c.truth.Fail(sentlog.Failure{
		TraceID: c.inner.trace.String(), SpanID: c.inner.span.String(), Name: span.Name(),
		ExceptionType: "worker_crash", Target: library + "." + function,
	})
}
