package mlenrichprocessor

import (
	"encoding/binary"
	"runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/correlate"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/metadata"
)

// TestFlatWhileTracesComeAndGo sends many times as many traces, sessions,
// requests and answers as the store remembers: once it is full, what is kept
// grows no more.
func TestFlatWhileTracesComeAndGo(t *testing.T) {
	const size, full, many = 1000, 40, 60
	e := newEnricher(processortest.NewNopSettings(metadata.Type), createDefaultConfig().(*Config), new(shared.Registry[*store]))
	require.NoError(t, e.start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, e.stores.Shutdown(t.Context())) })

	next := 0
	send := func() {
		td := ptrace.NewTraces()
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", "assistant")
		spans := rs.ScopeSpans().AppendEmpty().Spans()
		spans.EnsureCapacity(size)
		for range size {
			next++
			span := spans.AppendEmpty()
			var trace [16]byte
			binary.BigEndian.PutUint32(trace[:], uint32(next))
			span.SetTraceID(trace)
			span.SetSpanID([8]byte{1})
			span.SetParentSpanID([8]byte{2})
			span.SetEndTimestamp(1e9) // without a time it only reports a request beside it
			attrs := span.Attributes()
			attrs.PutStr("session.id", "session-"+strconv.Itoa(next))
			attrs.PutStr("gen_ai.response.id", "answer-"+strconv.Itoa(next))
			attrs.PutInt("gen_ai.usage.output_tokens", 5)
		}
		_, err := e.processTraces(t.Context(), td)
		require.NoError(t, err)
	}
	kept := func() int64 {
		runtime.GC()
		runtime.GC() // the first leaves what pools had
		var now runtime.MemStats
		runtime.ReadMemStats(&now)
		return int64(now.HeapAlloc)
	}
	for range full {
		send()
	}
	limits, sizes := correlate.DefaultLimits(), make(map[string]int)
	for _, size := range e.store.keys.Sizes() {
		sizes[size.Index] = size.Entries
	}
	require.Equal(t, limits.Traces, sizes["traces"])
	require.Equal(t, limits.Joins, sizes["joins"])
	require.Equal(t, limits.Answers, sizes["answers"])
	before := kept()
	for range many {
		send()
	}
	grown := kept() - before
	t.Logf("%d bytes more after %d more traces", grown, many*size)
	assert.Less(t, grown, int64(1<<20))
}
