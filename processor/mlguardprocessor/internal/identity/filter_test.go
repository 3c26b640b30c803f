package identity

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// bed is a Filter with a clock of the test's.
type bed struct {
	*Filter
	tb    testing.TB
	clock time.Time
	log   *observer.ObservedLogs
	// from is the address of the sender, 127.0.0.1 if it is empty.
	from string
}

// ctx is the context of a request of the sender.
func (b *bed) ctx() context.Context {
	address := net.ParseIP(cmp.Or(b.from, "127.0.0.1"))
	return client.NewContext(b.tb.Context(), client.Info{Addr: &net.TCPAddr{IP: address, Port: 40_000}})
}

// small are limits that a test can fill.
func small() Config {
	cfg := DefaultConfig()
	cfg.Limits = Limits{
		Service: 40, Instance: 80, Run: 40, Rank: 400, Session: 40, Model: 40, Operation: 40,
		User: 40, Process: 40, Label: 40, Combination: 4000, Stream: 4000,
	}
	return cfg
}

func newBed(tb testing.TB, cfg Config) *bed {
	tb.Helper()
	require.NoError(tb, cfg.Validate())
	core, log := observer.New(zap.WarnLevel)
	set := componenttest.NewNopTelemetrySettings()
	set.Logger = zap.New(core)
	f, err := New(&cfg, set, component.MustNewID("ml_guard"))
	require.NoError(tb, err)
	b := &bed{Filter: f, tb: tb, clock: time.Unix(1_700_000_000, 0), log: log}
	f.start = b.clock
	f.now = func() time.Time { return b.clock }
	return b
}

func (b *bed) after(d time.Duration) { b.clock = b.clock.Add(d) }

// attrs sets attributes by pairs of a key and a value.
func attrs(to pcommon.Map, pairs ...any) {
	for i := 0; i < len(pairs); i += 2 {
		switch v := pairs[i+1].(type) {
		case string:
			to.PutStr(pairs[i].(string), v)
		case int:
			to.PutInt(pairs[i].(string), int64(v))
		case bool:
			to.PutBool(pairs[i].(string), v)
		}
	}
}

// spans passes one span with the attributes of its resource and its own, and
// returns both as they become labels.
func (b *bed) span(resource []any, span ...any) (resourceAttrs, spanAttrs map[string]any) {
	b.tb.Helper()
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	attrs(rs.Resource().Attributes(), resource...)
	attrs(rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty().Attributes(), span...)
	td.MarkReadOnly()
	got := b.Traces(b.ctx(), td).ResourceSpans().At(0)
	return got.Resource().Attributes().AsRaw(), got.ScopeSpans().At(0).Spans().At(0).Attributes().AsRaw()
}

// point passes one point, and returns its attributes, or nil if it was dropped.
func (b *bed) point(resource []any, point ...any) map[string]any {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	attrs(rm.Resource().Attributes(), resource...)
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("requests")
	attrs(m.SetEmptyGauge().DataPoints().AppendEmpty().Attributes(), point...)
	b.Metrics(b.ctx(), md)
	if md.DataPointCount() == 0 {
		return nil
	}
	return md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).Attributes().AsRaw()
}

func service(name string) []any { return []any{"service.name", name} }

// flood sends n spans, each of another service, instance, run and model.
func (b *bed) flood(from, n int) {
	for i := range n {
		id := strconv.Itoa(from + i)
		b.span([]any{"service.name", "s" + id, "service.instance.id", "i" + id, mlattr.RunID, "r" + id},
			mlattr.GenAIRequestModel, "m"+id, mlattr.Operation, "o"+id)
	}
}

func TestFirstIdentitiesHaveLabelsAtOnce(t *testing.T) {
	b := newBed(t, DefaultConfig())
	for i := range 100 {
		id := strconv.Itoa(i)
		resource, span := b.span([]any{"service.name", "s" + id, "service.instance.id", "i" + id, mlattr.RunID, "r" + id, mlattr.RankGlobal, i},
			mlattr.Operation, "o"+id, mlattr.GenAIRequestModel, "m"+id)
		require.Equal(t, map[string]any{"service.name": "s" + id, "service.instance.id": "i" + id, mlattr.RunID: "r" + id, mlattr.RankGlobal: int64(i)}, resource)
		require.Equal(t, map[string]any{mlattr.Operation: "o" + id, mlattr.GenAIRequestModel: "m" + id}, span)
		require.Equal(t, map[string]any{"user.id": "u" + id, "process.pid": int64(i)}, b.point(service("s"+id), "user.id", "u"+id, "process.pid", i))
	}
	assert.Empty(t, b.log.All())
}

