package reprogenprocessor

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/fairness"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/store"
)

// TestLargeSpan: however much a span brings, its artefact stays small, and
// what was left out is counted.
func TestLargeSpan(t *testing.T) {
	td := failedCall{errorType: "E", message: strings.Repeat("ä", 10_000), stack: strings.Repeat("x", 1<<20)}.traces()
	span := td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	for i := range 5_000 {
		span.Attributes().PutStr(fmt.Sprintf("key.%d", i), strings.Repeat("v", 6_000))
		span.Links().AppendEmpty().SetSpanID(pcommon.SpanID{byte(i)})
		e := span.Events().AppendEmpty()
		e.SetName("exception")
		e.Attributes().PutStr("exception.type", fmt.Sprintf("E%d", i))
	}
	deep := span.Attributes().PutEmptyMap("deep")
	for range 100 {
		deep = deep.PutEmptyMap("deeper")
	}
	cfg := testConfig(t)
	produce(t, cfg, td)
	artifact := onlyArtifact(t, cfg)
	var size int64
	for _, file := range []string{"repro.py", "trace.json", "report.md"} {
		info, err := os.Stat(filepath.Join(artifact, file))
		require.NoError(t, err)
		size += info.Size()
	}
	assert.Less(t, size, int64(1<<20))
	var trace struct {
		Truncated bool
		Span      struct{ Omitted int }
	}
	require.NoError(t, json.Unmarshal([]byte(text(t, artifact, "trace.json")), &trace))
	assert.True(t, trace.Truncated || trace.Span.Omitted > 10_000)
	assert.Contains(t, text(t, artifact, "repro.py"), `"type": "E4999"`, "the last exception is the one that ended the span")
}

func TestValuesOfEveryType(t *testing.T) {
	td := failedCall{errorType: "E", attrs: map[string]any{
		"bool": true, "int": int64(math.MinInt64), "double": 0.1, "nan": math.NaN(), "bytes": []byte("ab"),
		"list": []any{int64(1), []any{"x"}}, "map": map[string]any{"k": "v"}, "empty": nil,
	}}.traces()
	cfg := testConfig(t)
	produce(t, cfg, td)
	var trace struct {
		Span struct {
			Attributes map[string]any
			Omitted    int
		}
	}
	require.NoError(t, json.Unmarshal([]byte(text(t, onlyArtifact(t, cfg), "trace.json")), &trace))
	assert.Equal(t, map[string]any{
		"bool": true, "int": float64(math.MinInt64), "double": 0.1, "bytes": "YWI=", "empty": nil,
		"nan":  map[string]any{"__type__": "special_float", "__schema__": 1.0, "value": "nan"},
		"list": []any{1.0, []any{"x"}}, "map": map[string]any{"k": "v"},
	}, trace.Span.Attributes)
	assert.Zero(t, trace.Span.Omitted)
}

// TestBatchOfManyErrors: a batch of nothing but errors is looked at up to a
// bound, and passed on whole.
func TestBatchOfManyErrors(t *testing.T) {
	td := ptrace.NewTraces()
	for i := range maxErrorSpans + 88 {
		s := mean().appendTo(td)
		s.SetTraceID(pcommon.TraceID{byte(i >> 8), byte(i), 1})
	}
	d := newStuckDisk()
	close(d.free)
	p, sink, tel := startOn(t, testConfig(t), d)
	require.NoError(t, p.ConsumeTraces(t.Context(), td))
	require.NoError(t, p.Shutdown(t.Context()))
	assert.Equal(t, maxErrorSpans+88, sink.SpanCount())
	assert.Equal(t, map[string]int64{"batch_limit": 88}, dropped(t, tel))
}

// TestLedgerForgetsTheOldest: the number of groups in memory is bounded, and
// counts that are not on disk yet survive a group's leaving.
func TestLedgerForgetsTheOldest(t *testing.T) {
	const maxGroups = 1_000
	l, err := newLedger(RateLimitConfig{PerMinute: 1_000_000, Burst: 1_000_000}, maxGroups, fairness.NewStandings())
	require.NoError(t, err)
	now := time.Unix(1_700_000_000, 0)
	see := func(fingerprint string, trace int) verdict {
		return l.admit(occurrence{fingerprint: fingerprint, service: fingerprint,
			span: spanKey{trace: pcommon.TraceID{1, byte(trace), byte(trace >> 8), byte(trace >> 16)}}}, now).verdict
	}
	require.Equal(t, verdictWanted, see("first", 0))
	l.wrote(&failure.Failure{Fingerprint: "first"}, "artifact-1", store.Group{})
	see("first", 1)
	for i := range 2 * maxGroups {
		see(strconv.Itoa(i), i+10)
	}
	assert.LessOrEqual(t, l.size(), maxGroups)
	assert.GreaterOrEqual(t, l.size(), maxGroups-maxGroups/16)
	see("first", 5)
	dirty := l.takeDirty()
	require.Len(t, dirty, 1, "groups without a folder have nothing to write")
	assert.EqualValues(t, 3, dirty[0].Count)
	assert.Equal(t, []string{"artifact-1"}, dirty[0].Exemplars)
	assert.Empty(t, l.takeDirty())

	l.markDirty("first")
	assert.Len(t, l.takeDirty(), 1)
	l.removed("first", "artifact-1")
	assert.Empty(t, l.takeDirty(), "its folder is gone")
	assert.Equal(t, verdictWanted, see("first", 6), "and it is wanted again")
}

// TestGroupThatWasForgotten finds its earlier counts on disk.
func TestGroupThatWasForgotten(t *testing.T) {
	l, err := newLedger(RateLimitConfig{PerMinute: 60, Burst: 10}, 10, fairness.NewStandings())
	require.NoError(t, err)
	now := time.Unix(1_700_000_000, 0)
	_ = l.admit(occurrence{fingerprint: "f", service: "s"}, now)
	old := store.Group{Count: 7, Suppressed: 2, FirstSeen: now.Add(-time.Hour), LastSeen: now.Add(-time.Minute),
		Services: []string{"s", "t"}, Exemplars: []string{"old"}}
	got := l.wrote(&failure.Failure{Fingerprint: "f", Error: failure.Error{Message: "password=hunter2"}}, "new", old)
	assert.EqualValues(t, 8, got.Count)
	assert.EqualValues(t, 2, got.Suppressed)
	assert.Equal(t, now.Add(-time.Hour), got.FirstSeen)
	assert.Equal(t, now, got.LastSeen)
	assert.Equal(t, []string{"s", "t"}, got.Services)
	assert.Equal(t, []string{"old", "new"}, got.Exemplars)
	assert.NotContains(t, got.Message, "hunter2")
	again := l.wrote(&failure.Failure{Fingerprint: "f"}, "newer", old)
	assert.EqualValues(t, 8, again.Count, "the disk's counts are added once")
}
