package scenario

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
)

// tuftFailEvery is how many forward and backward passes go by until one fails.
const tuftFailEvery = 9

// tuftLevel is one span of an operation's chain, outermost first.
type tuftLevel struct {
	scope string
	name  string
	attrs []attr
	// log is what the function called code logs within the span, or "".
	log, code string
}

// tuftWork is an operation's work below the future: the chain of spans and what
// it adds to the instruments once its length is known.
type tuftWork struct {
	low, high float64
	modelID   string
	chain     []tuftLevel
	done      func(length time.Duration)
	failure   *exception
}

// perform does one request of a client, ending at the given time.
func (s *tuftServer) perform(run *tuftRun, operation string, at time.Time) {
	sentlog.Count(&s.truth.Requests, operation, 1)
	switch operation {
	case "create_session":
		s.createSession(at)
	case "create_model":
		s.createModel(run, at)
	case "create_sampling_session":
		s.createSamplingSession(run, at)
	case "chat_completion":
		s.proxy(run, at)
	case "unload_model":
		s.unloadModel(run, at)
	default:
		s.future(run, operation, at)
	}
}

// length is a time between low and high seconds, shortened where the rate of
// steps leaves a run less time than that.
func (s *tuftServer) length(low, high float64) time.Duration {
	const runs = 2
	room := 0.8 * runs * s.settings.interval().Seconds()
	return seconds(s.rand.between(low, high) * math.Min(1, room/high))
}

// future records an asynchronous operation: the HTTP request is answered at
// once, and its server span ends before the spans below it. Another request
// then waits for the result, in a trace of its own.
func (s *tuftServer) future(run *tuftRun, operation string, at time.Time) {
	work := s.work(run, operation, at)
	requestID := s.rand.uuid()
	length := s.length(work.low, work.high)
	wait := length / 50
	start := at.Add(-length - wait - 8*time.Millisecond)

	server := s.newTrace()
	s.redis("SET", server, start.Add(time.Millisecond), start.Add(1500*time.Microsecond))
	s.requestAs(server, tuftPath(operation), 202, start, start.Add(5*time.Millisecond))
	enqueued := start.Add(2 * time.Millisecond)
	s.info("futures", "enqueue", enqueued, "Future enqueued: "+requestID, server)
	// A sample has no model, and says so with an empty text.
	s.created.record(1, attr{"operation_type", operation}, attr{"model_id", work.modelID})
	s.queueLength.record(1, attr{"queue_state", "active"})

	self := s.child(server)
	begun := enqueued.Add(wait)
	end := begun.Add(length)
	s.info("futures", "_runner", begun, "Future begin: "+requestID, self)
	attrs := []attr{{"tuft.request_id", requestID}, {"tuft.operation_type", operation}}
	if work.modelID != "" {
		attrs = append(attrs, attr{"tuft.model_id", work.modelID})
	}
	saved := end.Add(-s.rand.duration(0.0004, 0.0012))
	s.chain(work, self, begun.Add(100*time.Microsecond), saved)
	// What a thread of the pool stores knows nothing of the operation.
	s.redis("SET", ref{trace: s.rand.traceID()}, saved, end)
	status := "ready"
	if work.failure == nil {
		s.info("futures", "_runner", saved, "Future completed: "+requestID, self)
		work.done(length)
	} else {
		status = "failed"
		s.failed(saved, requestID, operation, self, *work.failure)
	}
	s.redis("SET", self, saved, end)
	span := s.end(spanSpec{ref: self, parent: server.span, scope: "tuft.futures", name: "future_store.execute_operation", start: begun, end: end, attrs: attrs})
	if work.failure != nil {
		// The store catches the exception: an event, and no error status.
		recordException(span, saved, *work.failure)
	}
	s.completed.record(1, attr{"operation_type", operation}, attr{"status", status})
	s.waitTime.record(wait.Seconds(), attr{"operation_type", operation})
	s.executionTime.record(length.Seconds(), attr{"operation_type", operation})
	s.queueLength.record(-1, attr{"queue_state", "active"})

	code := 200
	if work.failure != nil {
		// The client asked for what cannot be done, as the server sees it.
		code = 422
	}
	s.requestAs(s.newTrace(), "/api/v1/retrieve_future", code, start.Add(6*time.Millisecond), at)
}

// tuftPath is where the client sends an operation: a forward pass goes to the
// address of both passes.
func tuftPath(operation string) string {
	switch operation {
	case "sample":
		return "/api/v1/asample"
	case "forward":
		return "/api/v1/forward_backward"
	default:
		return "/api/v1/" + operation
	}
}

