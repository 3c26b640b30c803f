package scenario

import (
	"math"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
)

// tuftFailEvery is how many forward and backward passes go by until one fails.
const tuftFailEvery = 9

// tuftLevel is one span of an operation's chain, outermost first.
type tuftLevel struct {
	process *process
	scope   string
	name    string
	attrs   []attr
	log     string
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
		s.request("/api/v1/create_session", 201, at.Add(-4*time.Millisecond), at)
	case "create_sampling_session":
		s.createSamplingSession(run, at)
	case "chat_completion":
		s.proxy(run, at)
	case "unload_model":
		s.removeAdapter(run, at)
		s.future(run, operation, at)
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
	work := s.work(run, operation)
	requestID := s.rand.uuid()
	length := s.length(work.low, work.high)
	wait := length / 50
	start := at.Add(-length - wait - 8*time.Millisecond)

	path := operation
	if operation == "sample" {
		path = "asample"
	}
	server := s.request("/api/v1/"+path, 200, start, start.Add(5*time.Millisecond))
	enqueued := start.Add(2 * time.Millisecond)
	s.info("futures", enqueued, "Future enqueued: "+requestID, server)
	labels := []attr{{"operation_type", operation}}
	if work.modelID != "" {
		labels = append(labels, attr{"model_id", work.modelID})
	}
	s.created.record(1, labels...)
	s.queueLength.record(1, attr{"queue_state", "active"})

	self := s.child(server)
	begun := enqueued.Add(wait)
	end := begun.Add(length)
	s.info("futures", begun, "Future begin: "+requestID, self)
	attrs := []attr{{"tuft.request_id", requestID}, {"tuft.operation_type", operation}}
	if work.modelID != "" {
		attrs = append(attrs, attr{"tuft.model_id", work.modelID})
	}
	saved := end.Add(-s.rand.duration(0.0004, 0.0012))
	s.chain(work, self, begun.Add(100*time.Microsecond), saved)
	status := "ready"
	if work.failure == nil {
		s.info("futures", saved, "Future completed: "+requestID, self)
		work.done(length)
	} else {
		status = "failed"
		s.failed(saved, requestID, operation, self, *work.failure)
	}
	s.redis("SET", self, saved, end)
	span := s.end(spanSpec{ref: self, parent: server.span, scope: "tuft.futures", name: "future_store.execute_operation", start: begun, end: end, attrs: attrs})
	if work.failure != nil {
		// The store catches the exception: an event, and no error status.
		e := *work.failure
		e.escaped = false
		recordException(span, saved, e)
	}
	s.completed.record(1, attr{"operation_type", operation}, attr{"status", status})
	s.waitTime.record(wait.Seconds(), attr{"operation_type", operation})
	s.executionTime.record(length.Seconds(), attr{"operation_type", operation})
	s.queueLength.record(-1, attr{"queue_state", "active"})

	code := 200
	if work.failure != nil {
		code = 500
	}
	asked := start.Add(6 * time.Millisecond)
	retrieve := s.newTrace()
	s.redis("GET", retrieve, asked.Add(time.Millisecond), asked.Add(2*time.Millisecond))
	s.requestAs(retrieve, "/api/v1/retrieve_future", code, asked, at)
}

// work says what an operation does.
func (s *tuftServer) work(run *tuftRun, operation string) tuftWork {
	ids := []attr{{"tuft.training_run_id", run.id}, {"tuft.session_id", run.session}}
	lora := attr{"tuft.lora_id", run.id}
	controller := func(name, log string, attrs ...attr) tuftLevel {
		return tuftLevel{s.process, "tuft.training_controller", "training_controller." + name, append(ids, attrs...), log}
	}
	backend := func(name string, attrs ...attr) []tuftLevel {
		out := []tuftLevel{{s.process, "tuft.backends.training_backend", "training_backend." + name, append([]attr{lora}, attrs...), ""}}
		if run.traced {
			out = append(out, tuftLevel{s.ray, "tuft.backends.hf_training_model", "hf_model." + name, append([]attr{lora}, attrs...), ""})
		}
		return out
	}
	model := attr{"base_model", tuftModel}
	switch operation {
	case "create_model":
		return tuftWork{
			low: 0.5, high: 1.4, modelID: run.id,
			chain: append([]tuftLevel{
				controller("create_model", "Creating model "+run.id, attr{"tuft.base_model", tuftModel}, attr{"tuft.lora_rank", 32}),
			}, s.loraRank(backend("create_adapter"))...),
			done: func(time.Duration) { s.modelsActive.record(1, model) },
		}
	case "forward", "forward_backward":
		return s.pass(run, operation, controller, backend)
	case "optim_step":
		return tuftWork{
			low: 0.08, high: 0.25, modelID: run.id,
			chain: append([]tuftLevel{
				controller("run_optim_step", "Optimizer step begin for "+run.id, attr{"tuft.learning_rate", 1e-4}),
			}, backend("optim_step")...),
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
				controller("save_checkpoint", "Checkpoint save begin: checkpoint-"+strconv.Itoa(run.requests), attr{"tuft.checkpoint_type", kind}),
			}, backend("save_state", attr{"tuft.optimizer", optimizer})...),
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
			chain: backend("load_state", attr{"tuft.optimizer", true}),
			done:  func(time.Duration) {},
		}
	case "unload_model":
		return tuftWork{
			low: 0.02, high: 0.08, modelID: run.id,
			chain: backend("remove_adapter")[:1],
			done:  func(time.Duration) { s.modelsActive.record(-1, model) },
		}
	default:
		return s.sample(run, model)
	}
}

