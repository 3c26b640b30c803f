package scenario

import (
	"fmt"
	"math"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
)

const taskweaverScope = "taskweaver.module.tracing"

// taskWeaver imitates TaskWeaver 0.0.12 according to its source: an agent
// service with several chat sessions. Only the root span of a round names the
// session. It ends last and is often sent in a later request than its children.
type taskWeaver struct {
	*process
	sessions []*weaverSession
	round    int
	tokens   *instrument
	// held are the root spans that wait for the next request.
	held []spanSpec
}

type weaverSession struct {
	id     string
	rounds int
	// worker is the role that writes code: its class and its generator's.
	worker, generator string
	pluginsLoaded     bool
}

func newTaskWeaver(settings Settings) Scenario {
	t := &taskWeaver{process: newProcess("taskweaver", "service", settings, []attr{
		{"service.name", "taskweaver.otlp.tracer"},
	})}
	m := &meter{scope: taskweaverScope}
	t.tokens = m.add(counter, "prompt_size", "1", "Counts the number of tokens in the prompt.")
	t.meters = []*meter{m}
	// A round takes some seconds, so a session is used about every ten.
	t.sessions = make([]*weaverSession, min(1000, max(4, int(math.Ceil(10*settings.Rate)))))
	return t
}

// session returns the session of the next round. It opens a new one when the
// last one has had all its rounds.
func (t *taskWeaver) session() *weaverSession {
	slot := t.round % len(t.sessions)
	s := t.sessions[slot]
	if s == nil || s.rounds == 3 {
		s = &weaverSession{id: t.rand.stamp() + "-" + t.rand.hex(4)}
		switch slot % 8 {
		case 3:
			s.worker, s.generator = "CodeInterpreterCLIOnly", "CodeGeneratorCLIOnly"
		case 6:
			s.worker, s.generator = "CodeInterpreterPluginOnly", "CodeGeneratorPluginOnly"
		default:
			s.worker, s.generator = "CodeInterpreter", "CodeGenerator"
		}
		t.sessions[slot] = s
	}
	return s
}

// Step performs one round of a session.
func (t *taskWeaver) Step(at time.Time) []Batch {
	t.begin(at.Add(-30 * time.Second))
	// The roots of an earlier round are sent first, because they ended before.
	t.release()
	s := t.session()
	round := newWeaverRound(t, s, at)
	root := round.run()
	// In every second round, the exporter splits children and root.
	t.held = append(t.held, root)
	if t.round%2 == 0 {
		t.release()
	}
	t.round++
	s.rounds++
	if s.rounds == 3 {
		if s.worker == "CodeInterpreter" {
			t.experience(at, s)
		}
		t.stop(at)
	}
	return t.flush(at, false)
}

// Finish sends the pending roots and the data of the exporters.
func (t *taskWeaver) Finish(at time.Time) []Batch {
	t.release()
	return t.flush(at, true)
}

func (t *taskWeaver) release() {
	for _, root := range t.held {
		t.endRoot(root)
	}
	t.held = t.held[:0]
}

func (t *taskWeaver) endRoot(spec spanSpec) {
	span := t.end(spec)
	if last := spec.attrs[len(spec.attrs)-1]; last.key != "reply_to_user" {
		span.Status().SetCode(ptrace.StatusCodeError)
		span.Status().SetMessage("Chat round is not finished successfully.")
	}
}

// stop records the end of a session: the root of its own trace, without a
// session id.
func (t *taskWeaver) stop(at time.Time) {
	t.end(spanSpec{
		ref: t.newTrace(), scope: taskweaverScope, name: "Session.stop",
		start: at.Add(-t.rand.duration(0.002, 0.03)), end: at,
	})
}

// count adds a model call's tokens to the counter and to the known truth.
func (t *taskWeaver) count(role string, input, output int64) {
	t.tokens.record(float64(input), attr{"direction", "input"})
	t.tokens.record(float64(output), attr{"direction", "output"})
	t.truth.CountTokens(role, "input", input)
	t.truth.CountTokens(role, "output", output)
}