// createSession is answered within the request, and has no span of TuFT's own.
func (s *tuftServer) createSession(at time.Time) {
	server := s.newTrace()
	start := at.Add(-4 * time.Millisecond)
	s.redis("SET", server, start.Add(time.Millisecond), start.Add(2*time.Millisecond))
	s.requestAs(server, "/api/v1/create_session", 201, start, at)
}

// createModel is answered when the model is there: no future.
func (s *tuftServer) createModel(run *tuftRun, at time.Time) {
	start := at.Add(-s.length(0.5, 1.4))
	server := s.newTrace()
	levels := append([]tuftLevel{
		run.controller("create_model", "Creating model "+run.id, "create_model",
			attr{"tuft.base_model", tuftModel}, attr{"tuft.lora_rank", 32}),
	}, run.backend("create_adapter", attr{"tuft.lora_rank", 32})...)
	if run.local {
		model := &levels[len(levels)-1]
		model.attrs = append(model.attrs, attr{"tuft.lora_alpha", 64})
	}
	s.chain(tuftWork{chain: levels}, server, start.Add(time.Millisecond), at.Add(-2*time.Millisecond))
	s.redis("SET", server, at.Add(-2*time.Millisecond), at.Add(-time.Millisecond))
	s.modelsActive.record(1, attr{"base_model", tuftModel})
	s.requestAs(server, "/api/v1/create_model", 202, start, at)
}

// unloadModel is answered within the request, and the sampling session ends too.
func (s *tuftServer) unloadModel(run *tuftRun, at time.Time) {
	s.removeAdapter(run, at)
	start := at.Add(-s.length(0.02, 0.08))
	server := s.newTrace()
	s.chain(tuftWork{chain: run.backend("remove_adapter")[:1]}, server, start.Add(time.Millisecond), at.Add(-time.Millisecond))
	s.modelsActive.record(-1, attr{"base_model", tuftModel})
	s.requestAs(server, "/api/v1/unload_model", 202, start, at)
}

// controller is a span of the training controller.
func (r *tuftRun) controller(name, log, code string, attrs ...attr) tuftLevel {
	ids := []attr{{"tuft.training_run_id", r.id}, {"tuft.session_id", r.session}}
	return tuftLevel{"tuft.training_controller", "training_controller." + name, append(ids, attrs...), log, code}
}

// backend is a span of the training backend, and that of the model where it
// arrives.
func (r *tuftRun) backend(name string, attrs ...attr) []tuftLevel {
	level := func(scope, prefix string) tuftLevel {
		return tuftLevel{scope: scope, name: prefix + name, attrs: append([]attr{{"tuft.lora_id", r.id}}, attrs...)}
	}
	out := []tuftLevel{level("tuft.training_backend", "training_backend.")}
	if r.local {
		out = append(out, level("tuft.hf_training_model", "hf_model."))
	}
	return out
}

// work says what an operation does.
func (s *tuftServer) work(run *tuftRun, operation string, at time.Time) tuftWork {
	switch operation {
	case "forward", "forward_backward":
		return s.pass(run, operation, at)
	case "optim_step":
		return tuftWork{
			low: 0.08, high: 0.25, modelID: run.id,
			chain: append([]tuftLevel{
				run.controller("run_optim_step", "Optimizer step begin for "+run.id, "run_optim_step", attr{"tuft.learning_rate", 1e-4}),
			}, run.backend("optim_step")...),
			done: func(time.Duration) { sentlog.Count(&s.truth.Steps, run.id, 1) },
		}
	case "save_weights", "save_weights_for_sampler":
		kind, optimizer := "training", true
		if operation == "save_weights_for_sampler" {
			kind, optimizer = "sampler", false
		}
		return tuftWork{
			low: 0.3, high: 0.9, modelID: run.id,
			chain: append([]tuftLevel{
				run.controller("save_checkpoint", "Checkpoint save begin: checkpoint-"+strconv.Itoa(run.requests), "_operation",
					attr{"tuft.checkpoint_type", kind}),
			}, run.backend("save_state", attr{"tuft.optimizer", optimizer})...),
			done: func(time.Duration) {
				labels := []attr{{"model_id", run.id}, {"checkpoint_type", kind}}
				s.checkpointsSaved.record(1, labels...)
				s.checkpointSize.record(float64(s.rand.count(168_000_000, 172_000_000)), labels...)
			},
		}
	case "load_weights":
		// The controller has no span for it.
		return tuftWork{
			low: 0.2, high: 0.6, modelID: run.id,
			chain: run.backend("load_state", attr{"tuft.optimizer", true}),
			done:  func(time.Duration) {},
		}
	default:
		return s.sample(run, attr{"base_model", tuftModel})
	}
}

