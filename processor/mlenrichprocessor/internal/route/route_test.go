package route_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/client"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/route"
)

// call is one call of the next component: its metadata, and of each resource the
// attributes and the names of its spans.
type call struct {
	route     []string
	resources []resource
}

type resource struct {
	attrs map[string]any
	spans []string
}

func noGPUs() *route.GPUs { return route.NewGPUs(time.Now) }

// recorder is a next component that keeps what it is called with.
type recorder struct {
	calls []call
	err   error
}

func (r *recorder) traces(t testing.TB) consumer.Traces {
	next, err := consumer.NewTraces(func(ctx context.Context, td ptrace.Traces) error {
		one := call{route: client.FromContext(ctx).Metadata.Get(mlattr.RouteMetadata)}
		for _, rs := range td.ResourceSpans().All() {
			of := resource{attrs: rs.Resource().Attributes().AsRaw()}
			for _, ss := range rs.ScopeSpans().All() {
				assert.NotZero(t, ss.Spans().Len(), "a scope without spans is left")
				for _, span := range ss.Spans().All() {
					of.spans = append(of.spans, ss.Scope().Name()+"/"+span.Name())
				}
			}
			one.resources = append(one.resources, of)
		}
		r.calls = append(r.calls, one)
		return r.err
	})
	require.NoError(t, err)
	return route.Traces(next)
}

// spans makes a request of one resource; each span is "scope/name run".
func spans(resource map[string]any, list ...string) ptrace.Traces {
	td := ptrace.NewTraces()
	addSpans(td, resource, list...)
	return td
}

func addSpans(td ptrace.Traces, resource map[string]any, list ...string) {
	rs := td.ResourceSpans().AppendEmpty()
	if err := rs.Resource().Attributes().FromRaw(resource); err != nil {
		panic(err)
	}
	var ss ptrace.ScopeSpans
	last := ""
	for i, text := range list {
		name, run, _ := strings.Cut(text, " ")
		scope, name, _ := strings.Cut(name, "/")
		if i == 0 || scope != last {
			ss, last = rs.ScopeSpans().AppendEmpty(), scope
			ss.Scope().SetName(scope)
		}
		span := ss.Spans().AppendEmpty()
		span.SetName(name)
		run, inferred := strings.CutSuffix(run, "?")
		if run != "" {
			span.Attributes().PutStr("ml.run.id", run)
		}
		if inferred {
			span.Attributes().PutBool("ml.run.inferred", true)
		}
	}
}

