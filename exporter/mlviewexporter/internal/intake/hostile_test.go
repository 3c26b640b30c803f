package intake_test

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/goleak"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/intake"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/model"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/testing/pagetest"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hostile are texts that a client can send.
var hostile = []string{
	"<script>alert(1)</script>", "\u202Eabc", strings.Repeat("x", 10_000), "\x1b[31mred", "a\x00b", "\xff\xfe", "",
	strings.Repeat("ä", 5000), `"'&<>`, "../../etc/passwd", "$(reboot)", "; rm -rf /",
}

// TestHostileNames sends each text everywhere. The State is valid JSON of valid
// UTF-8, nothing of it is long, and no command has a text of a client.
func TestHostileNames(t *testing.T) {
	for _, fleet := range []bool{false, true} {
		hostileNames(t, pagetest.NewStore(input.Settings{Interval: time.Nanosecond, Fleet: fleet}))
	}
}

func hostileNames(t *testing.T, store *model.Store) {
	t.Helper()
	in := intake.New(store)
	for _, text := range hostile {
		td := ptrace.NewTraces()
		rs := td.ResourceSpans().AppendEmpty()
		keys := []string{
			"service.name", "service.namespace", "service.version", "host.name", "ml.run.id", "ml.rank.global", "ml.job.id", "ml.job.name", "ml.user",
			"ml.phase", "ml.operation", "ml.library", "ml.function", "ml.role", "ml.side", "gen_ai.request.model", "gen_ai.operation.name", "error.type",
			"repro.artifact.fingerprint", "gen_ai.response.finish_reasons", "process.pid",
		}
		span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		for _, key := range keys {
			rs.Resource().Attributes().PutStr(key, text)
			span.Attributes().PutStr(key, text)
		}
		span.SetTraceID([16]byte{1})
		span.SetSpanID([8]byte{1})
		span.SetName(text)
		span.Status().SetCode(ptrace.StatusCodeError)
		span.Status().SetMessage(text)
		in.ConsumeTraces(context.Background(), td)

		md := pmetric.NewMetrics()
		rm := md.ResourceMetrics().AppendEmpty()
		rm.Resource().Attributes().PutStr("service.name", text)
		rm.Resource().Attributes().PutStr("hw.id", "GPU-"+text)
		sm := rm.ScopeMetrics().AppendEmpty()
		for name, s := range series.ByName {
			m := sm.Metrics().AppendEmpty()
			m.SetName(name)
			point := m.SetEmptyGauge().DataPoints().AppendEmpty()
			point.SetDoubleValue(float64(time.Now().Unix() - 60))
			for _, key := range append(s.Own(), "ml.run.id", "ml.rank.global", "host.name", "hw.id", "nvidia.gpu.index", "collector_instance_id") {
				point.Attributes().PutStr(key, text)
			}
		}
		for _, kind := range []string{mlattr.ProblemLooksHung, mlattr.ProblemGPUFailed, mlattr.ProblemHeldIdle, mlattr.ProblemRestartLoop, mlattr.ProblemFailing, mlattr.ProblemSlow} {
			m := sm.Metrics().AppendEmpty()
			m.SetName("ml.problem.onset.timestamp")
			point := m.SetEmptyGauge().DataPoints().AppendEmpty()
			point.SetDoubleValue(float64(time.Now().Unix() - 60))
			for _, key := range []string{"ml.run.id", "host.name", "hw.id"} {
				point.Attributes().PutStr(key, text)
			}
			point.Attributes().PutStr("ml.problem", kind)
		}
		in.ConsumeMetrics(context.Background(), md)
		in.ConsumeMetrics(connected("10.0.0.1", map[string][]string{"collector-instance-id": {text}, "user-agent": {text}}), md)

		ld := plog.NewLogs()
		for _, name := range []string{"nvidia.gpu.xid", "repro.artifact", "ml.change", "ml.problem"} {
			record := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
			record.SetEventName(name)
			record.Body().SetEmptyMap().PutStr("report.md", text)
			for _, key := range []string{"host.name", "hw.id", "repro.artifact.fingerprint", "repro.artifact.path", "repro.artifact.directory", "repro.artifact.kind", "error.type", "ml.change.kind", "ml.change.to", "ml.problem.next"} {
				record.Attributes().PutStr(key, text)
			}
		}
		in.ConsumeLogs(mlattr.WithConcluded(context.Background()), ld)
	}
	checkState(t, store)
	for _, need := range store.State().Needs {
		for _, bad := range []string{"$(", ";", "<", "\x1b"} {
			assert.NotContains(t, need.Command, bad)
		}
	}
}

