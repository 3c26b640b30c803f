package mlenrichprocessor

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/metadata"
)

// testSpan is a span of a test's trace; ids are small numbers, 0 is none.
type testSpan struct {
	trace, id, parent byte
	name              string
	attrs             map[string]any
}

// agentTrace is a TaskWeaver trace as a tree, the root first. Only the root
// has the session.
var agentTrace = []testSpan{
	{1, 1, 0, "Session.send_message", map[string]any{"session_id": "sess", "round_id": "round"}},
	{1, 2, 1, "Session._send_text_message", map[string]any{"round_id": "round"}},
	{1, 3, 2, "_send_message", nil},
	{1, 4, 3, "Planner.reply", map[string]any{"prompt_size": 5, "output_size": 2}},
	{1, 5, 3, "CodeInterpreter.reply", nil},
	{1, 6, 5, "CodeExecutor.execute_code", nil},
	{1, 7, 6, "run_code", nil},
}

// twoSessions is a trace of a gateway that serves two sessions.
var twoSessions = []testSpan{
	{2, 1, 0, "gateway", nil},
	{2, 2, 1, "a", map[string]any{"session.id": "a", "gen_ai.request.id": "ra"}},
	{2, 3, 1, "b", map[string]any{"session.id": "b"}},
	{2, 4, 2, "leaf a", nil},
	{2, 5, 3, "leaf b", nil},
	{2, 6, 4, "leaf of leaf a", nil},
}

func batchOf(service string, spans ...testSpan) ptrace.Traces {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", service)
	ss := rs.ScopeSpans().AppendEmpty().Spans()
	for _, s := range spans {
		span := ss.AppendEmpty()
		span.SetTraceID(pcommon.TraceID{0: 0xa0, 15: s.trace})
		span.SetSpanID(pcommon.SpanID{0: 0xb0, 7: s.id})
		if s.parent != 0 {
			span.SetParentSpanID(pcommon.SpanID{0: 0xb0, 7: s.parent})
		}
		span.SetName(s.name)
		span.SetStartTimestamp(1e9)
		span.SetEndTimestamp(2e9)
		if err := span.Attributes().FromRaw(s.attrs); err != nil {
			panic(err)
		}
	}
	return td
}

// keysByName returns an attribute of every span that has it.
func keysByName(td ptrace.Traces, key string) map[string]string {
	found := make(map[string]string)
	for _, rs := range td.ResourceSpans().All() {
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				if v, ok := span.Attributes().Get(key); ok {
					found[span.Name()] = v.AsString()
				}
			}
		}
	}
	return found
}

