package reprogenprocessor

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/detect"
)

// TestLargeSpan: however much a span brings, its artifact stays small, and
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
	for i := range detect.MaxFailures + 88 {
		s := mean().appendTo(td)
		s.SetTraceID(pcommon.TraceID{byte(i >> 8), byte(i), 1})
	}
	d := newStuckDisk()
	close(d.free)
	p, sink, tel := startOn(t, testConfig(t), d)
	require.NoError(t, p.ConsumeTraces(t.Context(), td))
	require.NoError(t, p.Shutdown(t.Context()))
	assert.Equal(t, detect.MaxFailures+88, sink.SpanCount())
	assert.Equal(t, map[string]int64{"batch_limit": 88}, dropped(t, tel))
}
