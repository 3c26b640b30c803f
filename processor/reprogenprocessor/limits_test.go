package reprogenprocessor

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/testing/otlpnest"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/store"
)

// TestHeldTraces: where the traces that fail at once take too much memory, the oldest does
// not wait any longer, and is written with what is known of it.
func TestHeldTraces(t *testing.T) {
	cfg := waitingConfig(t)
	cfg.limits.bytes = 300 << 10
	w := newWorld(t, cfg)
	large := map[string]any{}
	for i := range 30 {
		large[fmt.Sprintf("key.%d", i)] = strings.Repeat("v", 4096)
	}
	for i := range 3 {
		c := failedCall{name: "leaf", errorType: "E" + strings.Repeat("x", i), trace: byte(i + 1), span: 2, parent: 1}
		w.span(c)
		w.unfailed(failedCall{name: fmt.Sprintf("root of %d", i), trace: byte(i + 1), span: 1})
		w.unfailed(failedCall{name: "large", trace: byte(i + 1), span: 3, parent: 1, attrs: large})
	}
	sizes := w.traces.Shared.incidents.Sizes()
	assert.Equal(t, 2, sizes.Traces)
	assert.Equal(t, 2, sizes.Waiting)
	w.pass(0)
	trace := readTrace(t, onlyArtifact(t, cfg))
	assert.Equal(t, []string{"root of 0"}, names(trace.Ancestors))
	w.pass(10 * time.Second)
	assert.Len(t, artifacts(t, cfg), 3)
}

// TestHeldBytes: the memory of what is held is bounded, whatever comes.
func TestHeldBytes(t *testing.T) {
	cfg := waitingConfig(t)
	cfg.limits.bytes = 1 << 20
	w := newWorld(t, cfg)
	large := map[string]any{}
	for i := range 50 {
		large[fmt.Sprintf("key.%d", i)] = strings.Repeat("v", 4096)
	}
	for i := range 20 {
		w.span(failedCall{errorType: "E" + strings.Repeat("x", i), trace: byte(i + 1), attrs: large})
		for j := range 10 {
			w.unfailed(failedCall{trace: byte(i + 1), span: byte(j + 2), attrs: large})
		}
		assert.LessOrEqual(t, w.traces.Shared.incidents.Sizes().Bytes, cfg.limits.bytes)
	}
	w.pass(10 * time.Second)
	w.pass(time.Hour)
	assert.Zero(t, w.traces.Shared.incidents.Sizes().Bytes)
	assert.EqualValues(t, 20, int64(len(artifacts(t, cfg)))+w.count("dropped"), "each is written, or counted")
}

func TestAttributeBytes(t *testing.T) {
	cfg := testConfig(t)
	produce(t, cfg, failedCall{errorType: "E", attrs: map[string]any{
		"long": strings.Repeat("a", 4200), "short": strings.Repeat("b", 4096)}}.traces())
	attributes := readTrace(t, onlyArtifact(t, cfg)).Span.Attributes
	assert.Len(t, attributes["long"], 4096)
	assert.Contains(t, attributes["long"], " ... ")
	assert.Equal(t, strings.Repeat("b", 4096), attributes["short"])
}

// TestWorkers: as many artifacts are written at once.
func TestWorkers(t *testing.T) {
	d := newStuckDisk()
	cfg := testConfig(t)
	p, _, _ := startOn(t, cfg, d)
	assert.Equal(t, 1, cfg.limits.workers)
	require.NoError(t, p.Shutdown(t.Context()))

	d = newStuckDisk()
	cfg.limits.workers = 3
	two, _, _ := startWith(t, cfg, d)
	for i := range 3 {
		require.NoError(t, two.ConsumeTraces(t.Context(), unlike(i).traces()))
	}
	for range 3 {
		<-d.entered // none of them waits for another
	}
	close(d.free)
	require.NoError(t, two.Shutdown(t.Context()))
	assert.Equal(t, 3, d.written)
}

// TestQueueHoldsWhatWaits: failures within sibling_wait have their place in
// the queue, so that no span leads to an artifact that finds none later.
func TestQueueHoldsWhatWaits(t *testing.T) {
	cfg := waitingConfig(t)
	cfg.limits.queue = 2
	w := newWorld(t, cfg)
	for i := range 5 {
		span := w.span(unlike(i))
		_, leads := span.Attributes().Get("repro.artifact.path")
		assert.Equal(t, i < 2, leads)
	}
	assert.Equal(t, map[string]int64{"queue_full": 3}, dropped(t, w.tel))
	w.pass(10 * time.Second)
	assert.Len(t, artifacts(t, cfg), 2)
	w.span(unlike(6))
	w.pass(10 * time.Second)
	assert.Len(t, artifacts(t, cfg), 3, "their places are free again")
}

// TestMaxGroups: groups that have an artifact, or will have one, are not forgotten.
func TestMaxGroups(t *testing.T) {
	cfg := testConfig(t)
	cfg.limits.groups = 5
	w := newWorld(t, cfg)
	for i := range 20 {
		w.span(unlike(i))
	}
	w.pass(0)
	assert.Len(t, artifacts(t, cfg), 20)
	again := unlike(0)
	again.trace = 99
	w.span(again)
	w.shutdown()
	for _, g := range groups(t, cfg) {
		if g.Type == "Ea" {
			assert.EqualValues(t, 2, g.Count, "its count went on")
		}
	}
}