// loraRank adds what only the creation of an adapter reports.
func (s *tuftServer) loraRank(levels []tuftLevel) []tuftLevel {
	levels[0].attrs = append(levels[0].attrs, attr{"tuft.lora_rank", 32})
	for i := range levels[1:] {
		levels[i+1].attrs = append(levels[i+1].attrs, attr{"tuft.lora_rank", 32}, attr{"tuft.lora_alpha", 64})
	}
	return levels
}

// pass is a forward pass, with the backward pass or without.
func (s *tuftServer) pass(
	run *tuftRun, operation string,
	controller func(string, string, ...attr) tuftLevel, backend func(string, ...attr) []tuftLevel,
) tuftWork {
	data := s.rand.count(4, 16)
	tokens := data * s.rand.count(300, 900)
	backward := attr{"tuft.backward", operation == "forward_backward"}
	work := tuftWork{
		low: 0.35, high: 0.9, modelID: run.id,
		chain: append([]tuftLevel{
			controller("run_"+operation, "Forward/backward begin for "+run.id,
				backward, attr{"tuft.data_count", data}, attr{"tuft.loss_fn", "cross_entropy"}),
		}, backend(operation, backward, attr{"tuft.data_count", data})...),
		done: func(length time.Duration) {
			s.trainTokens.record(float64(tokens)/length.Seconds(), attr{"base_model", tuftModel})
			s.truth.CountTokens("training", "input", tokens)
		},
	}
	if last := &work.chain[len(work.chain)-1]; run.traced {
		last.attrs = append(last.attrs, attr{"tuft.num_micro_batches", (data + 3) / 4})
	}
	if s.passes++; s.passes%tuftFailEvery == 0 {
		message := "CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 79.65 GiB of which 1.12 GiB is free."
		work.failure = &exception{
			kind: "torch.OutOfMemoryError", message: message,
			trace: "Traceback (most recent call last):\n" +
				"  File \"/opt/tuft/src/tuft/backends/hf_training_model.py\", line 402, in forward\n" +
				"    loss, metrics = self._forward_micro_batch(micro_batch, loss_fn)\n" +
				"torch.OutOfMemoryError: " + message + "\n",
			escaped: true,
		}
	}
	return work
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
				s.process, "tuft.sampling_controller", "sampling_controller.run_sample",
				[]attr{{"tuft.sampling_session_id", run.samplingSession}, {"tuft.session_id", run.session}, {"tuft.num_samples", samples}},
				"Sampling begin for " + run.samplingSession,
			},
			{
				s.process, "tuft.backends.sampling_backend", "sampling_backend.sample",
				[]attr{{"tuft.num_samples", samples}, {"tuft.has_lora", true}, {"tuft.lora_id", run.samplingSession}}, "",
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
		refs[i] = level.process.child(above)
		if level.log != "" {
			s.info("training", start, level.log, refs[i])
		}
	}
	for i, level := range slices.Backward(work.chain) {
		above := parent
		if i > 0 {
			above = refs[i-1]
		}
		inset := time.Duration(i) * 300 * time.Microsecond
		span := level.process.end(spanSpec{
			ref: refs[i], parent: above.span, scope: level.scope, name: level.name,
			start: start.Add(inset), end: end.Add(-inset), attrs: level.attrs,
		})
		if work.failure == nil {
			continue
		}
		if level.process == s.ray {
			// The worker records the exception itself, and the SDK once more.
			e := *work.failure
			e.escaped = false
			recordException(span, end.Add(-inset), e)
		}
		fail(span, end.Add(-inset), *work.failure)
		if i == len(work.chain)-1 {
			level.process.truth.Fail(sentlog.Failure{
				TraceID: refs[i].trace.String(), SpanID: refs[i].span.String(), Name: level.name,
				ExceptionType: work.failure.kind, ExceptionMessage: work.failure.message,
			})
		}
	}
}