// checkState checks what holds for any input.
func checkState(t testing.TB, store *model.Store) {
	state := store.State()
	raw, err := json.Marshal(state)
	require.NoError(t, err)
	require.True(t, utf8.Valid(raw))
	keys := func(list string, all []string) {
		seen := make(map[string]bool)
		for _, key := range all {
			require.NotEmpty(t, key, list)
			require.False(t, seen[key], "%s: key %s twice", list, key)
			seen[key] = true
		}
	}
	keys("needs", each(state.Needs, func(r api.Need) string { return r.Key }))
	keys("runs", each(state.Runs, func(r api.Run) string { return r.Key }))
	keys("gpus", each(state.GPUs, func(r api.GPU) string { return r.Key }))
	keys("collectors", each(state.Collectors, func(r api.SendingCollector) string { return r.Key }))
	keys("missing", each(state.Missing, func(r api.Missing) string { return r.Key }))
	keys("failures", each(state.Failures, func(r api.Failure) string { return r.Key }))
	keys("calls", each(state.Calls, func(r api.Call) string { return r.Key }))
	keys("pools", each(state.Pools, func(r api.Pool) string { return r.Key }))
	keys("models", each(state.Models, func(r api.Model) string { return r.Key }))
	keys("changes", each(state.Changes, func(r api.Change) string { return r.Key }))
	keys("missing", each(state.Missing, func(r api.Missing) string { return r.Key }))
	for _, run := range state.Runs {
		detail, ok := store.Run(run.Key)
		require.True(t, ok)
		_, err := json.Marshal(detail)
		require.NoError(t, err)
		for _, trace := range detail.Traces {
			_, ok := store.Trace(trace.ID)
			require.True(t, ok)
		}
	}
	texts(t, raw)
	data, err := store.Export()
	require.NoError(t, err)
	require.NoError(t, store.Import(data))
	require.NoError(t, pagetest.NewStore(input.Settings{}).Import(data))
	again := store.State()
	require.Len(t, again.Changes, len(state.Changes), "what is known is not added again")
}

func each[T any](rows []T, of func(T) string) (all []string) {
	for _, row := range rows {
		all = append(all, of(row))
	}
	return all
}

// texts fails if a text of a document is longer than a message and what is said
// around it.
func texts(t testing.TB, raw []byte) {
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	for {
		token, err := decoder.Token()
		if err != nil {
			return
		}
		if text, ok := token.(string); ok {
			require.LessOrEqual(t, utf8.RuneCountInString(text), 1024)
		}
	}
}

// TestInterleavings reads all signals and takes all answers at once.
func TestInterleavings(t *testing.T) {
	store := pagetest.NewStore(input.Settings{Interval: time.Nanosecond, MaxRuns: 3, MaxGPUs: 4, MaxTraces: 5})
	in := intake.New(store)
	files, err := filepath.Glob("testdata/*/[0-9].txt")
	require.NoError(t, err)
	var all sync.WaitGroup
	for range 4 {
		for _, file := range files {
			all.Go(func() { consume(t, in, file) })
		}
		all.Go(func() {
			for _, run := range store.State().Runs {
				if detail, ok := store.Run(run.Key); ok {
					for _, trace := range detail.Traces {
						store.Trace(trace.ID)
					}
				}
			}
		})
		all.Go(func() {
			store.SetFailures([]api.Failure{{Key: "f00d", Class: "E"}})
			data, err := store.Export()
			assert.NoError(t, err)
			assert.NoError(t, store.Import(data))
		})
	}
	all.Wait()
	checkState(t, store)
}

func FuzzConsumeTraces(f *testing.F) {
	marshaler := &ptrace.ProtoMarshaler{}
	for _, path := range seeds(f, "traces") {
		raw, err := marshaler.MarshalTraces(golden.ReadTraces(f, path))
		require.NoError(f, err)
		f.Add(raw, true)
		f.Add(raw, false)
	}
	f.Fuzz(func(t *testing.T, raw []byte, enriched bool) {
		td, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(raw)
		if err != nil {
			return
		}
		store := pagetest.NewStore(input.Settings{MaxRuns: 20})
		ctx := context.Background()
		if enriched {
			var end func()
			ctx, end = vocabulary.WithEnriched(ctx)
			defer end()
		}
		before, _ := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
		intake.New(store).ConsumeTraces(ctx, td)
		after, _ := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
		require.Equal(t, before, after, "others read the same spans")
		checkState(t, store)
	})
}

