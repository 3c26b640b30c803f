package mlenrichprocessor

import (
	"testing"

	"github.com/stretchr/testify/assert"
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

// TestRunOfSpanPrecedence has a span that could have its run from several places. The
// run of its resource is the span's: it is not put on the span.
func TestRunOfSpanPrecedence(t *testing.T) {
	for name, test := range map[string]struct {
		own, parent, resource  string
		want, source, conflict string
	}{
		"nowhere":             {},
		"own":                 {own: "o", want: "o"},
		"parent":              {parent: "p", want: "p", source: "run=parent"},
		"resource":            {resource: "r"},
		"own and parent":      {own: "o", parent: "p", want: "o", conflict: "ml.run.id"},
		"own and resource":    {own: "o", resource: "r", want: "o", conflict: "ml.run.id"},
		"parent and resource": {parent: "p", resource: "r"},
	} {
		t.Run(name, func(t *testing.T) {
			run := func(id string) map[string]any {
				if id == "" {
					return nil
				}
				return map[string]any{"ml.run.id": id}
			}
			td := batchOf("x", testSpan{1, 2, 1, "span", run(test.own)})
			if test.resource != "" {
				td.ResourceSpans().At(0).Resource().Attributes().PutStr("ml.run.id", test.resource)
			}
			batchOf("y", testSpan{1, 1, 0, "parent", run(test.parent)}).ResourceSpans().MoveAndAppendTo(td.ResourceSpans())
			out := startDefault(t).sendTraces(t, td)
			assert.Equal(t, test.want, keysByName(out, "ml.run.id")["span"])
			assert.Equal(t, test.source, keysByName(out, "ml.correlation.source")["span"])
			assert.Equal(t, test.conflict, keysByName(out, "ml.correlation.conflict")["span"])
		})
	}
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
