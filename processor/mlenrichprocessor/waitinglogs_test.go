package mlenrichprocessor

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processorhelper"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/logwait"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/metadata"
)

const testWait = 10 * time.Second

func waitingConfig() *Config {
	cfg := createDefaultConfig().(*Config)
	cfg.LogWait.Wait = testWait
	return cfg
}

// giveLogs sends logs of which none, some or all go on at once.
func (p *pipelines) giveLogs(tb testing.TB, ld plog.Logs) {
	tb.Helper()
	sent := plog.NewLogs()
	ld.CopyTo(sent)
	require.NoError(tb, p.logs.ConsumeLogs(tb.Context(), sent))
}

// counted are the values of one of the processor's own metrics, by reason where
// it has some.
func (p *pipelines) counted(tb testing.TB, name string) map[string]int64 {
	tb.Helper()
	values := make(map[string]int64)
	m, err := p.telemetry.GetMetric(name)
	if err != nil {
		return values
	}
	for _, point := range m.Data.(metricdata.Sum[int64]).DataPoints {
		reason, _ := point.Attributes.Value(attribute.Key("reason"))
		values[reason.AsString()] += point.Value
	}
	return values
}

func (p *pipelines) released(tb testing.TB) map[string]int64 {
	return p.counted(tb, "otelcol_processor_ml_enrich_log_records_released")
}

func TestALogWaitsForItsTrace(t *testing.T) {
	for name, test := range map[string]struct {
		spans []testSpan
		want  map[string]any
	}{
		"for its span": {
			[]testSpan{{1, 2, 1, "call", keys("", "r")}},
			map[string]any{"ml.request.id": "r", "ml.correlation.source": "request=span"},
		},
		"for another span of its trace": {
			[]testSpan{{1, 1, 0, "root", keys("s", "")}},
			map[string]any{"ml.session.id": "s", "ml.correlation.source": "session=trace"},
		},
		"for both in one request": {
			[]testSpan{{1, 1, 0, "root", keys("s", "")}, {1, 2, 1, "call", keys("", "r")}},
			map[string]any{"ml.session.id": "s", "ml.request.id": "r", "ml.correlation.source": "session=span,request=span"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := start(t, waitingConfig())
				p.giveLogs(t, recordOf(1, 2, nil))
				synctest.Wait()
				assert.Empty(t, p.logsOut.AllLogs(), "it is ahead of its spans")
				assert.Equal(t, map[string]int64{"": 1}, p.counted(t, "otelcol_processor_ml_enrich_log_records_waiting"))
				assert.Greater(t, p.counted(t, "otelcol_processor_ml_enrich_log_bytes_waiting")[""], int64(512))

				p.sendTraces(t, batchOf("x", testSpan{9, 1, 0, "other", keys("other", "")}))
				p.sendTraces(t, batchOf("x", testSpan{1, 8, 0, "silent", nil}))
				synctest.Wait()
				assert.Empty(t, p.logsOut.AllLogs(), "that said nothing of its trace")

				p.sendTraces(t, batchOf("x", test.spans...))
				synctest.Wait()
				require.Len(t, p.logsOut.AllLogs(), 1, "it goes on at once then")
				assert.Equal(t, test.want, firstRecord(p.logsOut.AllLogs()[0]).Attributes().AsRaw())
				assert.Equal(t, map[string]int64{"found": 1}, p.released(t))
				assert.Equal(t, map[string]int64{"": 0}, p.counted(t, "otelcol_processor_ml_enrich_log_records_waiting"))
				assert.Equal(t, map[string]int64{"": 0}, p.counted(t, "otelcol_processor_ml_enrich_log_bytes_waiting"))
			})
		})
	}
}

func TestALogWaitsNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, waitingConfig())
		p.giveLogs(t, recordOf(1, 2, map[string]any{"n": 1}))
		time.Sleep(testWait / 2)
		p.giveLogs(t, recordOf(1, 2, map[string]any{"n": 2}))
		time.Sleep(testWait/2 - 1)
		synctest.Wait()
		assert.Empty(t, p.logsOut.AllLogs())
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.Len(t, p.logsOut.AllLogs(), 1, "the first only")
		out := p.logsOut.AllLogs()[0]
		assert.Equal(t, map[string]any{"n": int64(1)}, firstRecord(out).Attributes().AsRaw())
		run, _ := out.ResourceLogs().At(0).Resource().Attributes().Get("ml.run.id")
		assert.Equal(t, "run-1", run.AsString(), "it has what its resource gives")
		time.Sleep(testWait / 2)
		synctest.Wait()
		require.Len(t, p.logsOut.AllLogs(), 2)
		assert.Equal(t, map[string]int64{"timeout": 2}, p.released(t))
	})
}

// TestALogThatWaitedMayHaveARunOfItsTrace has a service whose traces are runs,
// which needs no span for that.
func TestALogThatWaitedMayHaveARunOfItsTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ld := recordOf(1, 2, nil)
		ld.ResourceLogs().At(0).Resource().Attributes().Clear()
		ld.ResourceLogs().At(0).Resource().Attributes().PutStr("service.name", "taskweaver")
		at := startDefault(t).sendLogs(t, ld)
		p := start(t, waitingConfig())
		p.giveLogs(t, ld)
		time.Sleep(testWait)
		synctest.Wait()
		require.Len(t, p.logsOut.AllLogs(), 1)
		assert.Contains(t, firstRecord(at).Attributes().AsRaw(), "ml.run.id")
		assert.Equal(t, firstRecord(at).Attributes().AsRaw(), firstRecord(p.logsOut.AllLogs()[0]).Attributes().AsRaw())
	})
}

func TestLogsThatDoNotWait(t *testing.T) {
	for name, record := range map[string]plog.Logs{
		"of no trace":                      recordOf(0, 0, nil),
		"of a trace that is known":         recordOf(1, 0, nil),
		"of a span that is known":          recordOf(2, 1, nil),
		"correlated by an earlier one":     recordOf(3, 1, map[string]any{"ml.session.id": "s", "ml.correlation.source": "session=trace"}),
		"with a mark that is not readable": recordOf(3, 1, map[string]any{"ml.correlation.source": "somebody"}),
		"of nothing":                       plog.NewLogs(),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := start(t, waitingConfig())
				p.sendTraces(t, batchOf("x", testSpan{1, 1, 0, "root", keys("s", "")}))
				p.sendTraces(t, batchOf("x", testSpan{2, 1, 0, "call", keys("", "r")}))
				p.giveLogs(t, record)
				assert.Len(t, p.logsOut.AllLogs(), 1)
				assert.Empty(t, p.released(t))
			})
		})
	}
}

// TestLogsWaitForMoreThanTheyHave has traces of which something is known that
// the record does not lack, or that it cannot use.
func TestLogsWaitForMoreThanTheyHave(t *testing.T) {
	for name, test := range map[string]struct {
		before []testSpan
		record plog.Logs
	}{
		"the run of its resource":   {[]testSpan{{1, 1, 0, "root", map[string]any{"ml.run.id": "run-1"}}}, recordOf(1, 2, nil)},
		"the session that it names": {[]testSpan{{1, 1, 0, "root", keys("s", "")}}, recordOf(1, 2, keys("s", ""))},
		"two sessions":              {[]testSpan{{1, 1, 0, "a", keys("a", "")}, {1, 3, 0, "b", keys("b", "")}}, recordOf(1, 2, nil)},
		"the request of another":    {[]testSpan{{1, 1, 0, "call", keys("", "other")}}, recordOf(1, 2, nil)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := start(t, waitingConfig())
				p.sendTraces(t, batchOf("x", test.before...))
				p.giveLogs(t, test.record)
				synctest.Wait()
				require.Empty(t, p.logsOut.AllLogs())
				p.sendTraces(t, batchOf("x", testSpan{1, 2, 1, "mine", keys("", "r")}))
				synctest.Wait()
				require.Len(t, p.logsOut.AllLogs(), 1)
				assert.Equal(t, "r", firstRecord(p.logsOut.AllLogs()[0]).Attributes().AsRaw()["ml.request.id"])
			})
		})
	}
}

