package mlenrichprocessor

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// TestPrecedence has a span that could have its session from several places:
// itself before its parent before its trace before a link.
func TestPrecedence(t *testing.T) {
	const none = ""
	for name, test := range map[string]struct {
		own, parent, trace, link string
		want, source, conflict   string
	}{
		"nowhere":                     {},
		"own":                         {own: "o", want: "o"},
		"parent":                      {parent: "p", want: "p", source: "session=parent"},
		"trace":                       {trace: "t", want: "t", source: "session=trace"},
		"link":                        {link: "l", want: "l", source: "session=link"},
		"own and parent":              {own: "o", parent: "p", want: "o", conflict: "ml.session.id"},
		"own and parent agree":        {own: "p", parent: "p", want: "p"},
		"own and trace":               {own: "o", trace: "t", want: "o"},
		"own and link":                {own: "o", link: "l", want: "o"},
		"parent and trace":            {parent: "p", trace: "t", want: "p", source: "session=parent"},
		"parent and trace agree":      {parent: "p", trace: "p", want: "p", source: "session=parent"},
		"parent and link":             {parent: "p", link: "l", want: "p", source: "session=parent"},
		"trace and link":              {trace: "t", link: "l", want: "t", source: "session=trace"},
		"own, parent, trace and link": {own: "o", parent: "p", trace: "t", link: "l", want: "o", conflict: "ml.session.id"},
	} {
		t.Run(name, func(t *testing.T) {
			session := func(id string) map[string]any {
				if id == none {
					return nil
				}
				return map[string]any{"ml.session.id": id}
			}
			for seed := range uint64(20) {
				out := startDefault(t).sendTraces(t, batchWithLinks("x", shuffled(seed, []linkedSpan{
					{testSpan{1, 1, 0, "parent", session(test.parent)}, nil},
					{testSpan{1, 2, 1, "span", session(test.own)}, []to{{2, 1}}},
					{testSpan{1, 3, 9, "aside", session(test.trace)}, nil},
					{testSpan{2, 1, 0, "linked", session(test.link)}, nil},
				})...))
				assert.Equal(t, test.want, keysByName(out, "ml.session.id")["span"])
				assert.Equal(t, test.source, keysByName(out, "ml.correlation.source")["span"])
				assert.Equal(t, test.conflict, keysByName(out, "ml.correlation.conflict")["span"])
			}
		})
	}
}

// TestRunOfSpanPrecedence has a span that could have its run from several
// places. The run of its resource is the span's: it is put on the span only
// where another one would have come before it.
//
// What an ancestor states is about the work that the span is part of: TuFT in a
// Slurm job works for many training runs, and a run of MLflow has runs within.
// What somebody named comes before what was inferred, wherever it is.
func TestRunOfSpanPrecedence(t *testing.T) {
	const inferred = "inferred" // for the resource: nobody names its run
	for name, test := range map[string]struct {
		own, parent, trace, resource string
		want, source, conflict       string
	}{
		"nowhere":                         {},
		"own":                             {own: "o", want: "o"},
		"parent":                          {parent: "p", want: "p", source: "run=parent"},
		"trace":                           {trace: "t", want: "t", source: "run=trace"},
		"resource":                        {resource: "r"},
		"inferred":                        {resource: inferred},
		"own and parent":                  {own: "o", parent: "p", want: "o", conflict: "ml.run.id"},
		"own and resource":                {own: "o", resource: "r", want: "o", conflict: "ml.run.id"},
		"own and inferred":                {own: "o", resource: inferred, want: "o"},
		"parent and trace":                {parent: "p", trace: "t", want: "p", source: "run=parent"},
		"parent and resource":             {parent: "p", resource: "r", want: "p", source: "run=parent", conflict: "ml.run.id"},
		"parent and resource agree":       {parent: "r", resource: "r"},
		"parent and inferred":             {parent: "p", resource: inferred, want: "p", source: "run=parent"},
		"trace and resource":              {trace: "t", resource: "r"},
		"trace and inferred":              {trace: "t", resource: inferred, want: "t", source: "run=trace"},
		"own, parent, trace and resource": {own: "o", parent: "p", trace: "t", resource: "r", want: "o", conflict: "ml.run.id"},
		"parent, trace and resource":      {parent: "p", trace: "t", resource: "r", want: "p", source: "run=parent", conflict: "ml.run.id"},
		"parent, trace and inferred":      {parent: "p", trace: "t", resource: inferred, want: "p", source: "run=parent"},
	} {
		t.Run(name, func(t *testing.T) {
			run := func(id string) map[string]any {
				if id == "" {
					return nil
				}
				return map[string]any{"ml.run.id": id}
			}
			batches := func() []ptrace.Traces {
				service := "x"
				if test.resource == inferred {
					service = "torchtel"
				}
				of := batchOf(service, testSpan{1, 2, 1, "span", run(test.own)})
				if test.resource != "" && test.resource != inferred {
					of.ResourceSpans().At(0).Resource().Attributes().PutStr("ml.run.id", test.resource)
				}
				return []ptrace.Traces{
					batchOf("y", testSpan{1, 1, 0, "parent", run(test.parent)}),
					batchOf("z", testSpan{1, 3, 9, "aside", run(test.trace)}), of,
				}
			}
			check := func(out ptrace.Traces) {
				t.Helper()
				assert.Equal(t, test.want, keysByName(out, "ml.run.id")["span"])
				assert.Equal(t, test.source, keysByName(out, "ml.correlation.source")["span"])
				assert.Equal(t, test.conflict, keysByName(out, "ml.correlation.conflict")["span"])
				assert.Empty(t, keysByName(out, "ml.run.inferred")["span"])
			}
			for seed := range uint64(6) {
				td := ptrace.NewTraces()
				for _, one := range shuffled(seed, batches()) {
					one.ResourceSpans().MoveAndAppendTo(td.ResourceSpans())
				}
				p := startDefault(t)
				out := p.sendTraces(t, td)
				check(out)
				check(startDefault(t).sendTraces(t, out))
			}
			// One after the other, the span last.
			p := startDefault(t)
			var out ptrace.Traces
			for _, one := range batches() {
				out = p.sendTraces(t, one)
			}
			check(out)

			// A record of the span has the span's run, where that is not its
			// resource's.
			ld := plog.NewLogs()
			rl := ld.ResourceLogs().AppendEmpty()
			out.ResourceSpans().At(0).Resource().CopyTo(rl.Resource())
			record := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
			span := out.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
			record.SetTraceID(span.TraceID())
			record.SetSpanID(span.SpanID())
			got := p.sendLogs(t, ld).ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Attributes()
			assert.Equal(t, test.want, readID(got, "ml.run.id"))
		})
	}
}