// pass is a forward pass, with the backward pass or without.
func (s *tuftServer) pass(run *tuftRun, operation string, at time.Time) tuftWork {
	data := s.rand.count(4, 16)
	tokens := data * s.rand.count(300, 900)
	backward := attr{"tuft.backward", operation == "forward_backward"}
	work := tuftWork{
		low: 0.35, high: 0.9, modelID: run.id,
		chain: append([]tuftLevel{
			run.controller("run_"+operation, "Forward/backward begin for "+run.id, "run_forward",
				backward, attr{"tuft.data_count", data}, attr{"tuft.loss_fn", "cross_entropy"}),
		}, run.backend(operation, backward, attr{"tuft.data_count", data})...),
		done: func(length time.Duration) {
			s.trainTokens.record(float64(tokens)/length.Seconds(), attr{"base_model", tuftModel})
			s.truth.CountTokens("training", "input", tokens)
		},
	}
	if last := &work.chain[len(work.chain)-1]; run.local {
		last.attrs = append(last.attrs, attr{"tuft.num_micro_batches", (data + 3) / 4})
	}
	s.passes++
	if s.settings.fails(at, s.rand, s.passes%tuftFailEvery == 0) {
		work.failure = s.outOfMemory(run)
	}
	return work
}

// outOfMemory is the exception of a pass. What a Ray actor raises arrives as a
// class made for it, whose message is the actor's stack trace with the terminal's
// colours and the actor's address.
func (s *tuftServer) outOfMemory(run *tuftRun) *exception {
	const (
		header  = "Traceback (most recent call last):\n"
		message = "CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 79.65 GiB of which 1.12 GiB is free."
		raised  = "  File \"/opt/tuft/src/tuft/backends/hf_training_model.py\", line 402, in forward\n" +
			"    loss, metrics = self._forward_micro_batch(micro_batch, loss_fn)\n" +
			"torch.OutOfMemoryError: " + message
	)
	if run.local {
		return &exception{kind: "torch.OutOfMemoryError", message: message, trace: header + raised + "\n"}
	}
	remote := fmt.Sprintf("\x1b[36mray::HFTrainingModel.forward()\x1b[39m (pid=%d, ip=127.0.0.1, actor_id=%s, "+
		"repr=<tuft.backends.hf_training_model.HFTrainingModel object at 0x7f%s>)\n", s.rand.count(2000, 30_000), s.rand.hex(16), s.rand.hex(5)) + raised
	return &exception{
		kind: "ray.exceptions.RayTaskError(OutOfMemoryError)", message: remote,
		trace: header +
			"  File \"/opt/tuft/src/tuft/backends/training_backend.py\", line 79, in forward\n" +
			"    return await asyncio.wrap_future(future)\n" +
			"ray.exceptions.RayTaskError(OutOfMemoryError): " + remote + "\n",
	}
}

func (s *tuftServer) sample(run *tuftRun, model attr) tuftWork {
	samples := s.rand.count(1, 4)
	var tokens []int64
	for range samples {
		tokens = append(tokens, s.rand.count(40, 220))
	}
	return tuftWork{
		low: 0.4, high: 1.5,
		chain: []tuftLevel{
			{
				"tuft.sampling_controller", "sampling_controller.run_sample",
				[]attr{{"tuft.sampling_session_id", run.samplingSession}, {"tuft.session_id", run.session}, {"tuft.num_samples", samples}},
				"Sampling begin for " + run.samplingSession, "run_sample",
			},
			{
				scope: "tuft.sampling_backend", name: "sampling_backend.sample",
				attrs: []attr{{"tuft.num_samples", samples}, {"tuft.has_lora", true}},
			},
		},
		done: func(length time.Duration) {
			s.samplingRequests.record(1, model)
			s.sampleDuration.record(length.Seconds(), model)
			total := int64(0)
			for _, n := range tokens {
				s.outputTokens.record(float64(n))
				total += n
			}
			s.sampleTokens.record(float64(total)/length.Seconds(), model)
			s.truth.CountTokens("sampling", "output", total)
		},
	}
}