// logsOfMany has records of several traces in several resources and scopes.
// Each record's body is its number.
func logsOfMany(traces ...[][]byte) plog.Logs {
	ld := plog.NewLogs()
	n := int64(0)
	for i, scopes := range traces {
		rl := ld.ResourceLogs().AppendEmpty()
		rl.Resource().Attributes().PutStr("service.name", "service"+strconv.Itoa(i))
		rl.Resource().SetDroppedAttributesCount(uint32(i))
		rl.SetSchemaUrl("resource" + strconv.Itoa(i))
		for j, records := range scopes {
			sl := rl.ScopeLogs().AppendEmpty()
			sl.Scope().SetName("scope" + strconv.Itoa(j))
			sl.Scope().SetVersion(strconv.Itoa(i))
			sl.SetSchemaUrl("scope" + strconv.Itoa(j))
			for _, trace := range records {
				record := sl.LogRecords().AppendEmpty()
				record.Body().SetInt(n)
				n++
				if trace != 0 {
					record.SetTraceID([16]byte{0: 0xa0, 15: trace})
				}
			}
		}
	}
	return ld
}

// whereabouts are where each record is, by its number: what a reader of the logs
// knows of a record beside itself.
func whereabouts(all ...plog.Logs) map[int64]string {
	found := make(map[int64]string)
	for _, ld := range all {
		for _, rl := range ld.ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, record := range sl.LogRecords().All() {
					service, _ := rl.Resource().Attributes().Get("service.name")
					found[record.Body().Int()] += fmt.Sprint(service.AsString(), rl.Resource().DroppedAttributesCount(), rl.SchemaUrl(),
						sl.Scope().Name(), sl.Scope().Version(), sl.SchemaUrl())
				}
			}
		}
	}
	return found
}

func TestWaitingLogsKeepTheirResourceAndScope(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, waitingConfig())
		p.sendTraces(t, batchOf("x", testSpan{1, 1, 0, "root", keys("known", "")}))
		in := logsOfMany([][]byte{{1, 2, 1, 3}, {2}, {}}, [][]byte{{2, 3}}, [][]byte{{0, 1}}, [][]byte{})
		p.giveLogs(t, in)
		synctest.Wait()
		require.Len(t, p.logsOut.AllLogs(), 1)
		atOnce := p.logsOut.AllLogs()[0]
		assert.Equal(t, 4, atOnce.LogRecordCount(), "what need not wait goes on at once")
		assert.Equal(t, 3, atOnce.ResourceLogs().Len(), "a resource is gone where all its records wait")
		assert.Equal(t, 2, atOnce.ResourceLogs().At(0).ScopeLogs().Len(), "so is a scope; one that came empty stays")

		p.sendTraces(t, batchOf("x", testSpan{2, 1, 0, "root", keys("two", "")}))
		synctest.Wait()
		require.Len(t, p.logsOut.AllLogs(), 2)
		two := p.logsOut.AllLogs()[1]
		assert.Equal(t, 2, two.ResourceLogs().Len(), "records of one resource stay together")
		assert.Equal(t, 2, two.ResourceLogs().At(0).ScopeLogs().Len())
		time.Sleep(testWait)
		synctest.Wait()
		require.Len(t, p.logsOut.AllLogs(), 3)
		three := p.logsOut.AllLogs()[2]
		assert.Equal(t, map[string]int64{"found": 3, "timeout": 2}, p.released(t))
		assert.Equal(t, whereabouts(in), whereabouts(atOnce, two, three))

		sessions := make(map[any]int)
		for _, ld := range p.logsOut.AllLogs() {
			for _, m := range logsMaps(ld) {
				sessions[m.AsRaw()["ml.session.id"]]++
			}
		}
		assert.Equal(t, 3, sessions["known"])
		assert.Equal(t, 3, sessions["two"])
	})
}