// TestAnInferredRunIsNobodyElses has a run that was inferred for a caller come,
// by way of a request and then of its parent, to a span whose resource has one:
// that one stays, named or inferred.
func TestAnInferredRunIsNobodyElses(t *testing.T) {
	request := map[string]any{"snakepit.correlation_id": "c", "snakepit.command": "x"}
	for resource, attrs := range map[string]map[string]any{
		"named":    {"ml.run.id": "r"},
		"inferred": {"host.name": "n2"},
	} {
		td := batchOf("snakepit", testSpan{1, 1, 0, "snakepit.grpc.call", request})
		td.ResourceSpans().At(0).Resource().Attributes().PutStr("host.name", "n1")
		bridge := batchOf("snakepit.python.bridge", testSpan{2, 1, 0, "bridge", request})
		bridge.ResourceSpans().MoveAndAppendTo(td.ResourceSpans())
		other := batchOf("torchtel", testSpan{2, 2, 1, "span", nil})
		for key, value := range attrs {
			other.ResourceSpans().At(0).Resource().Attributes().PutStr(key, value.(string))
		}
		other.ResourceSpans().MoveAndAppendTo(td.ResourceSpans())
		runs := keysByName(startDefault(t).sendTraces(t, td), "ml.run.id")
		assert.NotEmpty(t, runs["bridge"], "it has what its caller was given")
		assert.NotContains(t, runs, "span", resource)
	}
}

// TestATrainingRunInAJobIsNoConflict has TuFT in a Slurm job: the spans of a
// training run, and what they store without saying so, are of that run, and the
// rest is of the job.
func TestATrainingRunInAJobIsNoConflict(t *testing.T) {
	td := batchOf("tuft",
		testSpan{1, 1, 0, "training_controller.run_forward", map[string]any{"tuft.training_run_id": "tr"}},
		testSpan{1, 2, 1, "redis.SET", nil}, testSpan{2, 1, 0, "redis.SCAN", nil})
	td.ResourceSpans().At(0).Resource().Attributes().PutStr("SLURM_JOB_ID", "42")
	out := startDefault(t).sendTraces(t, td)
	assert.Equal(t, map[string]string{"training_controller.run_forward": "tr", "redis.SET": "tr"}, keysByName(out, "ml.run.id"))
	assert.Equal(t, "run=parent,training_run=parent,phase=parent", keysByName(out, "ml.correlation.source")["redis.SET"])
	assert.Empty(t, keysByName(out, "ml.correlation.conflict"))
	run, _ := out.ResourceSpans().At(0).Resource().Attributes().Get("ml.run.id")
	assert.Equal(t, "42", run.Str())
}