func TestFloodOfOneOffNamesTakesAQuarter(t *testing.T) {
	b := newBed(t, small())
	for from := 0; from < 20_000; from += 1000 {
		b.flood(from, 1000)
		b.after(time.Second)
	}
	for _, k := range []kind{kindService, kindInstance, kindRun, kindModel, kindOperation} {
		admitted, _ := b.tables[k].size()
		assert.LessOrEqual(t, 4*admitted, int64(b.cfg.Limits.of()[k]), kindNames[k])
	}
	resource, span := b.span([]any{"service.name", "one more", "service.namespace", "n", "service.instance.id", "i", mlattr.RunID, "r"}, mlattr.Operation, "o")
	assert.NotZero(t, resource[mlattr.Identity], "what is counted separately")
	delete(resource, mlattr.Identity)
	assert.Equal(t, map[string]any{"service.name": mlattr.Other, "service.instance.id": mlattr.Other, mlattr.RunID: mlattr.Other, mlattr.Overflow: true}, resource)
	assert.Equal(t, mlattr.Other, span[mlattr.Operation])
	assert.Equal(t, true, span[mlattr.Overflow])
}

// Calls of no run are shown by host, so hosts are bounded as ranks are.
func TestInventedHostsAreNoLabels(t *testing.T) {
	b := newBed(t, small())
	shown := map[any]bool{}
	for i := range 20_000 {
		resource, _ := b.span([]any{"service.name", "known", mlattr.HostName, "h" + strconv.Itoa(i)}, mlattr.Operation, "o")
		shown[resource[mlattr.HostName]] = true
		resource, _ = b.span([]any{"service.name", "s" + strconv.Itoa(i), mlattr.HostName, "h" + strconv.Itoa(i)}, mlattr.Operation, "o")
		shown[resource[mlattr.HostName]] = true
	}
	assert.LessOrEqual(t, len(shown), 1+b.cfg.Limits.Rank)
	assert.Contains(t, shown, mlattr.Other)
}

func TestNewRunThatPersistsHasItsLabelsDuringTheFlood(t *testing.T) {
	b := newBed(t, small())
	b.flood(0, 1000)
	send := func() string {
		resource, _ := b.span([]any{"service.name", "train", "service.instance.id", "i", mlattr.RunID, "new"}, mlattr.Phase, "forward")
		return resource[mlattr.RunID].(string)
	}
	require.Equal(t, mlattr.Other, send())
	had := 0
	for second := 1; second <= 30; second++ {
		b.after(time.Second)
		b.flood(1000*second, 1000)
		if second%5 == 0 && send() == "new" {
			had++
		}
	}
	assert.Equal(t, 6, had, "every batch from the second on")
}

// A client that exports each minute has its labels with the second export, and
// all of its streams.
func TestProgramThatExportsEachMinuteWaitsForOneExport(t *testing.T) {
	cfg := small()
	cfg.Limits.Label = 400
	b := newBed(t, cfg)
	b.point(service("busy"))
	shown := []int{}
	for minute := range 3 {
		for i := range 100 {
			b.point([]any{"service.name", fmt.Sprint(minute, i), "service.instance.id", fmt.Sprint(minute, i)}, "user.id", fmt.Sprint(minute, i))
		}
		for i := range 100 {
			b.point([]any{"service.name", "busy", "service.instance.id", fmt.Sprint(minute, i)})
		}
		had := 0
		for i := range 20 {
			if b.point([]any{"service.name", "new", "service.instance.id", "i"}, "queue", i) != nil {
				had++
			}
		}
		shown = append(shown, had)
		b.after(time.Minute)
	}
	assert.Equal(t, []int{0, 20, 20}, shown)
}

// What somebody who was there before has not sent yet is shown at once.
func TestNewStreamsOfIncumbentsAreShownAtOnce(t *testing.T) {
	b := newBed(t, small())
	require.NotNil(t, b.point(service("old"), "result", "ok"))
	b.span(service("old"), mlattr.Operation, "chat")
	for i := range 1000 {
		b.point(service("s0"), "queue", i)
		b.span(service("s0"), mlattr.Operation, "chat", mlattr.Role, strconv.Itoa(i%9), mlattr.Side, strconv.Itoa(i/9%9), mlattr.Library, strconv.Itoa(i/81))
	}
	assert.NotNil(t, b.point(service("old"), "result", "ok", "again", true))
	_, span := b.span(service("old"), mlattr.Operation, "chat", mlattr.Role, "1")
	assert.NotContains(t, span, mlattr.Overflow)
}

