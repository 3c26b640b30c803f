package mlenrichprocessor

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// to is a link's end, as the ids of a testSpan.
type to struct{ trace, id byte }

// linkedSpan is a span with links.
type linkedSpan struct {
	testSpan
	links []to
}

func batchWithLinks(service string, spans ...linkedSpan) ptrace.Traces {
	plain := make([]testSpan, len(spans))
	for i := range spans {
		plain[i] = spans[i].testSpan
	}
	td := batchOf(service, plain...)
	for i, span := range td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
		for _, l := range spans[i].links {
			link := span.Links().AppendEmpty()
			if l.trace != 0 {
				link.SetTraceID([16]byte{0: 0xa0, 15: l.trace})
			}
			if l.id != 0 {
				link.SetSpanID([8]byte{0: 0xb0, 7: l.id})
			}
		}
	}
	return td
}

func keys(session, request string) map[string]any {
	attrs := make(map[string]any)
	if session != "" {
		attrs["ml.session.id"] = session
	}
	if request != "" {
		attrs["ml.request.id"] = request
	}
	return attrs
}

// TestLinks has a consumer link to producers, which come before it or with it.
func TestLinks(t *testing.T) {
	producers := []linkedSpan{
		{testSpan{1, 1, 0, "root 1", keys("s", "")}, nil},
		{testSpan{1, 2, 1, "send 1", keys("", "r1")}, nil},
		{testSpan{2, 1, 0, "root 2", keys("s", "")}, nil},
		{testSpan{2, 2, 1, "send 2", keys("", "r2")}, nil},
		{testSpan{3, 1, 0, "root 3", keys("other", "r3")}, nil},
	}
	for name, test := range map[string]struct {
		consumers []linkedSpan
		sessions  map[string]string
		requests  map[string]string
		sources   map[string]string
	}{
		"one link": {
			consumers: []linkedSpan{{testSpan{9, 1, 0, "receive", nil}, []to{{1, 2}}}},
			sessions:  map[string]string{"receive": "s"},
			requests:  map[string]string{"receive": "r1"},
			sources:   map[string]string{"receive": "session=link,request=link"},
		},
		"comes down": {
			consumers: []linkedSpan{
				{testSpan{9, 3, 2, "leaf", nil}, nil},
				{testSpan{9, 2, 1, "process", nil}, nil},
				{testSpan{9, 1, 0, "receive", nil}, []to{{1, 2}}},
			},
			sessions: map[string]string{"receive": "s", "process": "s", "leaf": "s"},
			requests: map[string]string{"receive": "r1", "process": "r1", "leaf": "r1"},
			sources: map[string]string{"receive": "session=link,request=link",
				"process": "session=parent,request=parent", "leaf": "session=parent,request=parent"},
		},
		"does not go up or aside": {
			consumers: []linkedSpan{
				{testSpan{9, 1, 0, "loop", nil}, nil},
				{testSpan{9, 2, 1, "receive", nil}, []to{{1, 2}}},
				{testSpan{9, 3, 1, "idle", nil}, nil},
			},
			sessions: map[string]string{"receive": "s"},
			requests: map[string]string{"receive": "r1"},
		},
		"two requests of one session": {
			consumers: []linkedSpan{{testSpan{9, 1, 0, "receive", nil}, []to{{1, 2}, {2, 2}}}},
			sessions:  map[string]string{"receive": "s"},
		},
		"two sessions": {
			consumers: []linkedSpan{{testSpan{9, 1, 0, "receive", nil}, []to{{1, 2}, {3, 1}}}},
		},
		"own before link": {
			consumers: []linkedSpan{{testSpan{9, 1, 0, "receive", keys("s", "mine")}, []to{{1, 2}}}},
			sessions:  map[string]string{"receive": "s"},
			requests:  map[string]string{"receive": "mine"},
		},
		"another session's request is not taken": {
			consumers: []linkedSpan{{testSpan{9, 1, 0, "receive", keys("mine", "")}, []to{{1, 2}}}},
			sessions:  map[string]string{"receive": "mine"},
		},
		"parent before link": {
			consumers: []linkedSpan{
				{testSpan{9, 2, 1, "receive", nil}, []to{{2, 2}}},
				{testSpan{9, 1, 0, "loop", keys("s", "mine")}, nil},
			},
			sessions: map[string]string{"loop": "s", "receive": "s"},
			requests: map[string]string{"loop": "mine", "receive": "mine"},
			sources:  map[string]string{"receive": "session=parent,request=parent"},
		},
		"trace before link": {
			consumers: []linkedSpan{
				{testSpan{9, 2, 8, "receive", nil}, []to{{1, 2}}},
				{testSpan{9, 1, 0, "loop", keys("s", "")}, nil},
			},
			sessions: map[string]string{"loop": "s", "receive": "s"},
			requests: map[string]string{"receive": "r1"},
			sources:  map[string]string{"receive": "session=trace,request=link"},
		},
		"one after the other": {
			consumers: []linkedSpan{
				{testSpan{8, 1, 0, "third", nil}, []to{{7, 2}}},
				{testSpan{7, 2, 1, "second", nil}, nil},
				{testSpan{7, 1, 0, "first", nil}, []to{{1, 2}}},
			},
			sessions: map[string]string{"first": "s", "second": "s", "third": "s"},
			requests: map[string]string{"first": "r1", "second": "r1", "third": "r1"},
		},
		"a circle":                {consumers: []linkedSpan{{testSpan{8, 1, 0, "a", nil}, []to{{9, 1}}}, {testSpan{9, 1, 0, "b", nil}, []to{{8, 1}}}}},
		"to its own trace":        {consumers: []linkedSpan{{testSpan{9, 1, 0, "a", keys("", "r")}, nil}, {testSpan{9, 2, 0, "b", nil}, []to{{9, 1}}}}, requests: map[string]string{"a": "r"}},
		"to nothing":              {consumers: []linkedSpan{{testSpan{9, 1, 0, "receive", nil}, []to{{0, 2}, {1, 0}, {6, 6}}}}},
		"to a span of no trace":   {consumers: []linkedSpan{{testSpan{9, 1, 0, "receive", nil}, []to{{0, 1}}}}},
		"to what its trace knows": {consumers: []linkedSpan{{testSpan{9, 1, 0, "receive", nil}, []to{{1, 77}}}}, sessions: map[string]string{"receive": "s"}},
	} {
		t.Run(name, func(t *testing.T) {
			check := func(out ptrace.Traces, message string) {
				t.Helper()
				consumed := map[string]bool{}
				for _, c := range test.consumers {
					consumed[c.name] = true
				}
				of := func(key string) map[string]string {
					found := keysByName(out, key)
					for name := range found {
						if !consumed[name] {
							delete(found, name)
						}
					}
					return found
				}
				equal := func(want map[string]string, key string) {
					t.Helper()
					if want == nil {
						want = map[string]string{}
					}
					assert.Equal(t, want, of(key), message)
				}
				equal(test.sessions, "ml.session.id")
				equal(test.requests, "ml.request.id")
				if test.sources != nil {
					equal(test.sources, "ml.correlation.source")
				}
			}
			p := startDefault(t)
			p.sendTraces(t, batchWithLinks("x", producers...))
			check(p.sendTraces(t, batchWithLinks("x", test.consumers...)), "after")
			both := append(append([]linkedSpan(nil), test.consumers...), producers...)
			for seed := range uint64(20) {
				check(startDefault(t).sendTraces(t, batchWithLinks("x", shuffled(seed, both)...)), fmt.Sprintf("with, seed %d", seed))
			}
		})
	}
}