func TestResourcesAreDividedByRun(t *testing.T) {
	service := map[string]any{"service.name": "tuner", "host.name": "n1"}
	with := func(more map[string]any) map[string]any {
		attrs := maps.Clone(service)
		maps.Copy(attrs, more)
		return attrs
	}
	split := func(run string) map[string]any {
		return with(map[string]any{"ml.route": run, "ml.run.id": run, "ml.run.split": true})
	}
	for name, test := range map[string]struct {
		resource map[string]any
		spans    []string
		want     []call
	}{
		"no run": {service, []string{"a/1", "a/2"},
			[]call{{[]string{"tuner"}, []resource{{with(map[string]any{"ml.route": "tuner"}), []string{"a/1", "a/2"}}}}}},
		"no service": {map[string]any{"host.name": "n1"}, []string{"a/1"},
			[]call{{[]string{"n1"}, []resource{{map[string]any{"host.name": "n1", "ml.route": "n1"}, []string{"a/1"}}}}}},
		"nothing at all": {map[string]any{}, []string{"a/1"},
			[]call{{[]string{"unknown"}, []resource{{map[string]any{"ml.route": "unknown"}, []string{"a/1"}}}}}},
		"no spans": {service, nil,
			[]call{{[]string{"tuner"}, []resource{{with(map[string]any{"ml.route": "tuner"}), nil}}}}},
		"the resource's run": {with(map[string]any{"ml.run.id": "r"}), []string{"a/1", "a/2 r"},
			[]call{{[]string{"r"}, []resource{{with(map[string]any{"ml.run.id": "r", "ml.route": "r"}), []string{"a/1", "a/2 r"[:3]}}}}}},
		"one run": {service, []string{"a/1 r", "b/2 r"},
			[]call{{[]string{"r"}, []resource{{split("r"), []string{"a/1", "b/2"}}}}}},
		"one inferred run": {service, []string{"a/1 r?"},
			[]call{{[]string{"r"}, []resource{{with(map[string]any{"ml.route": "r", "ml.run.id": "r", "ml.run.split": true, "ml.run.inferred": true}), []string{"a/1"}}}}}},
		"two runs": {service, []string{"a/1 r", "a/2 s", "b/3 r", "b/4 s"}, []call{
			{[]string{"r"}, []resource{{split("r"), []string{"a/1", "b/3"}}}},
			{[]string{"s"}, []resource{{split("s"), []string{"a/2", "b/4"}}}},
		}},
		"a run and none": {service, []string{"a/1 r", "a/2", "b/3 r"}, []call{
			{[]string{"tuner"}, []resource{{with(map[string]any{"ml.route": "tuner"}), []string{"a/2"}}}},
			{[]string{"r"}, []resource{{split("r"), []string{"a/1", "b/3"}}}},
		}},
		"a run within the resource's": {with(map[string]any{"ml.run.id": "job"}), []string{"a/1", "a/2 r"}, []call{
			{[]string{"job"}, []resource{{with(map[string]any{"ml.run.id": "job", "ml.route": "job"}), []string{"a/1"}}}},
			{[]string{"r"}, []resource{{with(map[string]any{"ml.run.id": "job", "ml.route": "r"}), []string{"a/2"}}}},
		}},
		"a run that is no id": {service, []string{"a/1 r", "a/2 has space"}, []call{
			{[]string{"tuner"}, []resource{{with(map[string]any{"ml.route": "tuner"}), []string{"a/2"}}}},
			{[]string{"r"}, []resource{{split("r"), []string{"a/1"}}}},
		}},
		"divided before": {with(map[string]any{"ml.route": "elsewhere"}), []string{"a/1 r", "a/2 s"},
			[]call{{[]string{"elsewhere"}, []resource{{with(map[string]any{"ml.route": "elsewhere"}), []string{"a/1", "a/2"}}}}}},
	} {
		t.Run(name, func(t *testing.T) {
			var r recorder
			require.NoError(t, r.traces(t).ConsumeTraces(t.Context(), spans(test.resource, test.spans...)))
			assert.Equal(t, test.want, r.calls)
		})
	}
}

// Resources of one route are sent together, in the order of the first of each.
func TestOneCallForEachRoute(t *testing.T) {
	var r recorder
	td := spans(map[string]any{"service.name": "a"}, "x/1 r")
	addSpans(td, map[string]any{"service.name": "b"}, "x/2")
	addSpans(td, map[string]any{"service.name": "c"}, "x/3 r")
	ctx := client.NewContext(t.Context(), client.Info{Metadata: client.NewMetadata(map[string][]string{"tenant": {"t"}, "ML-Route": {"forged"}})})
	next := r.traces(t)
	require.NoError(t, next.ConsumeTraces(ctx, td))
	require.Len(t, r.calls, 2)
	assert.Equal(t, []string{"r"}, r.calls[0].route)
	assert.Len(t, r.calls[0].resources, 2)
	assert.Equal(t, []string{"b"}, r.calls[1].route)
	assert.Len(t, r.calls[1].resources, 1)
}

// The sender's own metadata goes on.
func TestMetadataOfTheSenderStays(t *testing.T) {
	var seen client.Info
	next, err := consumer.NewLogs(func(ctx context.Context, _ plog.Logs) error {
		seen = client.FromContext(ctx)
		return nil
	})
	require.NoError(t, err)
	logs := route.Logs(next, noGPUs)
	ld := plog.NewLogs()
	ld.ResourceLogs().AppendEmpty().Resource().Attributes().PutStr("service.name", "a")
	ctx := client.NewContext(t.Context(), client.Info{Metadata: client.NewMetadata(map[string][]string{"tenant": {"t", "u"}})})
	require.NoError(t, logs.ConsumeLogs(ctx, ld))
	assert.Equal(t, []string{"t", "u"}, seen.Metadata.Get("tenant"))
	assert.Equal(t, []string{"a"}, seen.Metadata.Get(mlattr.RouteMetadata))
}