func TestIncumbentsKeepTheirLabels(t *testing.T) {
	b := newBed(t, small())
	for second := range 600 {
		for i := range 8 {
			id := strconv.Itoa(i)
			if second%60 == 0 {
				resource, span := b.span([]any{"service.name", "old" + id, mlattr.RunID, "run" + id}, mlattr.GenAIRequestModel, "model"+id)
				require.Equal(t, "old"+id, resource["service.name"])
				require.Equal(t, "run"+id, resource[mlattr.RunID])
				require.Equal(t, "model"+id, span[mlattr.GenAIRequestModel])
				require.NotContains(t, span, mlattr.Overflow)
			}
		}
		// Names that are repeated for hours, more than there are places.
		for i := range 100 {
			b.span([]any{"service.name", "again" + strconv.Itoa(i), mlattr.RunID, "r" + strconv.Itoa(i)}, mlattr.GenAIRequestModel, strconv.Itoa(i))
		}
		b.after(time.Second)
	}
	admitted, _ := b.tables[kindService].size()
	assert.Equal(t, int64(b.cfg.Limits.Service), admitted)
}

func TestPlacesAreFreeAfterExpiration(t *testing.T) {
	b := newBed(t, small())
	b.flood(0, 1000)
	b.after(b.cfg.Expiration + b.cfg.Expiration/4 + sweepInterval*time.Second)
	resource, _ := b.span(service("new"))
	assert.Equal(t, "new", resource["service.name"])
	_, evicted := b.tables[kindService].size()
	assert.Positive(t, evicted)
}

func TestLabelsOfACombinationStayWhileItIsSeen(t *testing.T) {
	cfg := small()
	cfg.Expiration = 4 * time.Minute
	b := newBed(t, cfg)
	for range 240 {
		_, span := b.span(service("s"), mlattr.Operation, "o")
		require.Equal(t, "o", span[mlattr.Operation])
		b.after(10 * time.Second)
	}
	b.span(service("t"), mlattr.Operation, "p")
	for k, want := range map[kind]int64{kindService: 2, kindOperation: 2, kindCombination: 2} {
		admitted, evicted := b.tables[k].size()
		assert.Equal(t, want, admitted, kindNames[k])
		assert.Zero(t, evicted, kindNames[k])
	}
}

func TestSpansThatCameStayAsTheyWere(t *testing.T) {
	b := newBed(t, small())
	b.flood(0, 200)
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	attrs(rs.Resource().Attributes(), "service.name", "late")
	span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	attrs(span.Attributes(), mlattr.Operation, "o")
	before := ptrace.NewTraces()
	td.CopyTo(before)
	td.MarkReadOnly()
	got := b.Traces(t.Context(), td)
	assert.Equal(t, before.ResourceSpans().At(0).Resource().Attributes().AsRaw(), rs.Resource().Attributes().AsRaw())
	assert.Equal(t, before.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes().AsRaw(), span.Attributes().AsRaw())
	assert.NotEqual(t, td, got)

	old := ptrace.NewTraces()
	attrs(old.ResourceSpans().AppendEmpty().Resource().Attributes(), "service.name", "s0")
	assert.Equal(t, old, b.Traces(t.Context(), old), "what is admitted is not copied")
}

func TestRunsOfSingleTracesTakeNoPlace(t *testing.T) {
	b := newBed(t, small())
	for i := range 1000 {
		for range 5 {
			_, span := b.span(service("agents"), mlattr.RunID, "trace"+strconv.Itoa(i), mlattr.RunInferred, true, mlattr.Operation, "chat")
			require.Equal(t, map[string]any{mlattr.RunID: "trace" + strconv.Itoa(i), mlattr.RunInferred: true, mlattr.Operation: "chat"}, span, "nothing is changed or copied")
			b.after(6 * time.Second)
		}
	}
	admitted, _ := b.tables[kindRun].size()
	assert.Zero(t, admitted)
	resource, _ := b.span([]any{"service.name", "train", mlattr.RunID, "hash", mlattr.RunInferred, true})
	assert.Equal(t, "hash", resource[mlattr.RunID], "a run of a process is one at once")
	_, span := b.span(service("train"), mlattr.RunID, "hash", mlattr.RunInferred, true)
	assert.Equal(t, "hash", span[mlattr.RunID], "and is one for spans that link to it")
	assert.Empty(t, b.log.All())
}