// experience records the summary of a finished session: its own trace, without
// a session id.
func (t *taskWeaver) experience(at time.Time, s *weaverSession) {
	input, output := t.rand.count(2500, 6000), t.rand.count(120, 300)
	length := answerTime(output)
	t.end(spanSpec{
		ref: t.newTrace(), scope: taskweaverScope, name: "ExperienceGenerator.summarize_experience",
		start: at.Add(-length), end: at,
		attrs: []attr{
			{"prompt", fmt.Sprintf("[{\"role\": \"system\", \"content\": \"Summarise what worked in session %s.\"}]", s.id)},
			{"prompt_size", input},
			{"output_size", output},
		},
	})
	t.count("ExperienceGenerator", input, output)
}

// answerTime returns how long a model takes to write tokens.
func answerTime(output int64) time.Duration {
	return seconds(0.35 + float64(output)/90)
}

// weaverRound is one user message and the agent's reaction.
type weaverRound struct {
	*taskWeaver
	session *weaverSession
	id      string
	task    weaverTask
	root    ref
	text    ref
	// begin is when the round started and clock the time within it.
	begun, clock time.Time
}

// weaverTask is what a user asks, in simulated content.
type weaverTask struct {
	message, plan, code, result, reply string
	bug                                weaverBug
}

// weaverBug is code that a model wrote with a mistake in it: it needs nothing
// but Python, and really raises. TestGeneratedCodeFails asks a Python for it.
type weaverBug struct {
	code string
	// line is where it raises.
	line int
	// kind is a builtin exception.
	kind, message string
}

// printed is the traceback as TaskWeaver's executor returns it.
func (b weaverBug) printed() string {
	return fmt.Sprintf("Traceback (most recent call last):\n  File \"<ipython-input-1>\", line %d, in <module>\n    %s\n%s: %s\n",
		b.line, strings.Split(b.code, "\n")[b.line-1], b.kind, b.message)
}

var weaverTasks = []weaverTask{
	{
		"Plot the monthly sales in sales.csv", "1. load the file\n2. plot by month",
		"import pandas as pd\ndf = pd.read_csv('sales.csv')\ndf.groupby('month').sum().plot()",
		"Figure saved as sales.png", "The plot of the monthly sales is in sales.png.",
		weaverBug{
			"sales = [('January', '1843'), ('February', 1730)]\nsum(amount for month, amount in sales)", 2,
			"TypeError", "unsupported operand type(s) for +: 'int' and 'str'",
		},
	},
	{
		"Which of our sensors drifted last week?", "1. load the readings\n2. compare with the week before",
		"drift = readings.groupby('sensor').mean() - before.groupby('sensor').mean()\ndrift[drift.abs() > 0.5]",
		"sensor 7: 0.81", "Sensor 7 drifted by 0.81 degrees.",
		weaverBug{
			"before = {'sensor 7': 20.4}\nafter = {'sensor 7': 21.2, 'sensor 9': 19.8}\n{name: after[name] - before[name] for name in after}", 3,
			"KeyError", "'sensor 9'",
		},
	},
	{
		"Forecast the next 30 days of visitors", "1. fit a seasonal model\n2. forecast 30 days",
		"model = fit(visitors, season=7)\nforecast = model.predict(30)",
		"mean 1843 visitors a day", "I expect about 1,843 visitors a day.",
		weaverBug{
			"visitors = [1843, 1730, 1902]\nforecast = df.mean()", 2,
			"NameError", "name 'df' is not defined",
		},
	},
}

func newWeaverRound(t *taskWeaver, s *weaverSession, at time.Time) *weaverRound {
	r := &weaverRound{
		taskWeaver: t, session: s, task: pick(t.rand, weaverTasks),
		id:   "round-" + t.rand.stamp() + "-" + t.rand.hex(4),
		root: t.newTrace(),
	}
	r.text = t.child(r.root)
	r.clock = at
	return r
}

