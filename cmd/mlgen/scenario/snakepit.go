package scenario

import (
	"fmt"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
)

const (
	// The span around a call is made by a handler of telemetry events, the one
	// within it by the application.
	snakepitScope       = "snakepit"
	snakepitOuterScope  = "snakepit_grpc_worker"
	snakepitPythonScope = "snakepit.bridge"
	snakepitDevice      = "{:cuda, 0}"
	snakepitPool        = 4
	// snakepitFirstFailure and snakepitFailEvery determine which calls fail.
	snakepitFirstFailure = 3
	snakepitFailEvery    = 8
	// snakepitCrashEvery is the number of calls between two crashes of a
	// worker.
	snakepitCrashEvery = 30
	// snakepitSlowEvery is the number of successful calls between two that take
	// longer than a second, which Snakepit's documentation calls slow.
	snakepitSlowEvery = 8
	// snakepitTensor is the minimal size of a tensor, in bytes.
	snakepitTensor = 4 << 20
)

// snakepit imitates two Elixir nodes that call into Python workers. The second
// node's resource has `service_name` instead of service.name. The Python
// workers send spans in their own traces: only the correlation id connects them
// to the call.
//
// Spans and attributes are those of Snakepit 0.13.0. Some parts are only in its
// design documents, and no code of that version sends them: the events and
// metrics snakepit.{call,pool,memory,serialize,ml,worker,gpu}.* and
// snakepit.{circuit_breaker,health}.*, the attributes of failures without a
// Python exception, and `service_name`. They are sent for users who follow the
// documents. `repro.payload` and its exception event are added by an
// application, not by Snakepit.
type snakepit struct {
	nodes    []*snakepitNode
	settings Settings
	calls    int
	failures int
	// succeeded counts the calls that returned.
	succeeded int
}

// snakepitNode is an Elixir node with its instruments.
type snakepitNode struct {
	*process
	session string
	worker  *snakepitWorker
	// busyWorkers is the number of workers with a call when the last one began.
	busyWorkers int64
	// held is the size of the tensor that the worker keeps until the next one.
	held int64

	total, duration, queueTime, exceptions *instrument
	size, idle, busy                       *instrument
	allocated, gpuAllocated, gpuFree       *instrument
	crashes                                *instrument
	inferenceTime, inferenceTokens         *instrument
	gpuUsed, gpuUtilization, gpuPower      *instrument
}

// snakepitCall is a kind of call that succeeds.
type snakepitCall struct {
	command, library, function string
	// python is the worker's time in seconds.
	python   float64
	model    string
	training bool
	// streaming reports whether the worker answers in parts.
	streaming bool
	// session reports whether the call is bound to its session.
	session bool
}

var snakepitCalls = []snakepitCall{
	{command: "infer", library: "transformers", function: "generate", python: 0.45, model: "gpt2"},
	{command: "tensor_op", library: "torch", function: "matmul", python: 0.02, session: true},
	{command: "train_step", library: "torch", function: "step", python: 0.2, training: true},
	{command: "embed", library: "sentence_transformers", function: "encode", python: 0.12, model: "all-MiniLM-L6-v2", streaming: true},
}

func newSnakepit(settings Settings) Scenario {
	s := &snakepit{settings: settings}
	erlang := []attr{
		{"process.executable.name", "erl"},
		{"process.runtime.name", "BEAM"},
		{"process.runtime.version", "15.2.7"},
		{"process.runtime.description", "Erlang/OTP 27 erts-15.2.7"},
		{"telemetry.sdk.language", "erlang"},
		{"telemetry.sdk.name", "opentelemetry"},
		{"telemetry.sdk.version", "1.7.0"},
	}
	// The first node's workers are processes, as is Snakepit's default; the
	// second's have threads.
	s.nodes = []*snakepitNode{
		newSnakepitNode(settings, "node-a", newSnakepitWorker(settings, "python-a", false),
			append([]attr{{"service.name", "snakepit"}, {"service.namespace", "snakepit"}, {"service.instance.id", "snakepit@node-a"}}, erlang...)),
		newSnakepitNode(settings, "node-b", newSnakepitWorker(settings, "python-b", true), append([]attr{
			{"service.name", "unknown_service:erl"}, {"service_name", "snakepit"}, {"service_namespace", "snakepit"},
			{"service.instance.id", "snakepit@node-b"},
		}, erlang...)),
	}
	return s
}