// chain records nested spans, the innermost first because it ends first.
func (s *tuftServer) chain(work tuftWork, parent ref, start, end time.Time) {
	refs := make([]ref, len(work.chain))
	for i, level := range work.chain {
		above := parent
		if i > 0 {
			above = refs[i-1]
		}
		refs[i] = s.child(above)
		if level.log != "" {
			module, _ := strings.CutPrefix(level.scope, "tuft.")
			s.info(module, level.code, start, level.log, refs[i])
		}
	}
	for i, level := range slices.Backward(work.chain) {
		above := parent
		if i > 0 {
			above = refs[i-1]
		}
		inset := time.Duration(i) * 300 * time.Microsecond
		span := s.end(spanSpec{
			ref: refs[i], parent: above.span, scope: level.scope, name: level.name,
			start: start.Add(inset), end: end.Add(-inset), attrs: level.attrs,
		})
		if work.failure == nil {
			continue
		}
		fail(span, end.Add(-inset), *work.failure)
		if i == len(work.chain)-1 {
			s.truth.Fail(sentlog.Failure{
				TraceID: refs[i].trace.String(), SpanID: refs[i].span.String(), Name: level.name,
				ExceptionType: work.failure.kind, ExceptionMessage: work.failure.message,
			})
		}
	}
}

// createSamplingSession is answered within the request: no future. It is made
// from a checkpoint, so no span names the model.
func (s *tuftServer) createSamplingSession(run *tuftRun, at time.Time) {
	s.removeAdapter(run, at)
	run.samplingSession = s.rand.uuid()
	length := s.length(0.05, 0.2)
	start := at.Add(-length)
	server := s.newTrace()
	self := s.child(server)
	s.end(spanSpec{
		ref: s.child(self), parent: self.span, scope: "tuft.sampling_backend", name: "sampling_backend.add_adapter",
		start: start.Add(2 * time.Millisecond), end: at.Add(-2 * time.Millisecond),
		attrs: []attr{{"tuft.lora_id", run.samplingSession}},
	})
	s.end(spanSpec{
		ref: self, parent: server.span, scope: "tuft.sampling_controller", name: "sampling_controller.create_sampling_session",
		start: start.Add(time.Millisecond), end: at.Add(-time.Millisecond),
		attrs: []attr{
			{"tuft.session_id", run.session},
			{"tuft.sampling_session_id", run.samplingSession},
		},
	})
	s.info("sampling_controller", "create_sampling_session", at.Add(-time.Millisecond), "Sampling session created: "+run.samplingSession, self)
	s.sessionsActive.record(1, attr{"base_model", tuftModel})
	s.requestAs(server, "/api/v1/create_sampling_session", 201, start, at)
}

// removeAdapter ends a run's sampling session, if it has one.
func (s *tuftServer) removeAdapter(run *tuftRun, at time.Time) {
	if run.samplingSession == "" {
		return
	}
	start := at.Add(-s.length(0.02, 0.05))
	s.end(spanSpec{
		ref: s.newTrace(), scope: "tuft.sampling_backend", name: "sampling_backend.remove_adapter",
		start: start, end: at, attrs: []attr{{"tuft.lora_id", run.samplingSession}},
	})
	s.redis("DEL", ref{trace: s.rand.traceID()}, at.Add(-time.Millisecond), at)
	s.sessionsActive.record(-1, attr{"base_model", tuftModel})
}

// proxy records a request to the server's OpenAI-compatible side, which is
// passed on and reports no tokens.
func (s *tuftServer) proxy(run *tuftRun, at time.Time) {
	start := at.Add(-s.length(0.3, 1.1))
	server := s.newTrace()
	s.end(spanSpec{
		ref: s.child(server), parent: server.span, scope: "tuft.oai", name: "oai.proxy_inference",
		start: start.Add(2 * time.Millisecond), end: at.Add(-time.Millisecond),
		attrs: []attr{
			{"oai.endpoint", "/v1/chat/completions"},
			{"oai.model", "tuft/" + run.id},
			{"oai.user_id", "mlgen"},
			{"oai.base_model", tuftModel},
			{"oai.lora_id", run.id},
		},
	})
	s.requestAs(server, "/oai/v1/chat/completions", 200, start, at)
}