func TestWaitingLogsAreBounded(t *testing.T) {
	one := logsOfMany([][]byte{{2}})
	size := waitingSize(t, one)
	synctest.Test(t, func(t *testing.T) {
		cfg := waitingConfig()
		cfg.LogWait.MaxBytes = 4*size - 1
		p := start(t, cfg)
		for range 3 {
			p.giveLogs(t, one)
			assert.Empty(t, p.logsOut.AllLogs())
		}
		p.giveLogs(t, logsOfMany([][]byte{{3, 3}}))
		assert.Equal(t, 2, p.logsOut.LogRecordCount(), "what there is no room for goes on at once")
		assert.Equal(t, map[string]int64{"overflow": 2}, p.released(t))
		p.sendTraces(t, batchOf("x", testSpan{2, 1, 0, "root", keys("s", "")}))
		synctest.Wait()
		assert.Equal(t, 5, p.logsOut.LogRecordCount())
		p.giveLogs(t, logsOfMany([][]byte{{4}}))
		synctest.Wait()
		assert.Equal(t, 5, p.logsOut.LogRecordCount(), "there is room again")
	})
}

// waitingSize is the memory that logs take while they wait.
func waitingSize(t *testing.T, ld plog.Logs) (size int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := start(t, waitingConfig())
		p.giveLogs(t, ld)
		size = int(p.counted(t, "otelcol_processor_ml_enrich_log_bytes_waiting")[""])
	})
	return size
}

// TestAPartOfARequestOverflows has room for some records of a request: the
// others go on in it, as they would without waiting.
func TestAPartOfARequestOverflows(t *testing.T) {
	in := logsOfMany([][]byte{{2, 0}, {3}}, [][]byte{{2, 3}})
	size := waitingSize(t, in)
	synctest.Test(t, func(t *testing.T) {
		cfg := waitingConfig()
		cfg.LogWait.MaxBytes = size - 1
		p := start(t, cfg)
		p.giveLogs(t, in)
		assert.Equal(t, 2, p.logsOut.LogRecordCount())
		assert.Equal(t, map[string]int64{"overflow": 1}, p.released(t))
		time.Sleep(testWait)
		synctest.Wait()
		assert.Equal(t, whereabouts(in), whereabouts(p.logsOut.AllLogs()...))
	})
}

// nextLogs is a next component whose answers a test decides.
type nextLogs struct {
	consume func(context.Context, plog.Logs) error
}

func (nextLogs) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (n nextLogs) ConsumeLogs(ctx context.Context, ld plog.Logs) error { return n.consume(ctx, ld) }

// startLogs starts a logs instance alone, in front of next. Nobody stops it.
func startLogs(t *testing.T, cfg *Config, next consumer.Logs) (processor.Logs, *pipelines) {
	t.Helper()
	telemetry := componenttest.NewTelemetry()
	set := processortest.NewNopSettings(metadata.Type)
	set.TelemetrySettings = telemetry.NewTelemetrySettings()
	logs, err := NewFactory().CreateLogs(t.Context(), set, cfg, next)
	require.NoError(t, err)
	require.NoError(t, logs.Start(t.Context(), componenttest.NewNopHost()))
	return logs, &pipelines{logs: logs, telemetry: telemetry}
}

func TestShutdownSendsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out []plog.Logs
		logs, p := startLogs(t, waitingConfig(), nextLogs{func(_ context.Context, ld plog.Logs) error {
			out = append(out, ld)
			return nil
		}})
		in := logsOfMany([][]byte{{1, 2}, {2}}, [][]byte{{3}})
		p.giveLogs(t, in)
		p.giveLogs(t, recordOf(4, 1, nil))
		synctest.Wait()
		require.Empty(t, out)
		require.NoError(t, logs.Shutdown(t.Context()))
		require.Len(t, out, 2, "all is sent before Shutdown is done, a request at a time")
		assert.Equal(t, whereabouts(in), whereabouts(out[0]))
		assert.Equal(t, map[string]int64{"shutdown": 5}, p.released(t))
		require.NoError(t, logs.Shutdown(t.Context()), "a second time does nothing")
		require.Len(t, out, 2)

		p.giveLogs(t, recordOf(5, 1, nil))
		assert.Len(t, out, 3, "what comes all the same is not lost")
	})
}

