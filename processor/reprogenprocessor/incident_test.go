package reprogenprocessor

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// TestLateAncestors: the spans above that come within the wait go in, and later ones change
// nothing.
func TestLateAncestors(t *testing.T) {
	w := newWorld(t, waitingConfig(t))
	leaf := mean()
	leaf.name, leaf.span, leaf.parent = "leaf", 4, 3
	w.span(leaf)
	w.unfailed(failedCall{name: "batch", span: 3, parent: 2, attrs: map[string]any{"ml.step": int64(7)}})
	w.unfailed(failedCall{name: "batch", span: 3, parent: 2}) // delivered again
	w.pass(10 * time.Second)
	artifact := onlyArtifact(t, w.cfg)
	trace := readTrace(t, artifact)
	assert.False(t, trace.Complete)
	assert.Equal(t, []string{"batch"}, names(trace.Ancestors))
	assert.Contains(t, text(t, artifact, "repro.py"), `"ml.step": 7`)
	assert.Zero(t, w.traces.Shared.incidents.Sizes(), "all that was kept is given back")

	w.unfailed(failedCall{name: "epoch", span: 2, parent: 1, attrs: map[string]any{"ml.epoch": int64(3)}})
	w.pass(time.Minute)
	assert.Equal(t, trace, readTrace(t, artifact))

	leftovers, err := filepath.Glob(filepath.Join(w.cfg.Directory, ".tmp-*"))
	require.NoError(t, err)
	assert.Empty(t, leftovers)
}

// TestWholeTrace: with its root a trace is complete.
func TestWholeTrace(t *testing.T) {
	w := newWorld(t, waitingConfig(t))
	leaf := mean()
	leaf.span, leaf.parent = 2, 1
	w.span(leaf)
	w.unfailed(failedCall{name: "root", span: 1})
	w.pass(10 * time.Second)
	assert.True(t, readTrace(t, onlyArtifact(t, w.cfg)).Complete)
}

// TestTraceAround: the trace has the failed siblings and the other spans too,
// the last ones first.
func TestTraceAround(t *testing.T) {
	cfg := waitingConfig(t)
	cfg.limits.spans = 5
	w := newWorld(t, cfg)
	td := ptrace.NewTraces()
	leaf := mean()
	leaf.name, leaf.span, leaf.parent = "leaf", 2, 1
	leaf.appendTo(td)
	sibling := failedCall{name: "sibling", span: 3, parent: 1, errorType: "KeyError", message: "k"}
	sibling.appendTo(td)
	w.send(td)
	for i := range 10 {
		w.unfailed(failedCall{name: fmt.Sprintf("other %d", i), span: byte(10 + i), parent: 1})
	}
	w.unfailed(failedCall{name: "root", span: 1})
	w.pass(10 * time.Second)
	var trace traceJSON
	for _, a := range artifacts(t, w.cfg) {
		if trace = readTrace(t, a); trace.Span.Name == "leaf" {
			break
		}
	}
	assert.True(t, trace.Complete)
	assert.Equal(t, []string{"sibling"}, names(trace.Siblings))
	assert.Equal(t, []string{"other 8", "other 9"}, names(trace.Others), "the last ones, beside what is needed")
	assert.Equal(t, 8, trace.OmittedSpans)
	assert.True(t, trace.Truncated)
}

// TestChoiceAcrossBatches: which spans get an artifact when a trace arrives in
// pieces, in any order.
func TestChoiceAcrossBatches(t *testing.T) {
	parent := failedCall{name: "parent", span: 1, errorType: "ValueError", message: "broken"}
	child := failedCall{name: "child", span: 2, parent: 1, errorType: "ValueError", message: "broken"}
	withPayload := func(c failedCall) failedCall { c.payload = call("json", "dumps", "[1]", "{}"); return c }
	wrapping := func(c failedCall) failedCall { c.errorType, c.message = "HTTPError", "500"; return c }
	for name, tc := range map[string]struct {
		batches []failedCall
		want    []string
	}{
		"the child first":                         {[]failedCall{child, parent}, []string{"child"}},
		"the parent first":                        {[]failedCall{parent, child}, []string{"child"}},
		"a payload later":                         {[]failedCall{child, withPayload(parent)}, []string{"parent"}},
		"a payload first":                         {[]failedCall{withPayload(parent), child}, []string{"parent"}},
		"a deeper payload":                        {[]failedCall{withPayload(parent), withPayload(child)}, []string{"child"}},
		"a parent that wraps the error":           {[]failedCall{child, wrapping(parent)}, []string{"child"}},
		"a parent that wraps it, first":           {[]failedCall{wrapping(parent), child}, []string{"child"}},
		"a wrapper with a payload is kept":        {[]failedCall{withPayload(wrapping(parent)), child}, []string{"child", "parent"}},
		"delivered again":                         {[]failedCall{child, child}, []string{"child"}},
		"a span its own parent":                   {[]failedCall{{name: "self", span: 1, parent: 1, message: "x"}, {name: "self", span: 1, parent: 1, message: "x"}}, []string{"self"}},
		"two spans each other's parent":           {[]failedCall{{name: "a", span: 1, parent: 2, message: "x"}, {name: "b", span: 2, parent: 1, message: "x"}}, []string{"a"}},
		"two unlike errors each other's parent":   {[]failedCall{{name: "a", span: 1, parent: 2, message: "x"}, {name: "b", span: 2, parent: 1, message: "y"}}, []string{"a"}},
		"siblings with unlike errors are both it": {[]failedCall{child, {name: "twin", span: 3, parent: 1, errorType: "KeyError", message: "k"}}, []string{"child", "twin"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, waitingConfig(t))
			for _, b := range tc.batches {
				w.span(b)
			}
			w.pass(10 * time.Second)
			var got []string
			for _, a := range artifacts(t, w.cfg) {
				got = append(got, readTrace(t, a).Span.Name)
			}
			slices.Sort(got)
			assert.Equal(t, tc.want, got)
			assert.Zero(t, w.traces.Shared.incidents.Sizes().Reserved)
		})
	}
}