// TestFreeSpace: where the disk is nearly full, nothing is written, and the
// telemetry goes on.
func TestFreeSpace(t *testing.T) {
	cfg := testConfig(t)
	cfg.MinFreeBytes = 1 << 60
	w := newWorld(t, cfg)
	w.span(mean())
	w.pass(0)
	assert.Empty(t, artifacts(t, cfg))
	assert.Equal(t, map[string]int64{"no_space": 1}, dropped(t, w.tel))
	assert.Equal(t, 1, w.spans.SpanCount())
	leftovers, err := filepath.Glob(filepath.Join(cfg.Directory, "*"))
	require.NoError(t, err)
	assert.Equal(t, []string{filepath.Join(cfg.Directory, ".lock")}, leftovers)
}

// TestRetentionIsFair: where the directory is full, the service that has more
// than half of it gives first.
func TestRetentionIsFair(t *testing.T) {
	cfg := testConfig(t)
	cfg.Retention.MaxArtifacts = 6
	quiet := func(i int) failedCall {
		return failedCall{service: "quiet", errorType: "Q" + strings.Repeat("x", i), trace: byte(100 + i)}
	}
	var batches []ptrace.Traces
	batches = append(batches, quiet(0).traces(), quiet(1).traces())
	for i := range 20 {
		batches = append(batches, failedCall{service: "noisy", errorType: "N" + strings.Repeat("x", i), trace: byte(1 + i)}.traces())
	}
	produce(t, cfg, batches...)
	count := func() map[string]int {
		have := map[string]int{}
		for _, g := range groups(t, cfg) {
			have[g.Services[0]] += len(g.Exemplars)
		}
		return have
	}
	assert.Equal(t, map[string]int{"quiet": 2, "noisy": 4}, count(), "what nobody else needs is left to it")
	produce(t, cfg, quiet(2).traces(), quiet(3).traces())
	assert.Equal(t, map[string]int{"quiet": 3, "noisy": 3}, count(), "also after a restart")
}

func TestRetentionBytesAndAge(t *testing.T) {
	cfg := testConfig(t)
	cfg.Retention.MaxBytes = 150 << 10
	for i := range 10 {
		produce(t, cfg, unlike(i).traces())
	}
	var size int64
	s, _, _, err := store.Open(cfg.Directory, store.Limits{})
	require.NoError(t, err)
	size = s.Bytes()
	require.NoError(t, s.Close())
	assert.Positive(t, size)
	assert.LessOrEqual(t, size, cfg.Retention.MaxBytes)

	old := testConfig(t)
	w := newWorld(t, old)
	w.span(mean())
	w.pass(0)
	assert.Len(t, artifacts(t, old), 1)
	w.clock.add(31 * 24 * time.Hour)
	w.span(unlike(3))
	w.pass(0)
	require.Len(t, artifacts(t, old), 1)
	assert.Equal(t, "Ed", groups(t, old)[0].Type)
}

// TestHotPath: a span without a failure costs no memory, whether or not other
// traces are held.
func TestHotPath(t *testing.T) {
	w := newWorld(t, waitingConfig(t))
	td := ptrace.NewTraces()
	for i := range 100 {
		s := mean().appendTo(td)
		s.Status().SetCode(ptrace.StatusCodeUnset)
		s.Events().RemoveIf(func(ptrace.SpanEvent) bool { return true })
		s.Events().AppendEmpty().SetName("gen_ai.content.completion.chunk")
		s.Attributes().PutStr("gen_ai.operation.name", "chat")
		s.Attributes().PutDouble("ml.loss", 0.5)
		s.SetTraceID(pcommon.TraceID{byte(i), 9})
	}
	look := func() { w.traces.Shared.observeTraces(t.Context(), td) }
	assert.Zero(t, testing.AllocsPerRun(100, look), "nothing is held")
	w.span(mean())
	assert.Zero(t, testing.AllocsPerRun(100, look), "another trace is held")
}

// A value that is nested as deeply as a request of 8 MiB can be ends nothing: the
// failure is told, without the value.
func TestNestedValuesEndNothing(t *testing.T) {
	const levels = 900_000
	cfg := testConfig(t)
	w := newWorld(t, cfg)
	logs := logged().logs(plog.SeverityNumberError)
	rl := logs.ResourceLogs().At(0)
	otlpnest.Value(rl.Resource().Attributes().PutEmpty("service.name"), levels)
	otlpnest.Value(rl.ScopeLogs().At(0).LogRecords().At(0).Body(), levels)
	require.NoError(t, w.logs.ConsumeLogs(t.Context(), logs))
	traces := mean().traces()
	rs := traces.ResourceSpans().At(0)
	otlpnest.Value(rs.Resource().Attributes().PutEmpty("service.name"), levels)
	otlpnest.Value(rs.ScopeSpans().At(0).Spans().At(0).Attributes().PutEmpty("repro.payload"), levels)
	require.NoError(t, w.traces.ConsumeTraces(t.Context(), traces))
	w.shutdown()
	assert.NotEmpty(t, artifacts(t, cfg))
}