// TestLinkHoldsForWhatComesLater has a child of the consumer arrive after it.
func TestLinkHoldsForWhatComesLater(t *testing.T) {
	p := startDefault(t)
	consumer := linkedSpan{testSpan{9, 1, 0, "receive", nil}, []to{{1, 1}}}
	child := testSpan{9, 2, 1, "process", nil}
	assert.Empty(t, keysByName(p.sendTraces(t, batchWithLinks("x", consumer)), "ml.session.id"), "nothing is waited for")
	p.sendTraces(t, batchOf("x", testSpan{1, 1, 0, "send", keys("s", "r")}))
	p.sendTraces(t, batchWithLinks("x", consumer))
	out := p.sendTraces(t, batchOf("x", child))
	assert.Equal(t, map[string]string{"process": "session=parent,request=parent"}, keysByName(out, "ml.correlation.source"))
}

// TestLinkCarriesTheRun has services of different runs. A run that was inferred
// for the producer's process stays there.
func TestLinkCarriesTheRun(t *testing.T) {
	consumer := batchWithLinks("consumer", linkedSpan{testSpan{9, 1, 0, "receive", nil}, []to{{1, 1}}})
	p := startDefault(t)
	producer := batchOf("producer", testSpan{1, 1, 0, "send", nil})
	producer.ResourceSpans().At(0).Resource().Attributes().PutStr("ml.run.id", "named")
	p.sendTraces(t, producer)
	out := p.sendTraces(t, consumer)
	assert.Equal(t, map[string]string{"receive": "named"}, keysByName(out, "ml.run.id"))
	assert.Equal(t, map[string]string{"receive": "run=link"}, keysByName(out, "ml.correlation.source"))

	p = startDefault(t)
	torchtel := batchOf("torchtel", testSpan{1, 1, 0, "train", nil})
	torchtel.ResourceSpans().At(0).Resource().Attributes().PutStr("host.name", "n1")
	p.sendTraces(t, torchtel)
	assert.Empty(t, keysByName(p.sendTraces(t, consumer), "ml.run.id"))

	p = startDefault(t)
	own := batchWithLinks("consumer", linkedSpan{testSpan{9, 1, 0, "receive", nil}, []to{{1, 1}}})
	own.ResourceSpans().At(0).Resource().Attributes().PutStr("ml.run.id", "mine")
	p.sendTraces(t, producer)
	assert.Empty(t, keysByName(p.sendTraces(t, own), "ml.run.id"), "its resource has one")
}