func TestShutdownWithoutStart(t *testing.T) {
	logs, err := NewFactory().CreateLogs(t.Context(), processortest.NewNopSettings(metadata.Type), waitingConfig(), nextLogs{})
	require.NoError(t, err)
	require.NoError(t, logs.Shutdown(t.Context()))
}

// TestShutdownGivesUpWithItsContext has a next component that hangs until it is
// told to give up.
func TestShutdownGivesUpWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs, p := startLogs(t, waitingConfig(), nextLogs{func(ctx context.Context, _ plog.Logs) error {
			<-ctx.Done()
			return ctx.Err()
		}})
		p.giveLogs(t, recordOf(1, 1, nil))
		time.Sleep(testWait) // this one hangs
		p.giveLogs(t, recordOf(2, 1, nil))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		require.NoError(t, logs.Shutdown(ctx))
		assert.Equal(t, time.Second, time.Since(began))
		assert.Equal(t, map[string]int64{"": 2}, p.counted(t, "otelcol_processor_ml_enrich_log_records_lost"))
	})
}

func TestRefusedLogsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuses := true
		var out []plog.Logs
		logs, p := startLogs(t, waitingConfig(), nextLogs{func(_ context.Context, ld plog.Logs) error {
			if refuses {
				return errors.New("full")
			}
			out = append(out, ld)
			return nil
		}})
		p.giveLogs(t, logsOfMany([][]byte{{1, 2}}))
		time.Sleep(testWait)
		synctest.Wait()
		assert.Equal(t, map[string]int64{"": 2}, p.counted(t, "otelcol_processor_ml_enrich_log_records_lost"))
		assert.Equal(t, map[string]int64{"": 0}, p.counted(t, "otelcol_processor_ml_enrich_log_records_waiting"))
		refuses = false
		p.giveLogs(t, recordOf(1, 1, nil))
		time.Sleep(testWait)
		synctest.Wait()
		assert.Len(t, out, 1, "others are not affected")
		require.NoError(t, logs.Shutdown(t.Context()))
	})
}

// TestConsumeDoesNotWait has a next component that hangs on what waited. What
// comes meanwhile is taken or passed on, and comes to no harm.
func TestConsumeDoesNotWait(t *testing.T) {
	size := waitingSize(t, recordOf(1, 1, nil))
	synctest.Test(t, func(t *testing.T) {
		hangs := make(chan struct{})
		var mu sync.Mutex
		var out []plog.Logs
		cfg := waitingConfig()
		cfg.LogWait.MaxBytes = 3*size - 1
		logs, p := startLogs(t, cfg, nextLogs{func(_ context.Context, ld plog.Logs) error {
			if id := firstRecord(ld).TraceID(); id[15] == 1 {
				<-hangs
			}
			mu.Lock()
			defer mu.Unlock()
			out = append(out, ld)
			return nil
		}})
		p.giveLogs(t, recordOf(1, 1, nil))
		time.Sleep(testWait)
		synctest.Wait() // it hangs now
		p.giveLogs(t, recordOf(2, 1, nil))
		p.giveLogs(t, recordOf(0, 0, nil))
		assert.Len(t, out, 1)
		p.giveLogs(t, recordOf(3, 1, nil))
		assert.Len(t, out, 2, "what is being sent takes room still")
		close(hangs)
		time.Sleep(testWait)
		synctest.Wait()
		assert.Len(t, out, 4)
		require.NoError(t, logs.Shutdown(t.Context()))
	})
}