// run performs the round so that it ends at the clock, and returns its root,
// which has not left yet. Lengths come first and spans after, because a round's
// start follows from its end.
func (r *weaverRound) run() spanSpec {
	end := r.clock
	failed := r.settings.fails(end, r.rand, r.rand.IntN(12) == 0)
	retried := r.rand.IntN(5) == 0
	sentlog.Count(&r.truth.Requests, "round", 1)
	if r.session.rounds == 0 {
		sentlog.Count(&r.truth.Runs, r.session.id, 1)
	}

	first, last := r.planLLM(1800, 5200), r.planLLM(2200, 6000)
	attempts := []weaverAttempt{r.planAttempt(failed || retried)}
	if retried && !failed {
		attempts = append(attempts, r.planAttempt(false))
	}
	total := first.length + last.length + 40*time.Millisecond
	for _, a := range attempts {
		total += a.model.length + a.start + a.load + a.run + 20*time.Millisecond
	}
	r.begun = end.Add(-total)
	r.clock = r.begun.Add(5 * time.Millisecond)

	r.planner("User", "Planner", r.task.message, r.session.worker, r.task.plan, first)
	for i, a := range attempts {
		from := "Planner"
		if i > 0 {
			from = r.session.worker
		}
		r.work(from, a)
	}
	// The client resets its count of inner messages when a round succeeds, and
	// reports it afterwards.
	internal := 0
	if failed {
		internal = len(attempts) + 1
	} else {
		r.planner(r.session.worker, "Planner", r.task.result, "User", r.task.reply, last)
	}

	text := r.end(spanSpec{
		ref: r.text, parent: r.root.span, scope: taskweaverScope, name: "Session._send_text_message",
		start: r.begun.Add(time.Millisecond), end: end.Add(-time.Millisecond),
		attrs: []attr{
			{"round_id", r.id},
			{"round_index", r.session.rounds},
			{"message", r.task.message},
			{"internal_chat_num", internal},
		},
	})
	root := spanSpec{
		ref: r.root, scope: taskweaverScope, name: "Session.send_message", start: r.begun, end: end,
		attrs: []attr{
			{"session_id", r.session.id},
			{"message", r.task.message},
			{"files", "None"},
			{"round_id", r.id},
		},
	}
	if failed {
		message := "Internal chat round number exceeds the limit of 10"
		e := exception{
			kind: "Exception", message: message,
			trace: "Traceback (most recent call last):\n" +
				"  File \"/app/taskweaver/session/session.py\", line 225, in _send_text_message\n" +
				"    raise Exception(\nException: " + message + "\n",
		}
		recordException(text, end.Add(-time.Millisecond), e)
		text.Status().SetCode(ptrace.StatusCodeError)
		text.Status().SetMessage("Cannot process your request due to Exception: " + message + " \n " + e.trace)
		r.truth.Fail(sentlog.Failure{
			TraceID: r.root.trace.String(), SpanID: r.text.span.String(), Name: "Session._send_text_message",
			ExceptionType: e.kind, ExceptionMessage: message,
		})
		return root
	}
	root.attrs = append(root.attrs, attr{"reply_to_user", r.task.reply})
	return root
}

// weaverCall is one call of a language model.
type weaverCall struct {
	input, output int64
	length        time.Duration
}

func (r *weaverRound) planLLM(low, high int) weaverCall {
	c := weaverCall{input: r.rand.count(low, high), output: r.rand.count(25, 140)}
	c.length = answerTime(c.output)
	return c
}

// weaverAttempt is one try at writing and running code.
type weaverAttempt struct {
	model            weaverCall
	start, load, run time.Duration
	failed           bool
}

// code is what the model wrote at this try.
func (a weaverAttempt) code(task weaverTask) string {
	if a.failed {
		return task.bug.code
	}
	return task.code
}