// requestAs records the spans of FastAPI's instrumentation for a request: the
// receipt, the two parts of the answer, and the server span; and its metrics.
func (s *tuftServer) requestAs(self ref, path string, code int, start, end time.Time) {
	name := "POST " + path
	part := func(kind string, at time.Time, attrs ...attr) {
		s.end(spanSpec{
			ref: s.child(self), parent: self.span, scope: tuftHTTPScope, name: name + " http " + kind,
			start: at, end: at.Add(60 * time.Microsecond), attrs: attrs,
		})
	}
	part("receive", start.Add(200*time.Microsecond), attr{"asgi.event.type", "http.request"})
	part("send", end.Add(-300*time.Microsecond), attr{"asgi.event.type", "http.response.start"}, attr{"http.status_code", code})
	part("send", end.Add(-150*time.Microsecond), attr{"asgi.event.type", "http.response.body"})
	span := s.end(spanSpec{
		ref: self, scope: tuftHTTPScope, name: name, kind: ptrace.SpanKindServer, start: start, end: end,
		attrs: []attr{
			{"http.scheme", "http"},
			{"http.host", tuftAddress},
			{"net.host.port", tuftPort},
			{"http.flavor", "1.1"},
			{"http.target", path},
			{"http.url", "http://" + tuftAddress + path},
			{"http.method", "POST"},
			{"http.server_name", tuftAddress},
			{"http.user_agent", "AsyncTinker/Python 0.25.0"},
			{"net.peer.ip", "127.0.0.1"},
			{"net.peer.port", 51234},
			{"http.route", path},
			{"http.status_code", code},
		},
	})
	if code >= 500 {
		span.Status().SetCode(ptrace.StatusCodeError)
	}
	s.countRequest(path, code, end.Sub(start))
}

func (s *tuftServer) countRequest(path string, code int, length time.Duration) {
	s.httpActive.record(0,
		attr{"http.scheme", "http"}, attr{"http.host", tuftAddress}, attr{"http.flavor", "1.1"},
		attr{"http.method", "POST"}, attr{"http.server_name", tuftAddress})
	labels := []attr{
		{"http.scheme", "http"}, {"http.host", tuftAddress}, {"net.host.port", tuftPort}, {"http.flavor", "1.1"},
		{"http.method", "POST"}, {"http.server_name", tuftAddress}, {"http.status_code", code}, {"http.target", path},
	}
	s.httpDuration.record(inMilliseconds(length), labels...)
	s.httpResponse.record(float64(s.rand.count(60, 900)), labels...)
	s.httpRequest.record(float64(s.rand.count(80, 4000)), labels...)
}

func (s *tuftServer) redis(operation string, parent ref, start, end time.Time) {
	s.end(spanSpec{
		ref: s.child(parent), parent: parent.span, scope: "tuft.redis_store", name: "redis." + operation, start: start, end: end,
		attrs: []attr{{"db.system", "redis"}, {"db.operation", operation}},
	})
	s.redisDuration.record(end.Sub(start).Seconds(), attr{"operation", operation})
}

// info sends a log record of a module's function.
func (s *tuftServer) info(module, function string, at time.Time, body string, in ref) {
	s.logTwice(module, function, at, plog.SeverityNumberInfo, "INFO", body, in, nil)
}

func (s *tuftServer) failed(at time.Time, request, operation string, in ref, e exception) {
	body := "Future failed (Unhandled): " + request + " op=" + operation
	s.logTwice("futures", "_runner", at, plog.SeverityNumberError, "ERROR", body, in, []attr{
		{"exception.type", e.kind},
		{"exception.message", e.message},
		{"exception.stacktrace", e.trace},
	})
}

// logTwice sends a log record as two handlers of Python's logging do: TuFT's own
// and the instrumentation's, which knows the place in the code. Both have the ids
// of the current span as fields, and again as attributes.
func (s *tuftServer) logTwice(
	module, function string, at time.Time, severity plog.SeverityNumber, text, body string, in ref, more []attr,
) {
	trace, span := in.trace.String(), in.span.String()
	if in.trace.IsEmpty() {
		trace, span = "0", "0"
	}
	attrs := []attr{
		{"otelSpanID", span},
		{"otelTraceID", trace},
		{"otelTraceSampled", !in.trace.IsEmpty()},
		{"otelServiceName", "tuft"},
	}
	place := []attr{
		{"code.file.path", "/opt/tuft/src/tuft/" + module + ".py"},
		{"code.function.name", function},
		{"code.line.number", 322},
	}
	s.log("tuft."+module, at, severity, text, body, in, slices.Concat(attrs, more))
	s.log("tuft."+module, at, severity, text, body, in, slices.Concat(attrs, place, more))
}
