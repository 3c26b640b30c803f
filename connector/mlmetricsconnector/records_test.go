package mlmetricsconnector

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/change"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// recordsOf returns the records of an event that a sink has, in order, and resets
// it. Each has the attributes of its resource, too.
func recordsOf(sink *consumertest.LogsSink, event string) (records []plog.LogRecord) {
	for _, ld := range sink.AllLogs() {
		for _, rl := range ld.ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, record := range sl.LogRecords().All() {
					if record.EventName() != event {
						continue
					}
					for key, v := range rl.Resource().Attributes().All() {
						v.CopyTo(record.Attributes().PutEmpty(key))
					}
					records = append(records, record)
				}
			}
		}
	}
	sink.Reset()
	return records
}

func textOf(t *testing.T, record plog.LogRecord, key string) string {
	t.Helper()
	v, ok := record.Attributes().Get(key)
	require.True(t, ok, key)
	require.Equal(t, pcommon.ValueTypeStr, v.Type(), key)
	return v.Str()
}

func numberOf(t *testing.T, record plog.LogRecord, key string) float64 {
	t.Helper()
	v, ok := record.Attributes().Get(key)
	require.True(t, ok, key)
	return v.Double()
}

// A problem has a record when it begins and one when it ends, with the same id.
func TestRecordsOfAProblem(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	logs := new(consumertest.LogsSink)
	r.connector.Shared.outlets.Add(logs)
	r.gpu = true
	r.steps(t, 20, time.Second)
	hung := r.clock
	r.after(t, 0)
	assert.Empty(t, recordsOf(logs, "ml.problem"))
	r.after(t, 10*time.Minute)
	began := recordsOf(logs, "ml.problem")
	require.Len(t, began, 1)
	assert.Equal(t, "Run run-a, service trainer: looks hung since "+hung.UTC().Format(time.RFC3339)+".", began[0].Body().Str())
	assert.Equal(t, plog.SeverityNumberError, began[0].SeverityNumber())
	assert.Equal(t, r.clock, began[0].Timestamp().AsTime())
	for key, want := range map[string]string{
		"service.name": "trainer", "ml.run.id": "run-a", "ml.problem": "looks_hung",
		"ml.problem.state": "began", "ml.problem.severity": "page", "ml.problem.unit": "s",
	} {
		assert.Equal(t, want, textOf(t, began[0], key), key)
	}
	assert.InDelta(t, float64(hung.Unix()), numberOf(t, began[0], "ml.problem.onset"), 0)
	assert.InDelta(t, float64(r.clock.Unix()), numberOf(t, began[0], "ml.problem.detected"), 0)
	assert.InDelta(t, 600, numberOf(t, began[0], "ml.problem.value"), 0)
	_, known := began[0].Attributes().Get("ml.problem.telemetry.ratio")
	assert.False(t, known, "what is not known is absent")

	r.after(t, time.Minute)
	assert.Empty(t, recordsOf(logs, "ml.problem"), "it lasts")
	r.steps(t, 2, time.Second)
	r.after(t, 0)
	ended := recordsOf(logs, "ml.problem")
	require.Len(t, ended, 1)
	assert.Equal(t, "ended", textOf(t, ended[0], "ml.problem.state"))
	assert.Equal(t, textOf(t, began[0], "ml.problem.id"), textOf(t, ended[0], "ml.problem.id"))
	assert.Equal(t, plog.SeverityNumberInfo, ended[0].SeverityNumber())
	assert.Equal(t, "Run run-a, service trainer: looks hung no longer, after 11m2s.", ended[0].Body().Str())
}

// A problem that follows from another names its id.
func TestRecordsOfAFailedGPU(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	logs := new(consumertest.LogsSink)
	r.connector.Shared.outlets.Add(logs)
	r.steps(t, 20, time.Second)
	r.after(t, 0)
	r.read(t, gpuMetrics{host: "n1", id: "GPU-a", run: "run-a", memory: 1, failed: true})
	r.after(t, time.Second)
	failed := recordsOf(logs, "ml.problem")
	require.Len(t, failed, 1)
	assert.Equal(t, "gpu_failed", textOf(t, failed[0], "ml.problem"))
	assert.Equal(t, "n1", textOf(t, failed[0], "host.name"))
	assert.Equal(t, "GPU-a", textOf(t, failed[0], "hw.id"))
	for range 8 {
		r.clock = r.clock.Add(time.Minute)
		r.read(t, gpuMetrics{host: "n1", id: "GPU-a", run: "run-a", memory: 1, failed: true})
		r.after(t, 0)
	}
	hung := recordsOf(logs, "ml.problem")
	require.Len(t, hung, 2)
	assert.Equal(t, "updated", textOf(t, hung[1], "ml.problem.state"), "it has hung for longer by a fifth")
	assert.Equal(t, "looks_hung", textOf(t, hung[0], "ml.problem"))
	assert.Equal(t, textOf(t, failed[0], "ml.problem.id"), textOf(t, hung[0], "ml.problem.cause"))
	assert.InDelta(t, numberOf(t, hung[0], "ml.problem.value")/3600, numberOf(t, hung[0], "ml.problem.gpu_hours"), 1e-9)
}