func newSnakepitNode(settings Settings, label string, worker *snakepitWorker, resource []attr) *snakepitNode {
	n := &snakepitNode{process: newProcess("snakepit", label, settings, resource), worker: worker}
	n.session = fmt.Sprintf("session_%d_%d", n.rand.count(1, 9999), n.rand.count(1_000_000, 9_000_000))
	m := &meter{scope: snakepitScope}
	n.total = m.add(counter, "snakepit.call.total", "{call}", "Calls into Python")
	n.duration = m.add(histogram, "snakepit.call.duration", "ms", "Duration of a call")
	n.queueTime = m.add(histogram, "snakepit.call.queue_time", "ms", "Time that a call waits for a worker")
	n.exceptions = m.add(counter, "snakepit.call.exceptions", "{exception}", "Calls that raised")
	n.size = m.add(gauge, "snakepit.pool.size", "{worker}", "Workers of the pool")
	n.idle = m.add(gauge, "snakepit.pool.idle", "{worker}", "Idle workers")
	n.busy = m.add(gauge, "snakepit.pool.busy", "{worker}", "Busy workers")
	n.allocated = m.add(gauge, "snakepit.memory.allocated_bytes", "By", "Memory of the workers")
	n.gpuAllocated = m.add(gauge, "snakepit.memory.gpu.allocated_mb", "MB", "GPU memory of the workers").doubles()
	n.gpuFree = m.add(gauge, "snakepit.memory.gpu.free_mb", "MB", "Free GPU memory").doubles()
	n.crashes = m.add(counter, "snakepit.worker.crashes", "{crash}", "Workers that crashed")
	n.inferenceTime = m.add(histogram, "snakepit.ml.inference.duration", "ms", "Duration of an inference")
	n.inferenceTokens = m.add(histogram, "snakepit.ml.inference.tokens_per_second", "tokens/s", "Tokens per second of an inference")
	n.gpuUsed = m.add(gauge, "snakepit.gpu.memory.used_mb", "MB", "GPU memory in use").doubles()
	n.gpuUtilization = m.add(gauge, "snakepit.gpu.utilization.percent", "%", "GPU utilization").doubles()
	n.gpuPower = m.add(gauge, "snakepit.gpu.power.watts", "W", "GPU power").doubles()
	n.meters = []*meter{m}
	return n
}

// Step performs one call into Python.
func (s *snakepit) Step(at time.Time) []Batch {
	s.calls++
	node := s.nodes[0]
	fails := s.settings.fails(at, node.rand, s.calls >= snakepitFirstFailure && (s.calls-snakepitFirstFailure)%snakepitFailEvery == 0)
	if (fails && s.failures%4 == 1) || (!fails && s.calls%5 == 0) {
		node = s.nodes[1]
	}
	for _, n := range s.nodes {
		n.begin(at.Add(-15 * time.Second))
		n.worker.begin(at.Add(-14 * time.Second))
		if s.calls == 1 {
			n.worker.open(n.session, at)
		}
	}
	call := s.newCall(node, at)
	switch {
	case fails:
		call.failing(pickFailure(s.failures))
		s.failures++
	case s.settings.ErrorRatio == nil && s.calls%snakepitCrashEvery == 0:
		call.crashing()
	default:
		kind := snakepitCalls[s.succeeded%len(snakepitCalls)]
		if s.succeeded%snakepitSlowEvery == 0 {
			kind.python *= 4
		}
		call.succeeding(kind)
		s.succeeded++
	}
	if s.calls%6 == 0 {
		for _, n := range s.nodes {
			n.worker.heartbeat(n.session, at)
		}
	}
	node.measure()
	var out []Batch
	for _, n := range s.nodes {
		if !n.metricsEmpty() {
			out = append(out, n.flush(at, false)...)
		}
		out = append(out, n.worker.flush(at, false)...)
	}
	return out
}