// TestCallOfAnotherTrace: Snakepit's process server does not tell its span
// that the call raised; Elixir's span, in another trace, knows the error. An
// id ties them together, whichever comes first.
func TestCallOfAnotherTrace(t *testing.T) {
	python := mean()
	python.service, python.name, python.trace = "snakepit.python.bridge", "BridgeService/ExecuteTool", 1
	python.errorType, python.message = "", ""
	python.attrs = map[string]any{"snakepit.correlation_id": "sp-1"}
	elixir := failedCall{service: "snakepit", name: "snakepit.grpc.execute.call", trace: 2, attrs: map[string]any{
		"snakepit.correlation_id": "sp-1",
		"snakepit.grpc.error":     `%Snakepit.Error.PythonException{message: "mean requires at least one data point", python_type: "StatisticsError"}`,
	}}
	for name, send := range map[string]func(w *world) pcommon.Map{
		"the call first": func(w *world) pcommon.Map {
			w.unfailed(python)
			return w.span(elixir).Attributes()
		},
		"the error first": func(w *world) pcommon.Map {
			w.span(elixir)
			return w.unfailed(python).Attributes()
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, waitingConfig(t, "statistics"))
			attributes := send(w)
			w.pass(10 * time.Second)
			artifact := onlyArtifact(t, w.cfg)
			assert.Equal(t, filepath.Dir(artifact), w.leadsTo(attributes))
			assert.Equal(t, "python_call", groups(t, w.cfg)[0].Kind)
			trace := readTrace(t, artifact)
			assert.Equal(t, "snakepit.grpc.execute.call", trace.Span.Name)
			require.NotNil(t, trace.PayloadFrom)
			assert.Equal(t, "snakepit.python.bridge", trace.PayloadFrom.Service)
			assert.Equal(t, 1, pythons(t)[0].run(t, artifact, nil).Exit, "it reproduces")
		})
	}
	t.Run("without an id they are strangers", func(t *testing.T) {
		w := newWorld(t, waitingConfig(t))
		stranger := elixir
		stranger.attrs = map[string]any{"snakepit.grpc.error": elixir.attrs["snakepit.grpc.error"], "snakepit.correlation_id": "-"}
		w.unfailed(python)
		w.span(stranger)
		w.pass(10 * time.Second)
		assert.Equal(t, "context", groups(t, w.cfg)[0].Kind)
	})
}

// TestOneCallTwoErrorSpans: the threaded server's span has the call and the
// error, and Elixir's tells of the same error.
func TestOneCallTwoErrorSpans(t *testing.T) {
	python := mean()
	python.trace, python.attrs = 1, map[string]any{"snakepit.correlation_id": "sp-1"}
	elixir := failedCall{service: "snakepit", name: "snakepit.grpc.execute.call", trace: 2, attrs: map[string]any{
		"snakepit.correlation_id": "sp-1",
		"snakepit.grpc.error":     `%Snakepit.Error.PythonException{message: "mean requires at least one data point", python_type: "StatisticsError"}`,
	}}
	for name, order := range map[string][]failedCall{"Python first": {python, elixir}, "Elixir first": {elixir, python}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, waitingConfig(t))
			var led []string
			for _, c := range order {
				led = append(led, w.leadsTo(w.span(c).Attributes()))
			}
			w.pass(10 * time.Second)
			g := groups(t, w.cfg)
			require.Len(t, g, 1)
			assert.EqualValues(t, 1, g[0].Count)
			assert.Equal(t, "python_call", g[0].Kind)
			artifact := onlyArtifact(t, w.cfg)
			assert.Equal(t, []string{filepath.Dir(artifact), filepath.Dir(artifact)}, led)
		})
	}
}

// TestRanks: the ranks of a job that fail with one error are one failure with one
// artifact.
func TestRanks(t *testing.T) {
	w := newWorld(t, waitingConfig(t))
	for n := range 8 {
		td := failedCall{name: "step", trace: byte(n + 1), errorType: "RuntimeError", message: "x"}.traces()
		resource := td.ResourceSpans().At(0).Resource().Attributes()
		resource.PutStr("ml.run.id", "run-7")
		resource.PutInt("ml.rank.global", int64(n))
		resource.PutStr("host.name", fmt.Sprintf("node-%d", n))
		w.send(td)
	}
	w.pass(10 * time.Second)
	assert.Equal(t, "0", readTrace(t, onlyArtifact(t, w.cfg)).Rank)
	g := groups(t, w.cfg)
	require.Len(t, g, 1)
	assert.EqualValues(t, 8, g[0].Count)
	assert.Len(t, g[0].Ranks, 8)
}