// stateOf returns the state of the only record of a problem since the last call, "" if
// there is none.
func stateOf(t *testing.T, logs *consumertest.LogsSink) (state string, record plog.LogRecord) {
	t.Helper()
	records := recordsOf(logs, "ml.problem")
	if len(records) == 0 {
		return "", record
	}
	require.Len(t, records, 1)
	return textOf(t, records[0], "ml.problem.state"), records[0]
}

// A service that fails and is called no more is stale after two minutes and ends after
// an hour; one that is called again fails, or does not.
func TestAFailingServiceThatIsCalledNoMore(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	logs := new(consumertest.LogsSink)
	r.connector.Shared.outlets.Add(logs)
	last := r.clock
	r.request(t, "agent", "timeout", "timeout", "timeout")
	states := func(minutes int) (found []string) {
		for range minutes {
			r.after(t, time.Minute)
			if is, record := stateOf(t, logs); is != "" {
				found = append(found, is)
				assert.InDelta(t, float64(last.UnixNano())/1e9, numberOf(t, record, "ml.problem.evidence.time"), 1e-3)
			}
		}
		return found
	}
	assert.Equal(t, []string{"began", "stale"}, states(2))
	assert.Empty(t, states(27))
	last = r.clock
	r.request(t, "agent", "timeout")
	assert.Equal(t, []string{"began", "stale"}, states(2))
	assert.Empty(t, states(57))
	r.after(t, time.Minute)
	is, record := stateOf(t, logs)
	assert.Equal(t, "ended", is)
	assert.Equal(t, "no_evidence", textOf(t, record, "ml.problem.end.reason"))
	assert.Empty(t, states(180))

	last = r.clock
	r.request(t, "agent", "timeout", "timeout", "timeout")
	assert.Equal(t, []string{"began", "stale"}, states(10))
	last = r.clock
	r.request(t, "agent", make([]string, 100)...)
	r.after(t, time.Minute)
	is, record = stateOf(t, logs)
	assert.Equal(t, "ended", is)
	assert.Equal(t, "over", textOf(t, record, "ml.problem.end.reason"))
}

// A GPU that fell off the bus is that of the job and the user who had it, and of their
// run if there is one: while its host tells that it is lost, when nobody tells anything
// any more, and until it has been back for ten minutes.
func TestAGPUThatFellOffTheBus(t *testing.T) {
	for _, of := range []string{"", "run-a"} {
		t.Run("of run "+of, func(t *testing.T) {
			r := newRun(t, createDefaultConfig().(*Config))
			logs := new(consumertest.LogsSink)
			r.connector.Shared.outlets.Add(logs)
			r.steps(t, 1, time.Second)
			held := gpuReading(gpuMetrics{host: "n1", id: "GPU-a", run: of, memory: 1 << 30, utilization: 1}, r.clock)
			for m := range metricsOf(held) {
				if m.Name() == "nvidia.gpu.workload.memory.usage" {
					m.Sum().DataPoints().At(0).Attributes().PutStr("slurm.job.id", "815")
					m.Sum().DataPoints().At(0).Attributes().PutInt("user.id", 1000)
				}
			}
			r.metrics(t, held)
			r.after(t, 0)
			read := func(failed bool) {
				r.clock = r.clock.Add(10 * time.Second)
				md := gpuReading(gpuMetrics{host: "n1", id: "GPU-a", failed: failed}, r.clock)
				if failed {
					md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().RemoveIf(func(m pmetric.Metric) bool { return m.Name() != "hw.status" })
				}
				r.metrics(t, md)
				r.after(t, 0)
			}
			assertHeld := func(record plog.LogRecord) {
				assert.Equal(t, "815", textOf(t, record, "slurm.job.id"))
				assert.Equal(t, "1000", textOf(t, record, "user.id"))
				assert.Equal(t, []string{"n1", "GPU-a"}, []string{textOf(t, record, "host.name"), textOf(t, record, "hw.id")})
				run, known := record.Attributes().Get("ml.run.id")
				assert.Equal(t, of != "", known)
				if known {
					assert.Equal(t, of, run.Str())
				}
			}
			read(true)
			onset := r.clock
			is, record := stateOf(t, logs)
			require.Equal(t, "began", is)
			assertHeld(record)
			for range 360 { // an hour
				read(true)
				is, _ := stateOf(t, logs)
				assert.Empty(t, is)
			}
			onsets, _ := problems(t, r.after(t, 0))
			require.Len(t, onsets, 1)
			for _, at := range onsets {
				assert.WithinDuration(t, onset, at, time.Millisecond)
			}

			r.after(t, 2*time.Minute)
			is, record = stateOf(t, logs)
			assert.Equal(t, "stale", is, "its host is silent")
			assertHeld(record)
			r.after(t, 10*time.Hour)
			is, _ = stateOf(t, logs)
			assert.Empty(t, is)

			read(true)
			is, record = stateOf(t, logs)
			assert.Equal(t, "began", is, "it is told again")
			assertHeld(record)
			states := ""
			for range 61 {
				read(false)
				if is, found := stateOf(t, logs); is != "" {
					states, record = states+is+" ", found
				}
			}
			assert.Equal(t, "stale ended ", states)
			assertHeld(record)
			assert.Equal(t, "over", textOf(t, record, "ml.problem.end.reason"))
		})
	}
}