// Finish ends the sessions and sends what the nodes and the workers hold.
func (s *snakepit) Finish(at time.Time) []Batch {
	var out []Batch
	for _, n := range s.nodes {
		if s.calls > 0 {
			n.worker.about("CleanupSession", n.session, at)
		}
		out = append(out, n.flush(at, true)...)
		out = append(out, n.worker.flush(at, true)...)
	}
	return out
}

// metricsEmpty reports whether the node has not handled a call yet.
func (n *snakepitNode) metricsEmpty() bool { return len(n.total.streams) == 0 }

// measure observes the pool and the GPU.
func (n *snakepitNode) measure() {
	pool := attr{"pool", "default"}
	n.size.record(snakepitPool, pool)
	n.busy.record(float64(n.busyWorkers), pool)
	n.idle.record(float64(snakepitPool-n.busyWorkers), pool)
	device := attr{"device", snakepitDevice}
	used := round(n.rand.near(6144, 0.04), 1)
	n.allocated.record(n.rand.near(1.4e9, 0.03), attr{"type", "worker"}, attr{"device", "cpu"})
	n.gpuAllocated.record(used, device)
	n.gpuFree.record(round(81_559-used, 1), device)
	n.gpuUsed.record(used, device)
	n.gpuUtilization.record(round(n.rand.between(35, 70), 1), device)
	n.gpuPower.record(round(n.rand.between(210, 320), 1), device)
}

// activeCall is a call in progress: times, ids and participants.
type activeCall struct {
	*snakepitNode
	settings    Settings
	sequence    int
	correlation string
	workerIndex int64
	outer       ref
	inner       ref
	at          time.Time
}

func (s *snakepit) newCall(n *snakepitNode, at time.Time) *activeCall {
	c := &activeCall{
		snakepitNode: n, settings: s.settings, sequence: s.calls, at: at,
		correlation: "sp-" + n.rand.hex(12),
		workerIndex: n.rand.count(1, snakepitPool),
		outer:       n.newTrace(),
	}
	c.inner = n.child(c.outer)
	n.busyWorkers = n.rand.count(1, snakepitPool)
	return c
}

func (c *activeCall) workerID() string {
	return fmt.Sprintf("default_worker_%d_%d", c.workerIndex, 40+c.workerIndex)
}

// timing is how a call's time is spent.
type timing struct {
	queue, serialize, python, deserialize time.Duration
	// opened and closed bound the inner span, which lies within the outer one.
	start, opened, sent, received, closed, end time.Time
}

func (c *activeCall) timing(python float64) timing {
	t := timing{
		queue:       c.rand.duration(0.0005, 0.006),
		serialize:   c.rand.duration(0.0002, 0.001),
		python:      seconds(c.rand.near(python, 0.3)),
		deserialize: c.rand.duration(0.0002, 0.001) + 60*time.Microsecond,
	}
	t.end = c.at
	t.received = t.end.Add(-t.deserialize)
	t.sent = t.received.Add(-t.python - time.Millisecond)
	t.start = t.sent.Add(-t.serialize - t.queue)
	t.opened, t.closed = t.start.Add(20*time.Microsecond), t.end.Add(-50*time.Microsecond)
	return t
}

// milliseconds is what the client measures around its request.
func (t timing) milliseconds() int64 { return t.closed.Sub(t.opened).Milliseconds() }

func (t timing) total() time.Duration { return t.end.Sub(t.start) }

// inMilliseconds is a duration as the metrics have it.
func inMilliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// event adds a telemetry event to a span. Durations are in the runtime's native
// unit, nanoseconds.
func event(span ptrace.Span, at time.Time, name string, attrs ...attr) {
	e := span.Events().AppendEmpty()
	e.SetName(name)
	e.SetTimestamp(pcommon.NewTimestampFromTime(at))
	put(e.Attributes(), attrs)
}