func (r *weaverRound) planAttempt(failed bool) weaverAttempt {
	a := weaverAttempt{
		model: r.planLLM(2500, 7000), failed: failed,
		start: r.rand.duration(0.002, 0.01),
		run:   r.rand.duration(0.15, 0.9),
	}
	if !r.session.pluginsLoaded && r.session.worker == "CodeInterpreter" {
		r.session.pluginsLoaded = true
		a.load = r.rand.duration(0.1, 0.3)
	}
	return a
}

// message records a `_send_message` span and what happens inside it.
func (r *weaverRound) message(from, to, text string, inside func(ref)) {
	start := r.clock
	self := r.child(r.text)
	r.clock = r.clock.Add(time.Millisecond)
	inside(self)
	r.clock = r.clock.Add(time.Millisecond)
	r.end(spanSpec{
		ref: self, parent: r.text.span, scope: taskweaverScope, name: "_send_message", start: start, end: r.clock,
		attrs: []attr{
			{"in.from", from},
			{"in.recipient", to},
			{"in.message", text},
			{"in.attachments", "[]"},
		},
	})
}

func (r *weaverRound) planner(from, to, text, next, reply string, call weaverCall) {
	r.message(from, to, text, func(parent ref) {
		start := r.clock
		self := r.child(parent)
		length := call.length
		r.compress(self, start.Add(time.Millisecond), length/3, r.session.rounds > 0 && from == "User")
		r.clock = start.Add(length)
		r.end(spanSpec{
			ref: self, parent: parent.span, scope: taskweaverScope, name: "Planner.reply", start: start, end: r.clock,
			attrs: append([]attr{
				{"user_query", r.task.message},
				{"use_experience", false},
				{"prompt", chatPrompt("You plan the work of a code interpreter.", text)},
				{"prompt_size", call.input},
				{"output_size", call.output},
			}, out("Planner", next, reply)...),
		})
		r.count("Planner", call.input, call.output)
	})
}

// compress records the compression of the history, which each reply of the
// planner asks for. Mostly there is nothing to do; from the second round on it is
// summarised.
func (r *weaverRound) compress(parent ref, start time.Time, length time.Duration, needed bool) {
	self, summary := r.child(parent), ""
	if needed {
		summary = "The user works on: " + r.task.message
		r.summarize(self, start.Add(100*time.Microsecond), length-200*time.Microsecond, summary)
	} else {
		length = 50 * time.Microsecond
	}
	r.end(spanSpec{
		ref: self, parent: parent.span, scope: taskweaverScope, name: "RoundCompressor.compress_rounds",
		start: start, end: start.Add(length), attrs: []attr{{"chat_summary", summary}},
	})
}

func (r *weaverRound) summarize(parent ref, start time.Time, length time.Duration, summary string) {
	input, output := r.rand.count(600, 1500), r.rand.count(30, 80)
	r.end(spanSpec{
		ref: r.child(parent), parent: parent.span, scope: taskweaverScope, name: "RoundCompressor._summarize",
		start: start, end: start.Add(length),
		attrs: []attr{
			{"prompt", chatPrompt("You shorten a conversation.", r.task.message)},
			{"prompt_size", input},
			{"summary", summary},
			{"output_size", output},
		},
	})
	r.count("RoundCompressor", input, output)
}

// work records a worker role's reply: code is written and run.
func (r *weaverRound) work(from string, a weaverAttempt) {
	worker := r.session.worker
	r.message(from, worker, r.task.plan, func(parent ref) {
		start := r.clock
		self := r.child(parent)
		r.clock = r.clock.Add(a.model.length)
		r.end(spanSpec{
			ref: r.child(self), parent: self.span, scope: taskweaverScope,
			name: r.session.generator + ".reply", start: start.Add(time.Millisecond), end: r.clock,
			attrs: r.generatorAttrs(a),
		})
		r.count(r.session.generator, a.model.input, a.model.output)
		code := a.code(r.task)
		result, next := r.task.result, "Planner"
		if a.failed {
			result, next = r.task.bug.printed(), worker
		}
		if worker == "CodeInterpreter" {
			r.verify(self, code)
			result = r.execute(self, a, result)
		} else {
			r.clock = r.clock.Add(a.run)
		}
		attrs := []attr{{"code", code}}
		if worker == "CodeInterpreter" {
			attrs = append(attrs, attr{"code_verification_on", true})
		} else {
			attrs = append(attrs, attr{"code_output", result})
		}
		span := r.end(spanSpec{
			ref: self, parent: parent.span, scope: taskweaverScope, name: worker + ".reply", start: start, end: r.clock,
			attrs: append(attrs, out(worker, next, result)...),
		})
		if a.failed {
			span.Status().SetCode(ptrace.StatusCodeError)
			span.Status().SetMessage("Code execution failed.")
		}
	})
}