// createSamplingSession is answered within the request: no future.
func (s *tuftServer) createSamplingSession(run *tuftRun, at time.Time) {
	s.removeAdapter(run, at)
	run.samplingSession = s.rand.uuid()
	length := s.length(0.05, 0.2)
	start := at.Add(-length)
	server := s.newTrace()
	self := s.child(server)
	s.end(spanSpec{
		ref: s.child(self), parent: self.span, scope: "tuft.backends.sampling_backend", name: "sampling_backend.add_adapter",
		start: start.Add(2 * time.Millisecond), end: at.Add(-2 * time.Millisecond),
		attrs: []attr{{"tuft.lora_id", run.samplingSession}},
	})
	s.end(spanSpec{
		ref: self, parent: server.span, scope: "tuft.sampling_controller", name: "sampling_controller.create_sampling_session",
		start: start.Add(time.Millisecond), end: at.Add(-time.Millisecond),
		attrs: []attr{
			{"tuft.session_id", run.session},
			{"tuft.sampling_session_id", run.samplingSession},
			{"tuft.base_model", tuftModel},
		},
	})
	s.info("sampling_controller", at.Add(-time.Millisecond), "Sampling session created: "+run.samplingSession, self)
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
		ref: s.newTrace(), scope: "tuft.backends.sampling_backend", name: "sampling_backend.remove_adapter",
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

// request records an HTTP request and returns its span.
func (s *tuftServer) request(path string, code int, start, end time.Time) ref {
	self := s.newTrace()
	s.requestAs(self, path, code, start, end)
	return self
}

// requestAs records the spans of FastAPI's instrumentation for a request: the
// receipt, the two parts of the answer, and the server span.
func (s *tuftServer) requestAs(self ref, path string, code int, start, end time.Time) {
	const scope = "opentelemetry.instrumentation.fastapi"
	name := "POST " + path
	part := func(kind string, at time.Time, attrs ...attr) {
		s.end(spanSpec{
			ref: s.child(self), parent: self.span, scope: scope, name: name + " http " + kind,
			start: at, end: at.Add(60 * time.Microsecond), attrs: attrs,
		})
	}
	part("receive", start.Add(200*time.Microsecond), attr{"asgi.event.type", "http.request"})
	part("send", end.Add(-300*time.Microsecond), attr{"asgi.event.type", "http.response.start"}, attr{"http.status_code", code})
	part("send", end.Add(-150*time.Microsecond), attr{"asgi.event.type", "http.response.body"})
	span := s.end(spanSpec{
		ref: self, scope: scope, name: name, kind: ptrace.SpanKindServer, start: start, end: end,
		attrs: []attr{
			{"http.scheme", "http"},
			{"http.host", "127.0.0.1:10610"},
			{"net.host.port", 10610},
			{"http.flavor", "1.1"},
			{"http.target", path},
			{"http.url", "http://127.0.0.1:10610" + path},
			{"http.method", "POST"},
			{"http.server_name", "127.0.0.1:10610"},
			{"http.user_agent", "python-httpx/0.28.1"},
			{"net.peer.ip", "127.0.0.1"},
			{"net.peer.port", 51234},
			{"http.route", path},
			{"http.status_code", code},
		},
	})
	if code >= 500 {
		span.Status().SetCode(ptrace.StatusCodeError)
	}
}

func (s *tuftServer) redis(operation string, parent ref, start, end time.Time) {
	s.end(spanSpec{
		ref: s.child(parent), parent: parent.span, scope: "tuft.persistence.redis_store", name: "redis." + operation, start: start, end: end,
		attrs: []attr{{"db.system", "redis"}, {"db.operation", operation}},
	})
	s.redisDuration.record(end.Sub(start).Seconds(), attr{"operation", operation})
}

// info sends a log record as Python's logging bridge does: the ids of the
// current span as fields, and again as attributes.
func (s *tuftServer) info(module string, at time.Time, body string, in ref) {
	s.log("tuft."+module, at, plog.SeverityNumberInfo, "INFO", body, in, bridgeAttrs(module, in))
}

func (s *tuftServer) failed(at time.Time, request, operation string, in ref, e exception) {
	attrs := append(bridgeAttrs("futures", in),
		attr{"exception.type", e.kind},
		attr{"exception.message", e.message},
		attr{"exception.stacktrace", e.trace},
	)
	body := "Future failed (Unhandled): " + request + " op=" + operation
	s.log("tuft.futures", at, plog.SeverityNumberError, "ERROR", body, in, attrs)
}

func bridgeAttrs(module string, in ref) []attr {
	trace, span := in.trace.String(), in.span.String()
	if in.trace.IsEmpty() {
		trace, span = "0", "0"
	}
	return []attr{
		{"code.file.path", "/opt/tuft/src/tuft/" + module + ".py"},
		{"code.function.name", "_runner"},
		{"code.line.number", 322},
		{"otelSpanID", span},
		{"otelTraceID", trace},
		{"otelTraceSampled", !in.trace.IsEmpty()},
		{"otelServiceName", "tuft"},
	}
}
