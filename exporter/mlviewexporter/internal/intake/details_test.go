package intake_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/intake"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/testing/pagetest"
)

const traceID, spanID = "0a000000000000000000000000000000", "0b00000000000000"

// opened returns what the page shows of a span.
func opened(t *testing.T, settings input.Settings, fill func(ptrace.Span)) *api.SpanDetail {
	t.Helper()
	store := pagetest.NewStore(settings)
	td := ptrace.NewTraces()
	span := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.SetTraceID([16]byte{0x0a})
	span.SetSpanID([8]byte{0x0b})
	span.SetStartTimestamp(1_000_000_000)
	span.SetEndTimestamp(3_000_000_000)
	fill(span)
	intake.New(store).ConsumeTraces(context.Background(), td)
	for _, unknown := range [][2]string{{traceID, "0c00000000000000"}, {traceID, ""}, {"0b", spanID}, {traceID + "00", spanID}} {
		_, ok := store.Span(unknown[0], unknown[1])
		assert.False(t, ok, unknown)
	}
	detail, ok := store.Span(traceID, spanID)
	require.True(t, ok)
	return detail
}

func values(rows []api.Setting) map[string]string {
	all := make(map[string]string)
	for _, row := range rows {
		all[row.Name] = row.Value
	}
	return all
}

func failing(span ptrace.Span) {
	span.Attributes().PutStr("ml.phase", "forward")
	span.Attributes().PutInt("ml.step", 1200)
	span.Attributes().PutDouble("ml.loss", 1.25)
	span.Attributes().PutStr("gen_ai.prompt", "Who was the patient in room 12?")
	span.Attributes().PutStr("db.password", "hunter2hunter2")
	span.Attributes().PutInt("card.pin", 1234)
	span.Attributes().PutEmptyMap("acme.map").PutStr("a", "patient")
	span.Attributes().PutEmptySlice("gen_ai.response.finish_reasons").AppendEmpty().SetStr("stop")
	span.Status().SetCode(ptrace.StatusCodeError)
	event := span.Events().AppendEmpty()
	event.SetName("exception")
	event.SetTimestamp(2_500_000_000)
	event.Attributes().PutStr("exception.type", "ValueError")
	event.Attributes().PutStr("exception.message", "no room: "+strings.Repeat("x", 500))
	event.Attributes().PutStr("exception.stacktrace", "Traceback (most recent call last):\n  File \"train.py\", line 12, in step\n    loss = model(batch, key=\"sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD\")\nValueError: no room: "+strings.Repeat("x", 500))
}

// An opened span has its attributes, events and stack trace. Text that may be content is
// not held unless the settings say so, and secrets are never shown.
func TestAnOpenedSpan(t *testing.T) {
	detail := opened(t, input.Settings{}, failing)
	assert.Equal(t, map[string]string{
		"ml.phase": "forward", "ml.step": "1200", "ml.loss": "1.25", "gen_ai.prompt": "[31 bytes]", "db.password": "<REDACTED:key>",
		"card.pin": "[Int]", "acme.map": "[Map]", "gen_ai.response.finish_reasons": "stop ",
	}, values(detail.Attributes))
	require.Len(t, detail.Events, 1)
	event := detail.Events[0]
	assert.Equal(t, "exception", event.Name)
	assert.InDelta(t, 1.5, event.Offset, 1e-9)
	of := values(event.Attributes)
	assert.Equal(t, "ValueError", of["exception.type"])
	assert.Len(t, of["exception.message"], 200)
	assert.Contains(t, of["exception.stacktrace"], "  File \"train.py\", line 12, in step\n    loss = model(")
	assert.NotContains(t, of["exception.stacktrace"], "sk-proj")
	assert.NotContains(t, of["exception.stacktrace"], strings.Repeat("x", 200))

	whole := values(opened(t, input.Settings{Content: true}, failing).Attributes)
	assert.Equal(t, "Who was the patient in room 12?", whole["gen_ai.prompt"])
	assert.NotContains(t, whole["db.password"], "hunter2")
}

// What is held of a span is bounded, whatever is sent, and leaves with it.
func TestDetailsAreBounded(t *testing.T) {
	detail := opened(t, input.Settings{Content: true}, func(span ptrace.Span) {
		for i := range 3000 {
			span.Attributes().PutStr(strings.Repeat("k", i%50)+time.Duration(i).String(), strings.Repeat("v", 5000))
			span.Events().AppendEmpty().Attributes().PutStr("exception.stacktrace", strings.Repeat("line\n", 10_000))
		}
		deep := span.Attributes().PutEmptySlice("deep")
		for range 100 {
			deep.AppendEmpty().SetInt(1)
			deep = deep.AppendEmpty().SetEmptySlice()
		}
	})
	size := 0
	for _, row := range detail.Attributes {
		assert.LessOrEqual(t, len(row.Value), 1024)
		size += len(row.Name) + len(row.Value)
	}
	assert.Less(t, size, 20_000)
	assert.LessOrEqual(t, len(detail.Events), 32)

	// Of a trace with too many spans those of the newest stay.
	store := pagetest.NewStore(input.Settings{})
	in := intake.New(store)
	for i := range 5000 {
		td := ptrace.NewTraces()
		span := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		span.SetTraceID([16]byte{0x0a})
		span.SetSpanID([8]byte{byte(i >> 8), byte(i), 1})
		span.Attributes().PutInt("ml.step", int64(i))
		in.ConsumeTraces(context.Background(), td)
	}
	trace, ok := store.Trace(traceID)
	require.True(t, ok)
	require.NotEmpty(t, trace.Spans)
	require.LessOrEqual(t, len(trace.Spans), 2000)
	assert.Equal(t, 5000, len(trace.Spans)+trace.Dropped)
	for _, span := range trace.Spans {
		detail, ok := store.Span(traceID, span.ID)
		require.True(t, ok)
		step := values(detail.Attributes)["ml.step"]
		number, err := strconv.Atoi(step)
		require.NoError(t, err)
		assert.Equal(t, span.ID[:4], fmt.Sprintf("%04x", number))
	}
}