func shuffled[S any](seed uint64, spans []S) []S {
	out := append([]S(nil), spans...)
	r := rand.New(rand.NewPCG(seed, 0))
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

func TestABatchInAnyOrder(t *testing.T) {
	for seed := range uint64(100) {
		out := startDefault(t).sendTraces(t, batchOf("taskweaver", shuffled(seed, agentTrace)...))
		assert.Len(t, keysByName(out, "ml.session.id"), len(agentTrace), "seed %d", seed)
		assert.Len(t, keysByName(out, "ml.request.id"), len(agentTrace))
		assert.Len(t, keysByName(out, "ml.run.id"), len(agentTrace))

		out = startDefault(t).sendTraces(t, batchOf("gateway", shuffled(seed, twoSessions)...))
		assert.Equal(t, map[string]string{"a": "a", "b": "b", "leaf a": "a", "leaf b": "b", "leaf of leaf a": "a"},
			keysByName(out, "ml.session.id"), "seed %d", seed)
		assert.Equal(t, map[string]string{"a": "ra", "leaf a": "ra", "leaf of leaf a": "ra"}, keysByName(out, "ml.request.id"))
	}
}

// TestALargeTraceInAnyOrder has more spans than are searched one by one: two
// sessions, each with a chain of spans below it, and spans whose parent is
// nowhere.
func TestALargeTraceInAnyOrder(t *testing.T) {
	const depth = 20
	spans := []testSpan{{trace: 3, id: 1, name: "gateway"}}
	want := make(map[string]string)
	for s, session := range []string{"a", "b"} {
		root := byte(100 * (s + 1))
		spans = append(spans, testSpan{3, root, 1, session, map[string]any{"session.id": session}})
		want[session] = session
		for i := range byte(depth) {
			name := fmt.Sprintf("%s%d", session, i)
			spans = append(spans, testSpan{3, root + i + 1, root + i, name, nil})
			want[name] = session
		}
		spans = append(spans, testSpan{3, root + 50, root + 60, "orphan", nil})
	}
	for seed := range uint64(50) {
		out := startDefault(t).sendTraces(t, batchOf("gateway", shuffled(seed, spans)...))
		assert.Equal(t, want, keysByName(out, "ml.session.id"), "seed %d", seed)
	}
}

// TestChildrenFirst sends each span alone, leaves first, as a client that
// exports at once does. What comes before the root cannot know the session;
// what comes after it does.
func TestChildrenFirst(t *testing.T) {
	p := startDefault(t)
	for i := len(agentTrace) - 1; i > 0; i-- {
		out := p.sendTraces(t, batchOf("taskweaver", agentTrace[i]))
		assert.Empty(t, keysByName(out, "ml.session.id"))
	}
	p.sendTraces(t, batchOf("taskweaver", agentTrace[0]))
	late := testSpan{1, 9, 6, "start", nil}
	out := p.sendTraces(t, batchOf("taskweaver", late))
	assert.Equal(t, map[string]string{"start": "sess"}, keysByName(out, "ml.session.id"))
	assert.Equal(t, map[string]string{"start": "session=trace,conversation=trace"}, keysByName(out, "ml.correlation.source"),
		"the request goes down only, and the way to it was not known")
}

// TestSplitAnywhere cuts the trace of two sessions into two batches at every
// place: no span ever gets the other's session, and what comes after its
// parent always gets its own.
func TestSplitAnywhere(t *testing.T) {
	want := map[string]string{"a": "a", "b": "b", "leaf a": "a", "leaf b": "b", "leaf of leaf a": "a"}
	for cut := 3; cut < len(twoSessions); cut++ {
		p := startDefault(t)
		p.sendTraces(t, batchOf("gateway", twoSessions[:cut]...))
		got := keysByName(p.sendTraces(t, batchOf("gateway", twoSessions[cut:]...)), "ml.session.id")
		for _, s := range twoSessions[cut:] {
			assert.Equal(t, want[s.name], got[s.name], "%s after a cut at %d", s.name, cut)
		}
	}
}

// TestRequestJoinsTraces has the Python side of a call arrive after, with and
// before the Elixir side.
func TestRequestJoinsTraces(t *testing.T) {
	elixir := func() ptrace.Traces {
		return batchOf("snakepit", testSpan{1, 1, 0, "snakepit.grpc.infer",
			map[string]any{"snakepit.session_id": "s", "snakepit.correlation_id": "c-1"}})
	}
	python := func(trace byte, id string) ptrace.Traces {
		return batchOf("snakepit.python.bridge", testSpan{trace, 1, 0, "BridgeService/ExecuteTool",
			map[string]any{"snakepit.correlation_id": id}})
	}
	p := startDefault(t)
	first := p.sendTraces(t, elixir())
	run, ok := first.ResourceSpans().At(0).Resource().Attributes().Get("ml.run.id")
	require.True(t, ok)
	after := p.sendTraces(t, python(2, "c-1"))
	assert.Equal(t, map[string]string{"BridgeService/ExecuteTool": "s"}, keysByName(after, "ml.session.id"))
	assert.Equal(t, map[string]string{"BridgeService/ExecuteTool": run.Str()}, keysByName(after, "ml.run.id"))
	assert.Empty(t, keysByName(p.sendTraces(t, python(4, "c-2")), "ml.session.id"), "another call's")
	assert.Empty(t, keysByName(p.sendTraces(t, python(5, "-")), "ml.session.id"), "a dash is no id")

	p = startDefault(t)
	with := python(2, "c-1")
	elixir().ResourceSpans().MoveAndAppendTo(with.ResourceSpans())
	assert.Len(t, keysByName(p.sendTraces(t, with), "ml.session.id"), 2)

	p = startDefault(t)
	assert.Empty(t, keysByName(p.sendTraces(t, python(2, "c-1")), "ml.session.id"), "nothing is waited for")

	// A correlation id that two sessions use joins nobody.
	p = startDefault(t)
	p.sendTraces(t, elixir())
	p.sendTraces(t, batchOf("snakepit", testSpan{3, 1, 0, "snakepit.grpc.infer",
		map[string]any{"snakepit.session_id": "other", "snakepit.correlation_id": "c-1"}}))
	assert.Empty(t, keysByName(p.sendTraces(t, python(2, "c-1")), "ml.session.id"))
}

// TestTrainingRunFindsItsSession has a fine-tuning service name the session
// on one operation and only the training run on another.
func TestTrainingRunFindsItsSession(t *testing.T) {
	p := startDefault(t)
	p.sendTraces(t, batchOf("tuft", testSpan{1, 1, 0, "training_controller.create_model",
		map[string]any{"tuft.session_id": "s", "tuft.training_run_id": "tr"}}))
	out := p.sendTraces(t, batchOf("tuft",
		testSpan{2, 1, 0, "POST /load_weights", nil},
		testSpan{2, 2, 1, "training_backend.load_state", map[string]any{"tuft.lora_id": "tr"}}))
	assert.Equal(t, map[string]string{"POST /load_weights": "s", "training_backend.load_state": "s"}, keysByName(out, "ml.session.id"))
	assert.Equal(t, map[string]string{
		"POST /load_weights":          "session=trace,run=trace,training_run=trace",
		"training_backend.load_state": "session=training_run",
	}, keysByName(out, "ml.correlation.source"))
	other := p.sendTraces(t, batchOf("tuft", testSpan{3, 1, 0, "hf_model.forward", map[string]any{"tuft.lora_id": "tr2"}}))
	assert.Empty(t, keysByName(other, "ml.session.id"))
}

// TestRequestAndPhaseComeDownOnly has a trace without any other key.
func TestRequestAndPhaseComeDownOnly(t *testing.T) {
	p := startDefault(t)
	out := p.sendTraces(t, batchOf("x",
		testSpan{1, 3, 2, "below", nil},
		testSpan{1, 2, 1, "call", map[string]any{"ml.request.id": "r"}},
		testSpan{1, 1, 0, "above", nil}))
	assert.Equal(t, map[string]string{"call": "r", "below": "r"}, keysByName(out, "ml.request.id"))

	out = p.sendTraces(t, batchOf("x", testSpan{1, 4, 2, "late", nil}))
	assert.Equal(t, map[string]string{"late": "r"}, keysByName(out, "ml.request.id"))

	out = p.sendTraces(t, batchOf("x",
		testSpan{2, 3, 2, "below", nil},
		testSpan{2, 2, 1, "step", map[string]any{"ml.phase": "optimizer"}},
		testSpan{2, 1, 0, "above", nil}))
	assert.Equal(t, map[string]string{"step": "optimizer", "below": "optimizer"}, keysByName(out, "ml.phase"))
	assert.Equal(t, map[string]string{"below": "phase=parent"}, keysByName(out, "ml.correlation.source"))
}

// TestConversationComesWithItsSession has a conversation whose session cannot
// be used. Alone, the conversation would be a session on a second pass.
func TestConversationComesWithItsSession(t *testing.T) {
	p := startDefault(t)
	out := p.sendTraces(t, batchOf("x",
		testSpan{1, 1, 0, "root", map[string]any{"ml.session.id": "has space", "gen_ai.conversation.id": "c"}},
		testSpan{1, 2, 1, "child", nil}))
	assert.Equal(t, map[string]string{"root": "c"}, keysByName(out, "gen_ai.conversation.id"))
}

// TestCyclesEnd has parents that are their own ancestors.
func TestCyclesEnd(t *testing.T) {
	out := startDefault(t).sendTraces(t, batchOf("x",
		testSpan{1, 1, 1, "self", nil}, testSpan{1, 2, 3, "two", nil}, testSpan{1, 3, 2, "three", map[string]any{"session.id": "s"}}))
	assert.Len(t, keysByName(out, "ml.session.id"), 3)
}

// TestNoTraceIDSharesNothing keeps spans of broken clients apart.
func TestNoTraceIDSharesNothing(t *testing.T) {
	td := batchOf("x", testSpan{1, 1, 0, "with", map[string]any{"session.id": "s"}}, testSpan{1, 2, 0, "without", nil})
	for _, span := range td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
		span.SetTraceID(pcommon.TraceID{})
	}
	assert.Equal(t, map[string]string{"with": "s"}, keysByName(startDefault(t).sendTraces(t, td), "ml.session.id"))
}

