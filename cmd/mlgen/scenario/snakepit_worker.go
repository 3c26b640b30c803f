package scenario

import (
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"
)

// snakepitWorker is the Python side of a node: one of Snakepit's two gRPC
// servers, and its spans.
type snakepitWorker struct {
	*process
	// threaded selects the server with threads. It reports its thread and
	// numbers its calls, and lets an exception of a tool leave the span. The
	// default server handles the exception within the span, which then looks
	// successful.
	threaded bool
	// opened is the span that opened the session, and correlation its id.
	opened      ref
	correlation string
	requests    int
}

func newSnakepitWorker(settings Settings, label string, threaded bool) *snakepitWorker {
	resource := append(pythonSDK(settings.Seed, "snakepit/"+label, "snakepit.python.bridge"), attr{"service.namespace", "snakepit"})
	return &snakepitWorker{process: newProcess("snakepit", label, settings, resource), threaded: threaded}
}

// newCorrelation returns an id for a call without one: all calls except tool
// calls.
func (w *snakepitWorker) newCorrelation() string { return w.rand.hex(16) }

// open records the start of a session.
func (w *snakepitWorker) open(session string, at time.Time) {
	w.opened, w.correlation = w.newTrace(), w.newCorrelation()
	w.ofSession(w.opened, "InitializeSession", session, w.correlation, at)
}

// about records a call about the session, as the root of its own trace.
func (w *snakepitWorker) about(what, session string, at time.Time) {
	w.ofSession(w.newTrace(), what, session, w.newCorrelation(), at)
}

func (w *snakepitWorker) ofSession(self ref, what, session, correlation string, at time.Time) {
	w.end(spanSpec{
		ref: self, scope: snakepitPythonScope, name: "BridgeService/" + what,
		start: at.Add(-w.rand.duration(0.001, 0.003)), end: at,
		attrs: []attr{{"snakepit.session_id", session}, {"snakepit.correlation_id", correlation}},
	})
}

// heartbeat records the pings of the session. In the default server a task
// sends them that inherited the span in which it was started: even long after
// that span has ended, they are its children and have its correlation id.
func (w *snakepitWorker) heartbeat(session string, at time.Time) {
	start := at.Add(-w.rand.duration(0.001, 0.004))
	w.about("Heartbeat", session, at)
	if w.threaded {
		w.end(spanSpec{
			ref: w.newTrace(), scope: snakepitPythonScope, name: "BridgeService/Ping", start: start, end: at,
			attrs: []attr{{"snakepit.thread", "MainThread"}, {"snakepit.correlation_id", w.newCorrelation()}},
		})
		return
	}
	w.about("GetSession", session, at)
	w.end(spanSpec{
		ref: w.child(w.opened), parent: w.opened.span, scope: snakepitPythonScope, name: "HeartbeatClient/SendPing",
		start: start, end: at,
		attrs: []attr{{"snakepit.session_id", session}, {"snakepit.correlation_id", w.correlation}},
	})
}

// execute records the worker's side of a call.
func (w *snakepitWorker) execute(c *activeCall, tool string, streaming bool, t timing) ptrace.Span {
	name := "BridgeService/ExecuteTool"
	if streaming {
		name = "BridgeService/ExecuteStreamingTool"
	}
	attrs := []attr{{"snakepit.session_id", c.session}, {"snakepit.tool", tool}}
	if w.threaded {
		w.requests++
		attrs = append(attrs, attr{"snakepit.thread", "MainThread"}, attr{"snakepit.request_id", w.requests})
	}
	start := t.sent.Add(500 * time.Microsecond)
	return w.end(spanSpec{
		ref: w.newTrace(), scope: snakepitPythonScope, name: name,
		start: start, end: start.Add(t.python),
		attrs: append(attrs, attr{"snakepit.correlation_id", c.correlation}),
	})
}