// TestWaitingLogsKeepTheirSender has two senders whose requests must not be one.
func TestWaitingLogsKeepTheirSender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := make(map[string]int)
		logs, p := startLogs(t, waitingConfig(), nextLogs{func(ctx context.Context, ld plog.Logs) error {
			got[fmt.Sprint(client.FromContext(ctx).Metadata.Get("tenant"))] += ld.LogRecordCount()
			return nil
		}})
		for _, tenant := range []string{"a", "b", "a"} {
			ctx := client.NewContext(t.Context(), client.Info{Metadata: client.NewMetadata(map[string][]string{"tenant": {tenant}})})
			require.NoError(t, p.logs.ConsumeLogs(ctx, recordOf(1, 1, nil)))
		}
		time.Sleep(testWait)
		synctest.Wait()
		assert.Equal(t, map[string]int{"[a]": 2, "[b]": 1}, got)
		require.NoError(t, logs.Shutdown(t.Context()))
	})
}

// TestASendersMetadataTakesRoom has a client whose headers are larger than all
// that may wait: one record would keep them in memory.
func TestASendersMetadataTakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := waitingConfig()
		cfg.LogWait.MaxBytes = 1 << 16
		p := start(t, cfg)
		give := func(header string) {
			ctx := client.NewContext(t.Context(), client.Info{Metadata: client.NewMetadata(map[string][]string{"x": {"", header}})})
			require.NoError(t, p.logs.ConsumeLogs(ctx, logsOfMany([][]byte{{1, 2}})))
		}
		give(strings.Repeat("a", 1<<16))
		assert.Equal(t, 2, p.logsOut.LogRecordCount())
		assert.Equal(t, map[string]int64{"overflow": 2}, p.released(t))
		give("a")
		assert.Equal(t, 2, p.logsOut.LogRecordCount(), "these wait")
		time.Sleep(testWait)
		synctest.Wait()
		assert.Equal(t, 4, p.logsOut.LogRecordCount())
		assert.Equal(t, map[string]int64{"": 0}, p.counted(t, "otelcol_processor_ml_enrich_log_bytes_waiting"))
	})
}

// TestNoLogMissesItsSpan has spans come while logs are about to wait: each
// record is found by one or the other, and none waits its time out.
func TestNoLogMissesItsSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := start(t, waitingConfig())
		const many = 60
		var wg sync.WaitGroup
		for trace := byte(1); trace <= many; trace++ {
			wg.Go(func() { p.giveLogs(t, logsOfMany([][]byte{{trace, trace}})) })
			wg.Go(func() {
				assert.NoError(t, p.traces.ConsumeTraces(t.Context(), batchOf("x", testSpan{trace, 1, 0, "root", keys(strconv.Itoa(int(trace)), "")})))
			})
		}
		wg.Wait()
		synctest.Wait()
		require.Equal(t, 2*many, p.logsOut.LogRecordCount(), "without any time that passed")
		for _, ld := range p.logsOut.AllLogs() {
			for _, record := range ld.ResourceLogs().At(0).ScopeLogs().At(0).LogRecords().All() {
				session, _ := record.Attributes().Get("ml.session.id")
				assert.Equal(t, strconv.Itoa(int(record.TraceID()[15])), session.AsString())
			}
		}
	})
}