func FuzzConsumeMetrics(f *testing.F) {
	marshaler := &pmetric.ProtoMarshaler{}
	for _, path := range seeds(f, "metrics") {
		raw, err := marshaler.MarshalMetrics(golden.ReadMetrics(f, path))
		require.NoError(f, err)
		f.Add(raw, "")
		f.Add(raw, "gw-1")
	}
	f.Fuzz(func(t *testing.T, raw []byte, collector string) {
		md, err := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(raw)
		if err != nil {
			return
		}
		store := pagetest.NewStore(input.Settings{MaxRuns: 20, MaxGPUs: 20, Fleet: collector != ""})
		in := intake.New(store)
		in.ConsumeMetrics(context.Background(), md)
		ctx := connected("10.0.0.1", map[string][]string{"collector-instance-id": {collector}})
		in.ConsumeMetrics(ctx, md)
		in.ConsumeMetrics(ctx, md)
		checkState(t, store)
	})
}

func FuzzConsumeLogs(f *testing.F) {
	marshaler := &plog.ProtoMarshaler{}
	for _, path := range seeds(f, "logs") {
		raw, err := marshaler.MarshalLogs(golden.ReadLogs(f, path))
		require.NoError(f, err)
		f.Add(raw, true)
		f.Add(raw, false)
	}
	f.Fuzz(func(t *testing.T, raw []byte, fleet bool) {
		ld, err := (&plog.ProtoUnmarshaler{}).UnmarshalLogs(raw)
		if err != nil {
			return
		}
		store := pagetest.NewStore(input.Settings{Fleet: fleet})
		intake.New(store).ConsumeLogs(mlattr.WithConcluded(context.Background()), ld)
		checkState(t, store)
	})
}

// seeds returns the files of the cases with a signal.
func seeds(t testing.TB, signal string) (paths []string) {
	files, err := filepath.Glob("testdata/*/[0-9].txt")
	require.NoError(t, err)
	for _, path := range files {
		if _, err := os.Stat(path); err == nil && golden.Signal(t, path) == signal {
			paths = append(paths, path)
		}
	}
	require.NotEmpty(t, paths)
	return paths
}

// TestHugeNumbers sends numbers whose sums are infinite. JSON has none of these.
func TestHugeNumbers(t *testing.T) {
	store := pagetest.NewStore(input.Settings{Interval: time.Nanosecond})
	in := intake.New(store)
	for i, huge := range []float64{math.MaxFloat64, -math.MaxFloat64, 1e300, math.Inf(1), math.NaN(), 1e30, 5e29} {
		td := ptrace.NewTraces()
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", "s")
		rs.Resource().Attributes().PutStr("service.version", "1")
		span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		span.SetName("snakepit.grpc.call")
		span.SetTraceID([16]byte{byte(i), 1})
		span.SetSpanID([8]byte{1})
		span.SetStartTimestamp(math.MaxUint64)
		for _, key := range []string{
			"gen_ai.response.time_to_first_chunk", "ml.tokens_per_second", "ml.tokens_per_second.decode", "ml.queue.time", "ml.latency",
			"snakepit.grpc.duration_ms", "gen_ai.usage.output_tokens",
		} {
			span.Attributes().PutDouble(key, huge)
		}
		span.Attributes().PutStr("gen_ai.operation.name", "chat")
		in.ConsumeTraces(context.Background(), td)
		md := pmetric.NewMetrics()
		rm := md.ResourceMetrics().AppendEmpty()
		rm.Resource().Attributes().PutStr("service.name", "s")
		for name := range series.ByName {
			m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
			m.SetName(name)
			points := m.SetEmptySum().DataPoints()
			m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
			for range 3 {
				point := points.AppendEmpty()
				point.SetDoubleValue(huge)
				point.Attributes().PutStr("ml.run.id", "r")
				point.Attributes().PutStr("hw.id", "g")
				point.Attributes().PutStr("error.type", "e")
			}
		}
		in.ConsumeMetrics(context.Background(), md)
		checkState(t, store)
	}
}

// Data of a recording, and of a resource that says so, is marked as simulated.
func TestSimulated(t *testing.T) {
	for key, value := range map[string]string{"nvidia.gpu.source": "replay", "ml.simulated": "true", "other": ""} {
		for _, onPoint := range []bool{false, true} {
			store := pagetest.NewStore(input.Settings{})
			md := pmetric.NewMetrics()
			rm := md.ResourceMetrics().AppendEmpty()
			rm.Resource().Attributes().PutStr("hw.id", "g")
			m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
			m.SetName("hw.power")
			point := m.SetEmptyGauge().DataPoints().AppendEmpty()
			point.SetDoubleValue(70)
			if onPoint && key == "nvidia.gpu.source" {
				point.Attributes().PutStr(key, value)
			} else {
				rm.Resource().Attributes().PutStr(key, value)
			}
			intake.New(store).ConsumeMetrics(context.Background(), md)
			state := store.State()
			assert.Equal(t, value != "", state.GPUs[0].Simulated, key)
			assert.Equal(t, value != "", state.Collector.Simulated, key)
		}
	}
}

