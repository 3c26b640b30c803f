package logwait

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/otel/attribute"
	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/metadata"
)

const wait = 10 * time.Second

// traces is a Correlator to which some traces are known.
type traces struct {
	mu    sync.Mutex
	known map[pcommon.TraceID]bool
}

func (c *traces) learn(trace pcommon.TraceID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.known[trace] = true
}

func (c *traces) Learns(records []*Record[string]) []bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	learns := make([]bool, len(records))
	for i, r := range records {
		learns[i] = c.known[r.Trace]
	}
	return learns
}

func (c *traces) Write(records []*Record[string]) {
	for _, r := range records {
		r.Attrs.PutStr("state", r.State)
	}
}

// logsOfTraces returns logs with a record for each trace, one resource for all, and the
// records.
func logsOfTraces(ids ...byte) (plog.Logs, []Record[string]) {
	ld := plog.NewLogs()
	logs := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords()
	var records []Record[string]
	for i, id := range ids {
		log := logs.AppendEmpty()
		log.SetTraceID(pcommon.TraceID{id})
		records = append(records, Record[string]{Ordinal: i, Trace: log.TraceID(), Attrs: log.Attributes(), State: string('a' + rune(i))})
	}
	return ld, records
}

// startWaiter returns a started Waiter and what it knows and sends. It stops
// with the test.
func startWaiter(t *testing.T, maxBytes int) (*Waiter[string], *traces, *consumertest.LogsSink) {
	t.Helper()
	telemetry, err := metadata.NewTelemetryBuilder(componenttest.NewNopTelemetrySettings())
	require.NoError(t, err)
	sink, known := new(consumertest.LogsSink), &traces{known: make(map[pcommon.TraceID]bool)}
	w := New[string](Config{Wait: wait, MaxBytes: maxBytes}, sink, zap.NewNop(), telemetry, attribute.String("processor", "x"))
	w.Start(known, time.Now)
	t.Cleanup(func() { w.Shutdown(t.Context()) })
	return w, known, sink
}

// states are what was written to the records that were sent.
func states(sink *consumertest.LogsSink) (all []string) {
	for _, ld := range sink.AllLogs() {
		for _, log := range ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().All() {
			state, _ := log.Attributes().Get("state")
			all = append(all, state.Str())
		}
	}
	return all
}

func TestARecordGoesOnWithItsTraceOrInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, known, sink := startWaiter(t, 1<<20)
		var ws Waiters[string]
		ws.Add(w)
		ld, records := logsOfTraces(1, 2, 1)
		assert.Empty(t, w.Take(t.Context(), ld, records))
		assert.Zero(t, ld.ResourceLogs().Len(), "the request is empty")
		synctest.Wait()
		n, bytes := ws.Waiting()
		assert.Equal(t, 3, n)
		assert.Positive(t, bytes)

		known.learn(pcommon.TraceID{1})
		synctest.Wait()
		assert.Empty(t, states(sink), "nobody said that spans arrived")
		ws.SpansArrived(func(yield func(pcommon.TraceID) bool) { yield(pcommon.TraceID{1}) })
		synctest.Wait()
		assert.Equal(t, []string{"a", "c"}, states(sink), "in their order")

		time.Sleep(wait)
		synctest.Wait()
		assert.Equal(t, []string{"a", "c", "b"}, states(sink))
		n, bytes = ws.Waiting()
		assert.Zero(t, n)
		assert.Zero(t, bytes, "all memory is free again")
		ws.Remove(w)
	})
}

func TestARecordWithoutMemoryDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _, _ := startWaiter(t, 1<<20)
		ld, records := logsOfTraces(1, 2)
		assert.Empty(t, w.Take(t.Context(), ld, records))
		_, size := w.queue.waiting()

		w, _, sink := startWaiter(t, size-1)
		ld, records = logsOfTraces(1, 2)
		refused := w.Take(t.Context(), ld, records)
		require.Len(t, refused, 1)
		assert.Equal(t, 1, refused[0].Ordinal)
		require.Equal(t, 1, ld.LogRecordCount(), "it stays in its request")
		refused[0].Attrs.PutBool("mine", true)
		_, mine := ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().At(0).Attributes().Get("mine")
		assert.True(t, mine, "its attributes are those in the request")

		w.Shutdown(t.Context())
		assert.Equal(t, []string{"a"}, states(sink), "Shutdown sends what waits")
		ld, records = logsOfTraces(3)
		assert.Empty(t, w.Take(t.Context(), ld, records))
		assert.Equal(t, []string{"a", "a"}, states(sink), "after it nothing waits, and nothing is lost")
	})
}