// The sender repeats a request of which a call failed, so calls after that one
// would only make more copies.
func TestCallsEndAtTheFirstError(t *testing.T) {
	r := recorder{err: errors.New("full")}
	require.ErrorIs(t, r.traces(t).ConsumeTraces(t.Context(), spans(nil, "a/1 r", "a/2 s", "a/3 t")), r.err)
	assert.Len(t, r.calls, 1)
}

// Points of all types move with what their metric is.
func TestPointsAreDividedByRun(t *testing.T) {
	sink := new(consumertest.MetricsSink)
	next := route.Metrics(sink, noGPUs)
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.SetSchemaUrl("resource schema")
	rm.Resource().Attributes().PutStr("host.name", "n1")
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.SetSchemaUrl("scope schema")
	sm.Scope().SetName("s")
	for _, kind := range []string{"gauge", "sum", "histogram", "exponential", "summary", "empty"} {
		m := sm.Metrics().AppendEmpty()
		m.SetName(kind)
		m.SetUnit("By")
		m.SetDescription("of " + kind)
		for _, run := range []string{"r", "", "s", "r"} {
			var attrs pcommon.Map
			switch kind {
			case "gauge":
				if m.Type() == pmetric.MetricTypeEmpty {
					m.SetEmptyGauge()
				}
				attrs = m.Gauge().DataPoints().AppendEmpty().Attributes()
			case "sum":
				if m.Type() == pmetric.MetricTypeEmpty {
					m.SetEmptySum().SetIsMonotonic(true)
					m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
				}
				attrs = m.Sum().DataPoints().AppendEmpty().Attributes()
			case "histogram":
				if m.Type() == pmetric.MetricTypeEmpty {
					m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
				}
				attrs = m.Histogram().DataPoints().AppendEmpty().Attributes()
			case "exponential":
				if m.Type() == pmetric.MetricTypeEmpty {
					m.SetEmptyExponentialHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
				}
				attrs = m.ExponentialHistogram().DataPoints().AppendEmpty().Attributes()
			case "summary":
				if m.Type() == pmetric.MetricTypeEmpty {
					m.SetEmptySummary()
				}
				attrs = m.Summary().DataPoints().AppendEmpty().Attributes()
			default:
				continue
			}
			if run != "" {
				attrs.PutStr("ml.run.id", run)
			}
		}
	}
	require.NoError(t, next.ConsumeMetrics(t.Context(), md))
	calls := sink.AllMetrics()
	require.Len(t, calls, 3)
	for i, want := range []struct {
		route   string
		points  int
		metrics []string
	}{
		{"n1", 1, []string{"gauge", "sum", "histogram", "exponential", "summary", "empty"}},
		{"r", 2, []string{"gauge", "sum", "histogram", "exponential", "summary"}},
		{"s", 1, []string{"gauge", "sum", "histogram", "exponential", "summary"}},
	} {
		require.Equal(t, 1, calls[i].ResourceMetrics().Len())
		got := calls[i].ResourceMetrics().At(0)
		at, _ := got.Resource().Attributes().Get("ml.route")
		assert.Equal(t, want.route, at.Str())
		assert.Equal(t, "resource schema", got.SchemaUrl())
		require.Equal(t, 1, got.ScopeMetrics().Len())
		scope := got.ScopeMetrics().At(0)
		assert.Equal(t, "scope schema", scope.SchemaUrl())
		assert.Equal(t, "s", scope.Scope().Name())
		var names []string
		for _, m := range scope.Metrics().All() {
			names = append(names, m.Name())
			assert.Equal(t, "By", m.Unit())
			assert.Equal(t, "of "+m.Name(), m.Description())
			switch m.Type() {
			case pmetric.MetricTypeGauge:
				assert.Equal(t, want.points, m.Gauge().DataPoints().Len())
			case pmetric.MetricTypeSum:
				assert.Equal(t, want.points, m.Sum().DataPoints().Len())
				assert.True(t, m.Sum().IsMonotonic())
				assert.Equal(t, pmetric.AggregationTemporalityDelta, m.Sum().AggregationTemporality())
			case pmetric.MetricTypeHistogram:
				assert.Equal(t, want.points, m.Histogram().DataPoints().Len())
				assert.Equal(t, pmetric.AggregationTemporalityDelta, m.Histogram().AggregationTemporality())
			case pmetric.MetricTypeExponentialHistogram:
				assert.Equal(t, want.points, m.ExponentialHistogram().DataPoints().Len())
				assert.Equal(t, pmetric.AggregationTemporalityCumulative, m.ExponentialHistogram().AggregationTemporality())
			case pmetric.MetricTypeSummary:
				assert.Equal(t, want.points, m.Summary().DataPoints().Len())
			}
		}
		assert.Equal(t, want.metrics, names)
	}
}