// TestTrainingRunsBesideAnInferredRun: what ml_metrics takes for the run is what is
// admitted, also beside the id of a process that is admitted.
func TestTrainingRunsBesideAnInferredRun(t *testing.T) {
	b := newBed(t, small())
	process := []any{"service.name", "s", mlattr.RunID, "process", mlattr.RunInferred, true}
	b.span(process)
	shown := make(map[any]bool)
	for i := range 100 {
		_, span := b.span(process, mlattr.RunID, "process", mlattr.RunInferred, true, mlattr.TrainingRunID, "t"+strconv.Itoa(i))
		shown[span[mlattr.TrainingRunID]] = true
	}
	assert.Less(t, len(shown), 20, "those at once, and one for the rest")
	assert.True(t, shown[mlattr.Other])
	_, span := b.span(process, mlattr.RunID, "none", mlattr.Operation, "o")
	assert.Equal(t, "none", span[mlattr.RunID], "it is no run")
}

func TestJobWithoutRunIsARun(t *testing.T) {
	b := newBed(t, small())
	for i := range 100 {
		b.span([]any{"service.name", "s", mlattr.JobID, "j" + strconv.Itoa(i)})
	}
	resource, _ := b.span([]any{"service.name", "s", mlattr.JobID, "one more"})
	assert.Equal(t, mlattr.Other, resource[mlattr.RunID])
	assert.Equal(t, mlattr.Other, resource[mlattr.JobID])
}

func TestManyCombinationsOfKnownLabelsAreBounded(t *testing.T) {
	cfg := small()
	cfg.Limits.Combination = 60
	b := newBed(t, cfg)
	shown := map[string]bool{}
	for i := range 10 {
		for j := range 10 {
			_, span := b.span(service("s"), mlattr.Operation, "o"+strconv.Itoa(i), mlattr.GenAIRequestModel, "m"+strconv.Itoa(j))
			shown[fmt.Sprint(span)] = true
		}
	}
	assert.Len(t, shown, 17, "those at once, and one for the rest")
}

func TestLabelsOfResourcesAndExceptionsAreAdmitted(t *testing.T) {
	b := newBed(t, small())
	failed := func(id string) ptrace.ResourceSpans {
		td := ptrace.NewTraces()
		rs := td.ResourceSpans().AppendEmpty()
		attrs(rs.Resource().Attributes(), "service.name", "s", mlattr.Operation, "o"+id)
		event := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty().Events().AppendEmpty()
		event.SetName("exception")
		event.Attributes().PutStr("exception.type", "E"+id)
		return b.Traces(t.Context(), td).ResourceSpans().At(0)
	}
	for i := range 200 {
		failed(strconv.Itoa(i))
	}
	got := failed("more")
	operation, _ := got.Resource().Attributes().Get(mlattr.Operation)
	assert.Equal(t, mlattr.Other, operation.Str())
	class, _ := got.ScopeSpans().At(0).Spans().At(0).Events().At(0).Attributes().Get("exception.type")
	assert.Equal(t, mlattr.Other, class.Str())
	for _, k := range []kind{kindOperation, kindLabel} {
		admitted, _ := b.tables[k].size()
		assert.Equal(t, int64(10), admitted, kindNames[k])
	}
}

func TestPointsOfUnknownProgramsAreDropped(t *testing.T) {
	b := newBed(t, small())
	for i := range 100 {
		b.point([]any{"service.name", "s", "service.instance.id", strconv.Itoa(i)})
	}
	assert.Nil(t, b.point([]any{"service.name", "s", "service.instance.id", "one more"}))
	for i := range 100 {
		b.point(service("s" + strconv.Itoa(i)))
	}
	assert.Nil(t, b.point(service("one more")))
	assert.NotNil(t, b.point([]any{"service.name", "s", "service.instance.id", "0"}))
}