// A run that was computed for a single trace is no row.
func TestARunOfOneTraceIsNoRow(t *testing.T) {
	for _, inferred := range []bool{false, true} {
		store := pagetest.NewStore(input.Settings{})
		td := ptrace.NewTraces()
		span := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		span.Attributes().PutStr("ml.run.id", "r")
		span.Attributes().PutBool("ml.run.inferred", inferred)
		span.Attributes().PutStr("ml.operation", "reply")
		intake.New(store).ConsumeTraces(context.Background(), td)
		state := store.State()
		assert.Equal(t, inferred, len(state.Runs) == 0)
		for _, m := range state.Missing {
			assert.NotEqual(t, "run", m.Kind)
		}
	}
}

// Spans without a start, without an end, or with an end before the start have no duration.
func TestDurationsThatAreUnknown(t *testing.T) {
	store := pagetest.NewStore(input.Settings{})
	td := ptrace.NewTraces()
	spans := td.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
	now := pcommon.NewTimestampFromTime(time.Now())
	for i, times := range [][2]pcommon.Timestamp{{0, now}, {now, 0}, {now, now - 5e9}, {0, 0}, {now - 2e9, now}} {
		span := spans.AppendEmpty()
		span.SetSpanID(pcommon.SpanID{byte(i + 1)})
		span.SetStartTimestamp(times[0])
		span.SetEndTimestamp(times[1])
		span.Attributes().PutStr("gen_ai.operation.name", "chat")
		span.Attributes().PutStr("gen_ai.request.model", "m")
		span.Attributes().PutInt("gen_ai.usage.output_tokens", 50)
	}
	intake.New(store).ConsumeTraces(context.Background(), td)
	models := store.State().Models
	require.Len(t, models, 1)
	assert.Equal(t, &api.Quantiles{P50: 2, P95: 2, Count: 1}, models[0].Duration)
}

// A histogram without a sum, which OTLP permits, says nothing of durations.
func TestHistogramsWithoutASum(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	store := pagetest.NewStore(input.Settings{Now: func() time.Time { return now }})
	in := intake.New(store)
	for i := range 2 {
		md := pmetric.NewMetrics()
		rm := md.ResourceMetrics().AppendEmpty()
		rm.Resource().Attributes().PutStr("service.name", "trainer")
		metrics := rm.ScopeMetrics().AppendEmpty().Metrics()
		for _, exponential := range []bool{false, true} {
			m := metrics.AppendEmpty()
			m.SetName("ml.step.duration")
			var attrs pcommon.Map
			if exponential {
				point := m.SetEmptyExponentialHistogram().DataPoints().AppendEmpty()
				point.SetCount(uint64(10 * i))
				attrs = point.Attributes()
			} else {
				point := m.SetEmptyHistogram().DataPoints().AppendEmpty()
				point.SetCount(uint64(10 * i))
				attrs = point.Attributes()
			}
			attrs.PutStr("ml.run.id", "r")
			attrs.PutStr("ml.phase", "step")
		}
		steps := metrics.AppendEmpty()
		steps.SetName("ml.steps")
		point := steps.SetEmptySum().DataPoints().AppendEmpty()
		point.SetIntValue(int64(i))
		point.Attributes().PutStr("ml.run.id", "r")
		in.ConsumeMetrics(t.Context(), md)
		now = now.Add(10 * time.Second)
	}
	detail, ok := store.Run(store.State().Runs[0].Key)
	require.True(t, ok)
	require.Empty(t, detail.Phases)
}

// Only the hash that ml_enrich writes says who a run belongs to: names of users
// are never shown.
func TestUsersAreNotShown(t *testing.T) {
	store := pagetest.NewStore(input.Settings{})
	in := intake.New(store)
	send := func(service, key, value string) {
		td := ptrace.NewTraces()
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", service)
		rs.Resource().Attributes().PutStr("ml.run.id", key)
		rs.Resource().Attributes().PutStr(key, value)
		span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		span.Attributes().PutStr(key, value)
		span.SetTraceID([16]byte{1})
		span.Status().SetCode(ptrace.StatusCodeError)
		in.ConsumeTraces(context.Background(), td)
	}
	names := 0
	for _, table := range vocabulary.Tables() {
		for _, alias := range slices.Concat(table.Resource, table.Span) {
			if alias.Canonical == mlattr.User {
				names++
				send(table.Name, alias.Source, "ada@example.com")
			}
		}
	}
	require.NotZero(t, names)
	send("trainer", mlattr.User, "0123456789abcdef")
	state, err := json.Marshal(store.State())
	require.NoError(t, err)
	assert.NotContains(t, string(state), "ada@")
	assert.Contains(t, string(state), "0123456789abcdef")
}