func TestRecordsAreDividedByRun(t *testing.T) {
	sink := new(consumertest.LogsSink)
	next := route.Logs(sink, noGPUs)
	ld := plog.NewLogs()
	rl := ld.ResourceLogs().AppendEmpty()
	rl.Resource().Attributes().PutStr("service.name", "tuner")
	for _, scope := range []string{"a", "b"} {
		sl := rl.ScopeLogs().AppendEmpty()
		sl.Scope().SetName(scope)
		for _, run := range []string{"r", "s", ""} {
			record := sl.LogRecords().AppendEmpty()
			record.Body().SetStr(scope + run)
			if run != "" {
				record.Attributes().PutStr("ml.run.id", run)
			}
		}
	}
	require.NoError(t, next.ConsumeLogs(t.Context(), ld))
	got := map[string][]string{}
	for _, call := range sink.AllLogs() {
		for _, rl := range call.ResourceLogs().All() {
			at, _ := rl.Resource().Attributes().Get("ml.route")
			for _, sl := range rl.ScopeLogs().All() {
				for _, record := range sl.LogRecords().All() {
					got[at.Str()] = append(got[at.Str()], sl.Scope().Name()+":"+record.Body().Str())
				}
			}
		}
	}
	assert.Equal(t, map[string][]string{
		"r": {"a:ar", "b:br"}, "s": {"a:as", "b:bs"}, "tuner": {"a:a", "b:b"},
	}, got)
}

// A request whose every span names another run makes a bounded number of copies
// and calls, and no span is lost.
func TestHostileRequestsAreBounded(t *testing.T) {
	text := strings.Repeat("x", 100_000)
	for name, test := range map[string]struct {
		resource map[string]any
		copies   int
	}{
		"small resource": {map[string]any{"service.name": "a"}, 256},
		"large resource": {map[string]any{"service.name": "a", "text": text}, 41},
		"named resource": {map[string]any{"service.name": "a", "ml.run.id": "own"}, 256},
	} {
		t.Run(name, func(t *testing.T) {
			list := make([]string, 5000)
			for i := range list {
				list[i] = fmt.Sprintf("a/%d run-%d", i, i)
			}
			var r recorder
			require.NoError(t, r.traces(t).ConsumeTraces(t.Context(), spans(test.resource, list...)))
			resources, seen := 0, 0
			for _, call := range r.calls {
				resources += len(call.resources)
				for _, resource := range call.resources {
					seen += len(resource.spans)
					if run, ok := resource.attrs["ml.run.id"]; ok && run != "own" {
						assert.Len(t, resource.spans, 1, "a span has another's run")
					}
				}
			}
			assert.Equal(t, test.copies+1, resources)
			assert.Equal(t, len(list), seen)
			assert.LessOrEqual(t, len(r.calls), 257)
		})
	}
	t.Run("many resources", func(t *testing.T) {
		td := ptrace.NewTraces()
		for i := range 3000 {
			addSpans(td, map[string]any{"ml.run.id": fmt.Sprintf("run-%d", i)}, "a/1")
		}
		var r recorder
		require.NoError(t, r.traces(t).ConsumeTraces(t.Context(), td))
		assert.Len(t, r.calls, 257)
		last := r.calls[256]
		assert.Nil(t, last.route, "what is of several routes names none")
		assert.Len(t, last.resources, 3000-256)
		for _, resource := range last.resources {
			assert.Equal(t, resource.attrs["ml.run.id"], resource.attrs["ml.route"])
		}
	})
}