func TestSeriesOfAReplacedLabelHasOneWriter(t *testing.T) {
	b := newBed(t, small())
	b.point(service("s"), "user.id", "a", "gpu", 0)
	for i := range 100 {
		b.point(service("t"), "user.id", strconv.Itoa(i), "gpu", 0)
	}
	first := map[string]any{"user.id": mlattr.Other, "gpu": int64(1), mlattr.Overflow: true}
	assert.Equal(t, first, b.point(service("s"), "user.id", "late", "gpu", 1))
	assert.Nil(t, b.point(service("s"), "user.id", "later", "gpu", 1), "its value is another's")
	assert.Equal(t, first, b.point(service("s"), "user.id", "late", "gpu", 1))
	assert.Equal(t, map[string]any{"user.id": mlattr.Other, "gpu": int64(2), mlattr.Overflow: true}, b.point(service("s"), "user.id", "late", "gpu", 2))
	assert.Equal(t, map[string]any{"user.id": "a", "gpu": int64(0)}, b.point(service("s"), "user.id", "a", "gpu", 0))
	b.after(6 * time.Second)
	assert.Equal(t, map[string]any{"user.id": "late", "gpu": int64(1)}, b.point(service("s"), "user.id", "late", "gpu", 1), "it was seen again")
}

// Labels whose values never end are left out of the metrics of the client that sends
// them, and of no other.
func TestLabelsWithoutAnEndAreLeftOut(t *testing.T) {
	b := newBed(t, small())
	sent := func(metric string, operation int) map[string]any {
		md := pmetric.NewMetrics()
		rm := md.ResourceMetrics().AppendEmpty()
		attrs(rm.Resource().Attributes(), service("s")...)
		m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		m.SetName(metric)
		attrs(m.SetEmptyGauge().DataPoints().AppendEmpty().Attributes(),
			"collective", "AllReduce", "coll_sn", strconv.Itoa(operation), "comm_id", "0x5d1f", "coll_msg_size_bytes", "4096")
		b.Metrics(b.tb.Context(), md)
		require.Equal(t, 1, md.DataPointCount())
		return md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).Attributes().AsRaw()
	}
	for i := range 1000 {
		assert.Equal(t, map[string]any{"collective": "AllReduce"}, sent("nccl_bus_bandwidth_gbs", i))
	}
	assert.Contains(t, sent("another", 0), "coll_sn")
}

func TestStreamsAreBounded(t *testing.T) {
	cfg := small()
	cfg.Limits.Stream = 40
	b := newBed(t, cfg)
	kept := 0
	for i := range 10 {
		for j := range 10 {
			if b.point(service("s"), "a", i, "b", j) != nil {
				kept++
			}
		}
	}
	assert.Equal(t, 30, kept, "three quarters")
}

func TestKeysThatAreInventedAreBounded(t *testing.T) {
	cfg := small()
	cfg.Limits.Label = 4
	b := newBed(t, cfg)
	for i := range 1000 {
		b.point(service("s"), "key"+strconv.Itoa(i), "v")
	}
	admitted, _ := b.tables[kindLabel].size()
	assert.LessOrEqual(t, admitted, int64(cfg.Limits.Label*groupsOfTable))
}

func TestOneWarningNamesTheKindAndTheLimit(t *testing.T) {
	b := newBed(t, small())
	for i := range 1000 {
		b.span(service(strconv.Itoa(i)))
	}
	require.Len(t, b.log.All(), 1)
	assert.Equal(t, map[string]any{"kind": "service", "limit": int64(40)}, b.log.All()[0].ContextMap())
	b.after(warnInterval)
	b.span(service("one more"))
	assert.Len(t, b.log.All(), 2)
}

func TestManySendersAtOnce(t *testing.T) {
	b := newBed(t, small())
	var senders sync.WaitGroup
	for sender := range 4 {
		senders.Go(func() {
			b.flood(1000*sender, 200)
			for i := range 200 {
				b.point(service("s"+strconv.Itoa(i)), "user.id", strconv.Itoa(i))
			}
		})
	}
	senders.Wait()
	b.assertBounded(t)
}

func TestCandidatesThatComeAgainOutliveAFlood(t *testing.T) {
	var c candidates
	again, once := uint64(1)<<40, uint64(2)<<40
	require.Equal(t, uint32(1), c.see(again, 1))
	require.Equal(t, uint32(2), c.see(again, 1+sightingGap))
	require.Equal(t, uint32(1), c.see(once, 2))
	for id := range uint64(4 * candidateSets * candidateWays) {
		c.see(id, 10)
	}
	assert.Equal(t, uint32(3), c.see(again, 60))
	assert.Equal(t, uint32(1), c.see(once, 60), "it made room")
	assert.Equal(t, uint32(1), c.see(again, 60+candidateAge+1), "it was away for too long")
}