// TestSessionFindsItsRun has one service name the run of a session and another
// only the session.
func TestSessionFindsItsRun(t *testing.T) {
	named := func(trace byte, session, run string) []testSpan {
		return []testSpan{{trace, 1, 0, "client", map[string]any{"ml.session.id": session, "ml.run.id": run}}}
	}
	server := func(trace byte, session string) []testSpan {
		return []testSpan{{trace, 1, 0, "serve", map[string]any{"ml.session.id": session}}, {trace, 2, 1, "below", nil}}
	}
	p := startDefault(t)
	assert.Empty(t, keysByName(p.sendTraces(t, batchOf("server", server(9, "s")...)), "ml.run.id"), "nothing is waited for")
	p.sendTraces(t, batchOf("client", named(1, "s", "job-1")...))
	out := p.sendTraces(t, batchOf("server", server(2, "s")...))
	assert.Equal(t, map[string]string{"serve": "job-1", "below": "job-1"}, keysByName(out, "ml.run.id"))
	assert.Equal(t, map[string]string{"serve": "run=session", "below": "session=parent,run=parent"}, keysByName(out, "ml.correlation.source"))
	assert.Empty(t, keysByName(p.sendTraces(t, batchOf("server", server(3, "other")...)), "ml.run.id"))

	// A session that two jobs share is of neither.
	p.sendTraces(t, batchOf("client", named(4, "s", "job-2")...))
	assert.Empty(t, keysByName(p.sendTraces(t, batchOf("server", server(5, "s")...)), "ml.run.id"))

	// A resource names its run too, but one that was inferred is the process's
	// own, and a fine-tuning service's session may train another run next.
	p = startDefault(t)
	td := batchOf("client", testSpan{1, 1, 0, "client", map[string]any{"ml.session.id": "s"}})
	td.ResourceSpans().At(0).Resource().Attributes().PutStr("ml.run.id", "job-1")
	p.sendTraces(t, td)
	assert.Equal(t, "job-1", keysByName(p.sendTraces(t, batchOf("server", server(2, "s")...)), "ml.run.id")["serve"])

	p = startDefault(t)
	td = batchOf("torchtel", testSpan{1, 1, 0, "train", map[string]any{"ml.session.id": "s"}})
	td.ResourceSpans().At(0).Resource().Attributes().PutStr("host.name", "n1")
	p.sendTraces(t, td)
	assert.Empty(t, keysByName(p.sendTraces(t, batchOf("server", server(2, "s")...)), "ml.run.id"))

	p = startDefault(t)
	p.sendTraces(t, batchOf("tuft", testSpan{1, 1, 0, "training_controller.create_model",
		map[string]any{"tuft.session_id": "s", "tuft.training_run_id": "tr"}}))
	assert.Empty(t, keysByName(p.sendTraces(t, batchOf("tuft", testSpan{2, 1, 0, "sampling_controller.create_sampling_session",
		map[string]any{"tuft.session_id": "s"}})), "ml.run.id"))
}

// TestTwoProcessorsFindOneRun sends what one processor gave to another, as behind
// a gateway. A resource with a training run and a tracker's run is of one run.
func TestTwoProcessorsFindOneRun(t *testing.T) {
	td := batchOf("tuner", testSpan{1, 1, 0, "step", nil})
	resource := td.ResourceSpans().At(0).Resource().Attributes()
	resource.PutStr("ml.training_run.id", "T")
	resource.PutStr("mlflow.run_id", "A")
	for range 2 {
		td = startDefault(t).sendTraces(t, td)
		id, _ := td.ResourceSpans().At(0).Resource().Attributes().Get("ml.run.id")
		assert.Equal(t, "T", id.Str())
	}
}

// TestStatusSaysThatALoaderEnded has the texts that Python's str, repr and
// traceback give of the exception by which an iterator ends.
func TestStatusSaysThatALoaderEnded(t *testing.T) {
	for message, ended := range map[string]bool{
		"StopIteration": true, "StopIteration()": true, "StopIteration: ": true, "StopIteration raised": true,
		"StopIterations": false, "OSError: StopIteration": false, "": false,
	} {
		td := batchOf("job", testSpan{1, 1, 0, "dataloader.next", nil})
		status := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Status()
		status.SetCode(ptrace.StatusCodeError)
		status.SetMessage(message)
		out := startDefault(t).sendTraces(t, td)
		_, marked := out.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes().Get("ml.epoch_end")
		assert.Equal(t, ended, marked, message)
	}
}