// load_balancing repeats a resource for each trace. Where that would be much, the
// copies are made before its queue, and calls stay small.
func TestLargeResourcesOfManyTraces(t *testing.T) {
	for name, test := range map[string]struct {
		text, spans, traces int
		calls, resources    int
	}{
		"small resource":    {100, 1000, 100, 1, 1},
		"one trace":         {100_000, 1000, 1, 1, 1},
		"a trace each":      {1000, 1000, 1000, 2, 1000},
		"large resource":    {400_000, 100, 100, 50, 100},
		"very large, a few": {900_000, 4, 2, 2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			td := spans(map[string]any{"service.name": "a", "text": strings.Repeat("x", test.text)}, slices.Repeat([]string{"s/1"}, test.spans)...)
			for i, span := range td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
				trace := i * test.traces / test.spans
				span.SetTraceID(pcommon.TraceID{1, byte(trace >> 8), byte(trace)})
			}
			var r recorder
			require.NoError(t, r.traces(t).ConsumeTraces(t.Context(), td))
			resources, seen := 0, 0
			for _, call := range r.calls {
				assert.Equal(t, []string{"a"}, call.route)
				resources += len(call.resources)
				for _, resource := range call.resources {
					seen += len(resource.spans)
				}
			}
			assert.Len(t, r.calls, test.calls)
			assert.Equal(t, test.resources, resources)
			assert.Equal(t, test.spans, seen)
		})
	}
}

// A resource of 400 kB with 60,000 traces would be 24 GB.
func TestCopiesAreBounded(t *testing.T) {
	td := spans(map[string]any{"text": strings.Repeat("x", 400_000)}, slices.Repeat([]string{"s/1"}, 60_000)...)
	for i, span := range td.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
		span.SetTraceID(pcommon.TraceID{1, byte(i >> 8), byte(i)})
	}
	var r recorder
	err := r.traces(t).ConsumeTraces(t.Context(), td)
	require.ErrorContains(t, err, "too large for its number of traces")
	assert.True(t, consumererror.IsPermanent(err))
	assert.Empty(t, r.calls)
}

// FuzzNothingIsLost divides requests of any shape: every span stays once, under
// its scope, and no resource has spans of another run than its own.
func FuzzNothingIsLost(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Add([]byte{0xff, 0, 0xff, 3, 0x81, 7})
	f.Fuzz(func(t *testing.T, data []byte) {
		runs := []string{"", " r", " s", " t?", " r?", " \xff", " has space"}
		td := ptrace.NewTraces()
		var list, want []string
		attrs := map[string]any{}
		end := func() {
			addSpans(td, attrs, list...)
			list, attrs = nil, map[string]any{}
		}
		for i, b := range data {
			if b&0x80 != 0 {
				end()
				attrs = []map[string]any{{}, {"service.name": "a"}, {"ml.run.id": "r"}, {"ml.route": "x"}, {"ml.run.id": int64(7)}, {"ml.route": int64(1)}}[int(b&0x7f)%6]
				continue
			}
			name := fmt.Sprintf("%d/%d", int(b)/16, i)
			list, want = append(list, name+runs[int(b)%len(runs)]), append(want, name)
		}
		end()
		var r recorder
		require.NoError(t, r.traces(t).ConsumeTraces(t.Context(), td))
		var got []string
		for _, call := range r.calls {
			for _, resource := range call.resources {
				got = append(got, resource.spans...)
				assert.Contains(t, resource.attrs, "ml.route")
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		assert.Equal(t, want, got)
	})
}