func TestConfig(t *testing.T) {
	cfg := DefaultConfig()
	require.NoError(t, cfg.Validate())
	cfg.Expiration = time.Second
	require.ErrorContains(t, cfg.Validate(), `"expiration" is 1s; it must be between 1m0s and 720h0m0s`)
	cfg = DefaultConfig()
	cfg.ScrapeBytes = 1000
	require.ErrorContains(t, cfg.Validate(), `"scrape_bytes" is 1000; it must be between 1048576 and 17179869184`)
	cfg = DefaultConfig()
	cfg.Limits.Stream = 0
	require.ErrorContains(t, cfg.Validate(), `"limits::stream" is 0; it must be between 1 and 1000000`)
}

// Whatever comes, no kind has more identities than its limit, and what is passed
// on has no more than came in.
func FuzzTraces(f *testing.F) {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	attrs(rs.Resource().Attributes(), "service.name", "s", "service.instance.id", "i", mlattr.RunID, "r", mlattr.Operation, "o")
	span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	attrs(span.Attributes(), mlattr.Operation, "o", mlattr.RunID, "x", mlattr.RunInferred, true)
	span.Events().AppendEmpty().SetName("exception")
	raw, err := (&ptrace.ProtoMarshaler{}).MarshalTraces(td)
	require.NoError(f, err)
	f.Add(raw)
	cfg := small()
	cfg.Limits = Limits{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}
	b := newBed(f, cfg)
	f.Fuzz(func(t *testing.T, raw []byte) {
		td, err := (&ptrace.ProtoUnmarshaler{}).UnmarshalTraces(raw)
		if err != nil {
			return
		}
		b.after(time.Second)
		td.MarkReadOnly()
		assert.Equal(t, td.SpanCount(), b.Traces(t.Context(), td).SpanCount())
		b.assertBounded(t)
	})
}

func FuzzMetrics(f *testing.F) {
	md := pmetric.NewMetrics()
	m := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("m")
	attrs(m.SetEmptySum().DataPoints().AppendEmpty().Attributes(), "user.id", "u", "a", 1)
	raw, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(md)
	require.NoError(f, err)
	f.Add(raw)
	cfg := small()
	cfg.Limits = Limits{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}
	cfg.ScrapeBytes = 1 << 20
	b := newBed(f, cfg)
	f.Fuzz(func(t *testing.T, raw []byte) {
		md, err := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(raw)
		if err != nil {
			return
		}
		b.after(time.Second)
		had := md.DataPointCount()
		b.Metrics(t.Context(), md)
		assert.LessOrEqual(t, md.DataPointCount(), had)
		assert.Less(t, len(exposed(md)), 1<<20, "scrape_bytes")
		b.assertBounded(t)
	})
}

func (b *bed) assertBounded(tb testing.TB) {
	tb.Helper()
	for k, t := range b.tables {
		admitted, _ := t.size()
		assert.LessOrEqual(tb, admitted, int64(t.total), kindNames[k])
		assert.LessOrEqual(tb, t.bytes, max(t.maxBytes, 0), kindNames[k])
	}
}

// How much of a limit is in use is that of the label with the most values. What was seen only
// for a while leaves for new names, and does not count.
func TestUseOfALimit(t *testing.T) {
	b := newBed(t, small())
	use := func(k kind) float64 { return b.tables[k].use(b.seconds()) }
	assert.Zero(t, use(kindService))
	sightings := func(n int) {
		for range 4 {
			for i := range n {
				b.span(service(strconv.Itoa(i)), "gen_ai.request.model", strconv.Itoa(i), "gen_ai.response.model", "m")
			}
			b.after(sightingGap * time.Second)
		}
	}
	sightings(30)
	assert.InDelta(t, 0.75, use(kindService), 0)
	assert.InDelta(t, 0.75, use(kindModel), 0, "of one of the two labels, and of none of the programs")
	assert.InDelta(t, 0.75*40/4000, use(kindCombination), 0.01)
	b.after(idleAfter * time.Second)
	assert.Zero(t, use(kindService), "all of them leave for new ones")
	for range 70 {
		sightings(10)
		b.after(time.Minute)
	}
	assert.InDelta(t, 0.25, use(kindService), 0)
	b.after(b.cfg.Expiration / 2)
	assert.InDelta(t, 0.25, use(kindService), 0, "they are established, and stay")
	b.after(b.cfg.Expiration)
	assert.Zero(t, use(kindService), "they have expired")
}