// startAttrs are what a call's span has from its start.
func (c *activeCall) startAttrs(command string, full bool) []attr {
	attrs := []attr{{"snakepit.worker.id", c.workerID()}}
	if full {
		attrs = append(attrs, attr{"snakepit.worker.pid", fmt.Sprintf("#PID<0.%d.0>", 500+c.workerIndex)})
	}
	attrs = append(attrs,
		attr{"snakepit.pool", "default"},
		attr{"snakepit.command", command},
		attr{"snakepit.session_id", c.session},
		attr{"snakepit.correlation_id", c.correlation},
	)
	if full {
		return append(attrs, attr{"snakepit.telemetry.operation", "execute"})
	}
	return append(attrs, attr{"snakepit.timeout_ms", 30_000})
}

// spans records the two spans of a call, the inner one first, and returns them.
// before are attributes that the caller set first.
func (c *activeCall) spans(command string, t timing, before, stop []attr) (inner, outer ptrace.Span) {
	inner = c.end(spanSpec{
		ref: c.inner, parent: c.outer.span, scope: snakepitScope, name: "snakepit.grpc.execute." + command,
		kind: ptrace.SpanKindClient, start: t.opened, end: t.closed,
		attrs: append(append(before, c.startAttrs(command, false)...), stop...),
	})
	outer = c.end(spanSpec{
		ref: c.outer, scope: snakepitOuterScope, name: "snakepit.grpc." + command,
		kind: ptrace.SpanKindClient, start: t.start, end: t.end,
		attrs: append(c.startAttrs(command, true), stop...),
	})
	event(outer, t.end, "snakepit.grpc.duration", attr{"duration", t.milliseconds()})
	return inner, outer
}

// sessionSpan records the only span of a call that is bound to a session: the
// telemetry handler for the other span handles plain calls only.
func (c *activeCall) sessionSpan(command string, t timing, stop []attr) ptrace.Span {
	return c.end(spanSpec{
		ref: c.outer, scope: snakepitScope, name: "snakepit.grpc.execute-session." + command,
		kind: ptrace.SpanKindClient, start: t.opened, end: t.closed,
		attrs: append(c.startAttrs(command, false), stop...),
	})
}

// count adds the call to the node's instruments, and to the truth of the spans
// that record it.
func (c *activeCall) count(truth *sentlog.Truth, library, function string, t timing) {
	labels := []attr{{"library", library}, {"function", function}}
	c.total.record(1, labels...)
	c.duration.record(inMilliseconds(t.total()), labels...)
	c.queueTime.record(inMilliseconds(t.queue), labels...)
	sentlog.Count(&truth.Requests, library+"."+function, 1)
}

// callEvents adds the events that every call has according to Snakepit's
// documents.
func (c *activeCall) callEvents(span ptrace.Span, library, function string, t timing) {
	operation := []attr{{"operation", "call"}, {"library", library}, {"function", function}, {"worker_id", c.workerID()}}
	event(span, t.opened, "snakepit.call.start", operation...)
	event(span, t.opened.Add(t.queue), "snakepit.pool.checkout",
		attr{"queue_time", t.queue.Nanoseconds()}, attr{"pool", "default"}, attr{"worker_id", c.workerID()})
	event(span, t.opened.Add(t.queue), "snakepit.pool.size",
		attr{"size", snakepitPool}, attr{"idle", snakepitPool - c.busyWorkers}, attr{"busy", c.busyWorkers}, attr{"pool", "default"})
	event(span, t.sent, "snakepit.serialize.stop",
		attr{"duration", t.serialize.Nanoseconds()}, attr{"bytes", c.rand.count(200, 4000)},
		attr{"direction", "encode"}, attr{"format", "json"})
}

func (c *activeCall) checkin(span ptrace.Span, t timing) {
	event(span, t.closed, "snakepit.pool.checkin", attr{"busy_time", t.total().Nanoseconds()}, attr{"pool", "default"}, attr{"worker_id", c.workerID()})
}