func (r *weaverRound) generatorAttrs(a weaverAttempt) []attr {
	call, code := a.model, a.code(r.task)
	prompt := chatPrompt("You write Python code.", r.task.plan)
	switch r.session.generator {
	case "CodeGeneratorCLIOnly":
		return []attr{{"prompt_size", call.input}, {"prompt", prompt}, {"output_size", call.output}, {"code", code}}
	case "CodeGeneratorPluginOnly":
		return []attr{
			{"user_query", r.task.message},
			{"prompt_size", call.input},
			{"prompt", prompt},
			{"output_size", call.output},
			{"functions", "[]"},
		}
	default:
		return []attr{
			{"query", r.task.plan},
			{"enable_auto_plugin_selection", false},
			{"use_experience", false},
			{"prompt", prompt},
			{"prompt_size", call.input},
			{"output_size", call.output},
			{"code", code},
		}
	}
}

// verify records the look at the code before it is run, which finds nothing.
func (r *weaverRound) verify(parent ref, code string) {
	start := r.clock
	r.clock = r.clock.Add(time.Millisecond)
	r.end(spanSpec{
		ref: r.child(parent), parent: parent.span, scope: taskweaverScope, name: "CodeInterpreter.verify_code",
		start: start, end: r.clock, attrs: []attr{{"code", code}},
	})
}

// execute records the run of the code and its parts, and returns what the
// executor says of it.
func (r *weaverRound) execute(parent ref, a weaverAttempt, result string) string {
	start := r.clock
	self := r.child(parent)
	part := func(name string, length time.Duration, attrs ...attr) {
		from := r.clock
		r.clock = r.clock.Add(length)
		r.end(spanSpec{
			ref: r.child(self), parent: self.span, scope: taskweaverScope, name: name, start: from, end: r.clock, attrs: attrs,
		})
	}
	part("start", a.start)
	if a.load > 0 {
		part("load_plugin", a.load)
	}
	part("run_code", a.run, attr{"code", a.code(r.task)})
	// The result is the only place that says what failed: there is no exception
	// event, and the run itself has no status.
	outcome := "succeeded"
	if a.failed {
		outcome = "failed"
	}
	result = "The execution of the generated python code above has " + outcome + "\n" + result
	span := r.end(spanSpec{
		ref: self, parent: parent.span, scope: taskweaverScope, name: "CodeExecutor.execute_code",
		start: start, end: r.clock, attrs: []attr{{"result", result}},
	})
	if a.failed {
		span.Status().SetCode(ptrace.StatusCodeError)
		span.Status().SetMessage("Code execution failed.")
		r.truth.Fail(sentlog.Failure{
			TraceID: self.trace.String(), SpanID: self.span.String(), Name: "CodeExecutor.execute_code",
			ExceptionType: r.task.bug.kind, ExceptionMessage: r.task.bug.message,
		})
	}
	return result
}

func out(from, to, message string) []attr {
	return []attr{{"out.from", from}, {"out.to", to}, {"out.message", message}, {"out.attachments", "[]"}}
}

func chatPrompt(system, user string) string {
	return fmt.Sprintf("[\n  {\n    \"role\": \"system\",\n    \"content\": %q\n  },\n  {\n    \"role\": \"user\",\n    \"content\": %q\n  }\n]", system, user)
}