// TestManyGoroutines sends the parts of many traces at once, with logs of
// them. After a trace's root everything of it has its session and no other.
func TestManyGoroutines(t *testing.T) {
	var tracesSink consumertest.TracesSink
	var logsSink consumertest.LogsSink
	set := processortest.NewNopSettings(metadata.Type)
	f, cfg, ctx := NewFactory(), createDefaultConfig(), context.Background()
	traces, err := f.CreateTraces(ctx, set, cfg, &tracesSink)
	require.NoError(t, err)
	logs, err := f.CreateLogs(ctx, set, cfg, &logsSink)
	require.NoError(t, err)
	for _, c := range []component.Component{traces, logs} {
		require.NoError(t, c.Start(ctx, componenttest.NewNopHost()))
	}
	const many = 40
	session := func(trace byte) string { return string(rune('A' + trace)) }
	var wg sync.WaitGroup
	for n := range byte(many) {
		root := testSpan{n, 1, 0, "root", map[string]any{"session.id": session(n)}}
		require.NoError(t, traces.ConsumeTraces(ctx, batchOf("x", root)))
		for id := byte(2); id < 8; id++ {
			wg.Go(func() {
				if err := traces.ConsumeTraces(ctx, batchOf("x", testSpan{n, id, id - 1, "child", nil})); err != nil {
					t.Error(err)
				}
				ld := plog.NewLogs()
				record := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
				record.SetTraceID(pcommon.TraceID{0: 0xa0, 15: n})
				if err := logs.ConsumeLogs(ctx, ld); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	for _, td := range tracesSink.AllTraces() {
		span := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
		got, ok := span.Attributes().Get("ml.session.id")
		require.True(t, ok)
		assert.Equal(t, session(span.TraceID()[15]), got.Str())
	}
	require.Len(t, logsSink.AllLogs(), many*6)
	for _, ld := range logsSink.AllLogs() {
		record := ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0)
		got, ok := record.Attributes().Get("ml.session.id")
		require.True(t, ok)
		assert.Equal(t, session(record.TraceID()[15]), got.Str())
	}
	for _, c := range []component.Component{traces, logs} {
		require.NoError(t, c.Shutdown(ctx))
		require.NoError(t, c.Shutdown(ctx), "a second time does nothing")
	}
}

func TestARunOnTwoHostsIsSeenOnBoth(t *testing.T) {
	p := startDefault(t)
	td := ptrace.NewTraces()
	for i, host := range []string{"n1", "n2"} {
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", "tuft")
		rs.Resource().Attributes().PutStr("host.name", host)
		span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		span.SetName("training_backend.forward")
		span.SetTraceID([16]byte{15: byte(i + 1)})
		span.SetSpanID([8]byte{7: byte(i + 1)})
		span.Attributes().PutStr("tuft.lora_id", "r1")
	}
	p.sendTraces(t, td)

	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("host.name", "n2")
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("nvidia.gpu.workload.memory.usage")
	point := m.SetEmptyGauge().DataPoints().AppendEmpty()
	point.Attributes().PutStr("service.name", "tuft")
	out := p.sendMetrics(t, md).ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).Attributes().AsRaw()
	assert.Equal(t, "r1", out["ml.run.id"])
	assert.Equal(t, "service", out["ml.gpu.join"])
}