// refusing is a pipeline that takes nothing.
type refusing struct{ consumertest.LogsSink }

func (*refusing) ConsumeLogs(context.Context, plog.Logs) error { return errors.New("queue is full") }

// Records that are refused are said to be lost; the series are there all the same.
func TestRecordsThatAreRefused(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	r.connector.Shared.outlets.Add(new(refusing))
	r.request(t, "agent", "timeout", "timeout", "timeout")
	onsets, _ := problems(t, r.after(t, time.Second))
	assert.Contains(t, onsets, "agent/failing")
	notices := r.connector.notices()
	require.Len(t, notices, 1)
	assert.Equal(t, "Records of problems and changes", notices[0].What)
	assert.EqualValues(t, 1, notices[0].Count)
}

// The instance with a pipeline of logs sends what the one for metrics finds, until
// it is shut down.
func TestRecordsOfInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		factory, cfg := NewFactory(), createDefaultConfig().(*Config)
		cfg.FlushInterval = time.Second
		set, host := connectortest.NewNopSettings(metadata.Type), componenttest.NewNopHost()
		logs := new(consumertest.LogsSink)
		metrics, err := factory.CreateTracesToMetrics(t.Context(), set, cfg, consumertest.NewNop())
		require.NoError(t, err)
		records, err := factory.CreateTracesToLogs(t.Context(), set, cfg, logs)
		require.NoError(t, err)
		assert.False(t, records.Capabilities().MutatesData)
		require.NoError(t, metrics.Start(t.Context(), host))
		require.NoError(t, records.Start(t.Context(), host))
		fail := func(service string) {
			for n := range uint16(3) {
				td := chat(service, n)
				td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Status().SetCode(2)
				require.NoError(t, metrics.ConsumeTraces(t.Context(), td))
				require.NoError(t, records.ConsumeTraces(t.Context(), td))
			}
		}
		fail("agent")
		time.Sleep(3 * time.Second)
		synctest.Wait()
		assert.Len(t, recordsOf(logs, "ml.problem"), 1)
		require.NoError(t, records.Shutdown(t.Context()))
		fail("other")
		time.Sleep(3 * time.Second)
		synctest.Wait()
		assert.Empty(t, logs.AllLogs())
		require.NoError(t, metrics.Shutdown(t.Context()))
	})
}

// markedLogs reports whether records have the mark of ml_metrics.
type markedLogs struct {
	consumertest.LogsSink
	marked bool
}

func (m *markedLogs) ConsumeLogs(ctx context.Context, ld plog.Logs) error {
	m.marked = mlattr.IsConcluded(ctx)
	return m.LogsSink.ConsumeLogs(ctx, ld)
}

func TestRecordsAreMarked(t *testing.T) {
	r := newRun(t, createDefaultConfig().(*Config))
	logs := new(markedLogs)
	r.connector.Shared.outlets.Add(logs)
	r.gpu = true
	r.steps(t, 20, time.Second)
	r.after(t, 0)
	r.after(t, 10*time.Minute)
	require.NotEmpty(t, logs.AllLogs())
	assert.True(t, logs.marked)
}

// TestLogsThatBlock has a pipeline of logs that accepts nothing: the metrics do not
// wait for it longer than flush_interval.
func TestLogsThatBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs, err := consumer.NewLogs(func(ctx context.Context, _ plog.Logs) error {
			<-ctx.Done()
			return ctx.Err()
		})
		require.NoError(t, err)
		c := newRun(t, createDefaultConfig().(*Config)).connector
		c.Shared.outlets.Add(logs)
		c.Shared.history.Attempts(change.Subject{Run: "r"}, 1, time.Now())
		c.Shared.history.Attempts(change.Subject{Run: "r"}, 2, time.Now())
		began := time.Now()
		require.NoError(t, c.emit(t.Context(), false))
		assert.Equal(t, c.cfg.FlushInterval, time.Since(began))
	})
}