// succeeding records a call that returns.
func (c *activeCall) succeeding(k snakepitCall) {
	t := c.timing(k.python)
	stop := []attr{
		{"snakepit.grpc.duration_ms", t.milliseconds()},
		{"snakepit.grpc.status", "ok"},
	}
	c.worker.execute(c, k.command, k.streaming, t)
	if k.streaming {
		// A streaming call has only the worker's span.
		c.count(&c.worker.truth, k.library, k.function, t)
		c.inference(&c.worker.truth, k, t)
		return
	}
	c.count(&c.truth, k.library, k.function, t)
	var span ptrace.Span
	if k.session {
		span = c.sessionSpan(k.command, t, stop)
	} else {
		var outer ptrace.Span
		span, outer = c.spans(k.command, t, nil, stop)
		put(outer.Attributes(), []attr{{"snakepit.grpc.executions", 1}})
	}
	c.callEvents(span, k.library, k.function, t)
	c.work(span, k, t)
	event(span, t.closed, "snakepit.call.stop",
		attr{"duration", t.total().Nanoseconds()},
		attr{"queue_time", t.queue.Nanoseconds()},
		attr{"serialize_time", t.serialize.Nanoseconds()},
		attr{"python_time", t.python.Nanoseconds()},
		attr{"deserialize_time", t.deserialize.Nanoseconds()},
		attr{"operation", "call"}, attr{"library", k.library}, attr{"function", k.function},
		attr{"worker_id", c.workerID()}, attr{"device", snakepitDevice}, attr{"result", "ok"},
	)
	c.checkin(span, t)
}

// inference adds a model's answer to the instruments and returns its tokens per
// second.
func (c *activeCall) inference(truth *sentlog.Truth, k snakepitCall, t timing) float64 {
	tokens := c.rand.count(64, 256)
	rate := round(float64(tokens)/t.python.Seconds(), 3)
	labels := []attr{{"model", k.model}, {"device", snakepitDevice}}
	c.inferenceTime.record(inMilliseconds(t.python), labels...)
	c.inferenceTokens.record(rate, labels...)
	truth.CountTokens(k.model, "output", tokens)
	return rate
}

// hold adds the events of a tensor that is kept until the next one.
func (c *activeCall) hold(span ptrace.Span, t timing) {
	bytes := snakepitTensor * c.rand.count(1, 4)
	event(span, t.received, "snakepit.memory.allocate", attr{"bytes", bytes}, attr{"type", "gpu"}, attr{"device", snakepitDevice})
	if c.held > 0 {
		event(span, t.closed, "snakepit.memory.release", attr{"bytes", c.held}, attr{"type", "gpu"}, attr{"device", snakepitDevice})
	}
	c.held = bytes
}

// work adds the events of what the call did.
func (c *activeCall) work(span ptrace.Span, k snakepitCall, t timing) {
	switch {
	case k.training:
		event(span, t.received, "snakepit.ml.train_step",
			attr{"duration", t.python.Nanoseconds()},
			attr{"loss", round(c.rand.near(0.3+2/(1+float64(c.sequence)/40), 0.05), 6)},
			attr{"learning_rate", 3e-4},
			attr{"epoch", c.sequence / 40},
			attr{"step", c.sequence / len(snakepitCalls)},
			attr{"batch_size", 32},
		)
	case k.model != "":
		rate := c.inference(&c.truth, k, t)
		event(span, t.received, "snakepit.ml.inference",
			attr{"duration", t.python.Nanoseconds()},
			attr{"batch_size", 4},
			attr{"tokens_per_second", rate},
			attr{"model", k.model},
			attr{"device", snakepitDevice},
		)
	default:
		event(span, t.received, "snakepit.ml.tensor_op",
			attr{"duration", t.python.Nanoseconds()},
			attr{"input_elements", 1 << 20}, attr{"output_elements", 1 << 20},
			attr{"op", k.function}, attr{"input_shapes", "[[1024, 1024], [1024, 1024]]"}, attr{"output_shape", "[1024, 1024]"},
			attr{"dtype", "float32"}, attr{"device", snakepitDevice},
		)
		c.hold(span, t)
	}
	event(span, t.received, "snakepit.memory.gpu",
		attr{"allocated_mb", round(c.rand.near(6144, 0.04), 1)}, attr{"reserved_mb", 7168.0},
		attr{"free_mb", 74_391.0}, attr{"total_mb", 81_559.0}, attr{"device", snakepitDevice})
}