// TestSpansMayComeAtAnyMoment has the spans come at each of the moments at which
// a record and whoever releases it look at the clock: between its being looked
// up and its waiting, too. It always goes on with its session, at once.
func TestSpansMayComeAtAnyMoment(t *testing.T) {
	came := 0
	for moment := range int64(30) {
		synctest.Test(t, func(t *testing.T) {
			ctx, set, stores := t.Context(), processortest.NewNopSettings(metadata.Type), new(shared.Registry[*store])
			traces, err := newEnricher(set, waitingConfig(), stores)
			require.NoError(t, err)
			logs, err := newEnricher(set, waitingConfig(), stores)
			require.NoError(t, err)
			var sink consumertest.LogsSink
			logs.waiting = logwait.New[recordState](logwait.Config{Wait: testWait, MaxBytes: 1 << 20}, &sink, set.Logger, logs.telemetry, attribute.String("processor", "x"))
			require.NoError(t, traces.start(ctx, componenttest.NewNopHost()))
			require.NoError(t, logs.start(ctx, componenttest.NewNopHost()))

			var looks atomic.Int64
			traces.store.now = func() time.Time {
				if looks.Add(1) == moment+1 {
					came++
					if _, err := traces.processTraces(ctx, batchOf("x", testSpan{1, 1, 0, "root", keys("s", "")})); err != nil {
						t.Error(err)
					}
				}
				return time.Now()
			}
			out, err := logs.processLogs(ctx, recordOf(1, 1, nil))
			if err == nil {
				require.NoError(t, sink.ConsumeLogs(ctx, out))
			} else {
				require.ErrorIs(t, err, processorhelper.ErrSkipProcessingData)
			}
			synctest.Wait()
			if looks.Load() > moment {
				require.Equal(t, 1, sink.LogRecordCount(), "at moment %d", moment)
				assert.Equal(t, "s", firstRecord(sink.AllLogs()[0]).Attributes().AsRaw()["ml.session.id"], "at moment %d", moment)
			}
			require.NoError(t, logs.shutdown(ctx))
			require.NoError(t, traces.shutdown(ctx))
		})
	}
	assert.Greater(t, came, 6, "there are more moments than before the record waits")
	assert.Less(t, came, 30, "all moments have been tried")
}

// FuzzLogsWait sends logs and spans in turns while time passes. Every record
// comes out once, with the resource and the scope that it came with, nothing of
// it is changed, and what is added is sound.
func FuzzLogsWait(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		synctest.Test(t, func(t *testing.T) {
			c := &choices{data}
			cfg := fuzzConfig()
			cfg.LogWait = logwait.Config{Wait: testWait, MaxBytes: 2048 * (1 + c.next(12))}
			p := start(t, cfg)
			var in []plog.Logs
			n := int64(0)
			for range 2 + c.next(6) {
				switch c.next(4) {
				case 0, 1:
					ld := c.logs()
					for _, rl := range ld.ResourceLogs().All() {
						for _, record := range rl.ScopeLogs().At(0).LogRecords().All() {
							record.Body().SetInt(n)
							n++
						}
					}
					in = append(in, ld)
					p.giveLogs(t, ld)
				case 2:
					p.sendTraces(t, c.traces())
				case 3:
					time.Sleep(time.Duration(c.next(8)) * time.Second)
				}
				require.LessOrEqual(t, p.counted(t, "otelcol_processor_ml_enrich_log_bytes_waiting")[""], int64(cfg.LogWait.MaxBytes))
				synctest.Wait()
				held := p.counted(t, "otelcol_processor_ml_enrich_log_records_waiting")[""]
				require.Equal(t, n, int64(p.logsOut.LogRecordCount())+held, "each record waits or is out")
			}
			require.NoError(t, p.logs.Shutdown(t.Context()))
			require.Zero(t, p.counted(t, "otelcol_processor_ml_enrich_log_bytes_waiting")[""])
			before, after := byNumber(in...), byNumber(p.logsOut.AllLogs()...)
			require.Len(t, after, int(n))
			for number, was := range before {
				is := after[number]
				require.Len(t, is, len(was), "record %d came out more than once, or not at all", number)
				checkOnlyAdded(t, was, is)
			}
		})
	})
}

// byNumber lists for each record, by its number, the attributes of its resource
// and its own.
func byNumber(all ...plog.Logs) map[int64][]pcommon.Map {
	found := make(map[int64][]pcommon.Map)
	for _, ld := range all {
		for _, rl := range ld.ResourceLogs().All() {
			for _, sl := range rl.ScopeLogs().All() {
				for _, record := range sl.LogRecords().All() {
					number := record.Body().Int()
					found[number] = append(found[number], rl.Resource().Attributes(), record.Attributes())
				}
			}
		}
	}
	return found
}