// TestTooManyLinks has a span of whose links it is not seen whether all agree.
func TestTooManyLinks(t *testing.T) {
	for n, want := range map[int]int{64: 1, 65: 0} {
		p := startDefault(t)
		p.sendTraces(t, batchOf("x", testSpan{1, 1, 0, "send", keys("s", "r")}))
		links := make([]to, n)
		for i := range links {
			links[i] = to{1, 1}
		}
		out := p.sendTraces(t, batchWithLinks("x", linkedSpan{testSpan{9, 1, 0, "receive", nil}, links}))
		assert.Len(t, keysByName(out, "ml.session.id"), want)
	}
}

// TestInferredComesWithItsRun has a span with a run of its own below one whose
// run was inferred.
func TestInferredComesWithItsRun(t *testing.T) {
	p := startDefault(t)
	caller := batchOf("snakepit", testSpan{1, 1, 0, "snakepit.grpc.infer", map[string]any{"snakepit.correlation_id": "c-1"}})
	caller.ResourceSpans().At(0).Resource().Attributes().PutStr("host.name", "n1")
	p.sendTraces(t, caller)
	out := p.sendTraces(t, batchOf("x",
		testSpan{2, 1, 0, "call", map[string]any{"ml.request.id": "c-1"}},
		testSpan{2, 2, 1, "named", map[string]any{"ml.run.id": "mine"}},
		testSpan{2, 3, 2, "below", nil}))
	assert.Equal(t, "mine", keysByName(out, "ml.run.id")["below"])
	assert.Equal(t, map[string]string{"call": "true"}, keysByName(out, "ml.run.inferred"))
}

// TestALinkBelowAnotherSession has a span with a link below one whose own link is
// to another session. What comes down is its session, and what its link says is of
// another: it is not mixed with it, whatever the order, and nor is it below.
func TestALinkBelowAnotherSession(t *testing.T) {
	spans := []linkedSpan{
		{testSpan{1, 1, 0, "one", map[string]any{"ml.session.id": "s1"}}, nil},
		{testSpan{2, 1, 0, "two", map[string]any{"ml.session.id": "s2", "ml.run.id": "run-2", "ml.request.id": "r2"}}, nil},
		{testSpan{9, 1, 0, "receive", nil}, []to{{1, 1}}},
		{testSpan{9, 2, 1, "process", nil}, []to{{2, 1}}},
		{testSpan{9, 3, 2, "leaf", nil}, nil},
	}
	sessions := map[string]string{"one": "s1", "two": "s2", "receive": "s1", "process": "s1", "leaf": "s1"}
	for seed := range uint64(20) {
		out := startDefault(t).sendTraces(t, batchWithLinks("x", shuffled(seed, spans)...))
		assert.Equal(t, sessions, keysByName(out, "ml.session.id"), "seed %d", seed)
		assert.Equal(t, map[string]string{"two": "run-2"}, keysByName(out, "ml.run.id"), "seed %d", seed)
		assert.Equal(t, map[string]string{"two": "r2"}, keysByName(out, "ml.request.id"), "seed %d", seed)
	}
}
