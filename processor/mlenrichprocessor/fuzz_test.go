package mlenrichprocessor

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/internal/testing/otlpnest"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/metadata"
)

// maxAdded is the most attributes that anything may gain: the canonical names
// and the dynamic ones.
const maxAdded = 96

// choices turns fuzz bytes into decisions. At its end everything is 0.
type choices struct{ data []byte }

func (c *choices) next(n int) int {
	if len(c.data) == 0 {
		return 0
	}
	v := int(c.data[0])
	c.data = c.data[1:]
	return v % n
}

var fuzzKeys = func() []string {
	keys := vocabulary.Aliasable()
	for _, client := range vocabulary.Tables() {
		for _, aliases := range [][]table.Alias{client.Resource, client.Span, client.Point} {
			for _, alias := range aliases {
				keys = append(keys, alias.Source)
			}
		}
		for _, alias := range client.SpanMaps {
			keys = append(keys, alias.Source)
		}
	}
	keys = append(keys, "task.a", "task. b", "val.f1", "task."+strings.Repeat("x", 70), "loss_at_step_1", "unheard.of",
		"service.instance.id", "process.pid", "otelTraceID", "otelSpanID", "hw.id", "team",
		"a.b", "a_b", "job", "le", "__name__", "", "ml_run_id", mlattr.LabelConflict,
		"host.id", "container.id", "k8s.pod.uid", "process.vpid", "process.creation.time", "kind", "nvidia.gpu.index", mlattr.GPUShared,
		mlattr.CorrelationSource, mlattr.CorrelationConflict, mlattr.RunInferred, mlattr.GPUJoin, mlattr.ThroughputBasis,
		mlattr.Side, mlattr.UsageCounted, mlattr.DecodePerSecond, mlattr.PrefillPerSecond, mlattr.SequencePerSecond)
	slices.Sort(keys)
	return slices.Compact(keys)
}()

var fuzzNames = []string{
	"train", "GPT.forward", "dataloader.next", "AdamW.step", "training_controller.run_forward_backward", "hf_model.forward",
	"sampling_backend.sample", "snakepit.ml.inference", "snakepit.ml.train_step", "snakepit.grpc.x", "BridgeService/Ping",
	"training_epoch", "epoch_7", "batch_3", "validation_1", "validation", "Session.send_message", "Planner.reply", "start", "",
	"epoch_99999999999999999999", "chat", "invoke_agent a", "Session.stop",
}

var fuzzTexts = []string{
	"a", "b", "0", "none", "local", "12", "4.5", "NaN", "-1", "has space", "", "\xff", strings.Repeat("é", 80), "{:cuda, 0}",
	"a0000000000000000000000000000001", "b000000000000001", "StopIteration", "trace", "session=who",
	"45.6ms", "2023-11-14T22:13:20.5Z", `{"input": 7, "output_tokens": 3, "prompt_tokens_details": {"cached_tokens": 2}}`, `{"input": -1}`, `"LLM"`,
}

var fuzzServices = []string{"vllm", "tgi", "torchtel", "tuft", "snakepit", "snakepit.python.bridge", "taskweaver.otlp.tracer", "shop", "unknown_service", ""}

func (c *choices) value(v pcommon.Value) {
	switch c.next(8) {
	case 0, 1, 2:
		v.SetStr(fuzzTexts[c.next(len(fuzzTexts))])
	case 3, 4:
		v.SetInt([]int64{0, 1, 2, -1, 7, math.MaxInt64, math.MinInt64}[c.next(7)])
	case 5:
		v.SetDouble([]float64{0, 1, 0.5, -3, math.NaN(), math.Inf(1), math.MaxFloat64, 1e-300}[c.next(8)])
	case 6:
		v.SetBool(c.next(2) == 0)
	case 7:
		otlpnest.Value(v, []int{1, 2, 63, 64, 65, 3000}[c.next(6)])
	}
}

func (c *choices) attrs(m pcommon.Map, most int) {
	for range c.next(most) {
		c.value(m.PutEmpty(fuzzKeys[c.next(256)*len(fuzzKeys)/256]))
	}
}

func (c *choices) resource(m pcommon.Map) {
	if service := fuzzServices[c.next(len(fuzzServices))]; service != "" {
		m.PutStr("service.name", service)
	}
	c.attrs(m, 6)
}

func (c *choices) traceID() pcommon.TraceID {
	n := byte(c.next(4))
	if n == 0 {
		return pcommon.TraceID{}
	}
	return pcommon.TraceID{0: 0xa0, 15: n}
}

func (c *choices) spanID(n int) pcommon.SpanID {
	if n == 0 {
		return pcommon.SpanID{}
	}
	return pcommon.SpanID{0: 0xb0, 7: byte(n)}
}

func (c *choices) traces() ptrace.Traces {
	td := ptrace.NewTraces()
	for range 1 + c.next(3) {
		rs := td.ResourceSpans().AppendEmpty()
		c.resource(rs.Resource().Attributes())
		ss := rs.ScopeSpans().AppendEmpty()
		for range c.next(6) {
			span := ss.Spans().AppendEmpty()
			span.SetName(fuzzNames[c.next(len(fuzzNames))])
			span.SetTraceID(c.traceID())
			span.SetSpanID(c.spanID(c.next(8)))
			span.SetParentSpanID(c.spanID(c.next(8)))
			span.SetStartTimestamp([]pcommon.Timestamp{0, 5, 1e9, math.MaxUint64}[c.next(4)])
			span.SetEndTimestamp([]pcommon.Timestamp{2e9, 0, 1e9, math.MaxUint64}[c.next(4)])
			span.Status().SetCode(ptrace.StatusCode(c.next(3)))
			span.SetKind(ptrace.SpanKind(c.next(6)))
			for range c.next(3) {
				link := span.Links().AppendEmpty()
				link.SetTraceID(c.traceID())
				link.SetSpanID(c.spanID(c.next(8)))
			}
			c.attrs(span.Attributes(), 8)
		}
	}
	return td
}

func (c *choices) metrics() pmetric.Metrics {
	names := []string{"train.step.count", "tuft.x", "snakepit.x", "prompt_size", "nvidia.gpu.workload.memory.usage", "up",
		"nvidia.gpu.process.memory.usage", "nvidia.gpu.workload.utilization", "hw.gpu.memory.limit", "hw.gpu.memory.usage",
		"nvidia.gpu.memory.reserved", "gpu.memory.bytes", "ml.run.info", "tuft.resource.gpu.utilization_percent",
		"vllm:generation_tokens_total", "gen_ai.client.token.usage", "tuft.training.tokens_per_second", "ml.token.throughput"}
	md := pmetric.NewMetrics()
	for range 1 + c.next(3) {
		rm := md.ResourceMetrics().AppendEmpty()
		c.resource(rm.Resource().Attributes())
		sm := rm.ScopeMetrics().AppendEmpty()
		for range c.next(5) {
			m := sm.Metrics().AppendEmpty()
			m.SetName(names[c.next(len(names))])
			kind, temporality := c.next(6), pmetric.AggregationTemporality(c.next(3))
			for n := 1 + c.next(4); n > 0; n-- {
				c.point(m, kind, temporality)
			}
		}
	}
	return md
}

// point adds a point to a metric, which is of that kind from its first on.
func (c *choices) point(m pmetric.Metric, kind int, temporality pmetric.AggregationTemporality) {
	begun := m.Type() != pmetric.MetricTypeEmpty
	times := []pcommon.Timestamp{0, 1e9, 2e9, 2e9 + 1, 5e9, math.MaxUint64}
	start, at := times[c.next(len(times))], times[c.next(len(times))]
	value := []float64{0, 1, 5, 1e6, -1, math.NaN(), math.Inf(1), math.MaxFloat64, 1e-300}[c.next(9)]
	count := []uint64{0, 1, 2, math.MaxUint64}[c.next(4)]
	var attrs pcommon.Map
	exemplars := pmetric.NewExemplarSlice()
	switch kind {
	case 0, 5:
		if !begun {
			m.SetEmptyGauge()
		}
		p := m.Gauge().DataPoints().AppendEmpty()
		exemplars = p.Exemplars()
		p.SetTimestamp(at)
		p.SetDoubleValue(value)
		attrs = p.Attributes()
	case 1:
		if !begun {
			m.SetEmptySum().SetAggregationTemporality(temporality)
		}
		p := m.Sum().DataPoints().AppendEmpty()
		exemplars = p.Exemplars()
		p.SetStartTimestamp(start)
		p.SetTimestamp(at)
		if count < 2 {
			p.SetIntValue(int64(count) * math.MaxInt64)
		} else {
			p.SetDoubleValue(value)
		}
		attrs = p.Attributes()
	case 2:
		if !begun {
			m.SetEmptyHistogram().SetAggregationTemporality(temporality)
		}
		p := m.Histogram().DataPoints().AppendEmpty()
		exemplars = p.Exemplars()
		p.SetStartTimestamp(start)
		p.SetTimestamp(at)
		p.SetSum(value)
		p.SetCount(count)
		attrs = p.Attributes()
	case 3:
		if !begun {
			m.SetEmptyExponentialHistogram().SetAggregationTemporality(temporality)
		}
		p := m.ExponentialHistogram().DataPoints().AppendEmpty()
		exemplars = p.Exemplars()
		p.SetStartTimestamp(start)
		p.SetTimestamp(at)
		p.SetSum(value)
		p.SetCount(count)
		attrs = p.Attributes()
	default:
		if !begun {
			m.SetEmptySummary()
		}
		p := m.Summary().DataPoints().AppendEmpty()
		p.SetStartTimestamp(start)
		p.SetTimestamp(at)
		p.SetSum(value)
		p.SetCount(count)
		attrs = p.Attributes()
	}
	c.attrs(attrs, 3)
	for range c.next(3) {
		x := exemplars.AppendEmpty()
		x.SetTraceID(c.traceID())
		x.SetSpanID(c.spanID(c.next(8)))
		c.attrs(x.FilteredAttributes(), 3)
	}
}

func (c *choices) logs() plog.Logs {
	ld := plog.NewLogs()
	for range 1 + c.next(3) {
		rl := ld.ResourceLogs().AppendEmpty()
		c.resource(rl.Resource().Attributes())
		sl := rl.ScopeLogs().AppendEmpty()
		for range c.next(6) {
			record := sl.LogRecords().AppendEmpty()
			record.SetTraceID(c.traceID())
			record.SetSpanID(c.spanID(c.next(8)))
			record.SetTimestamp(pcommon.Timestamp(c.next(3)) * 1e9)
			record.SetSeverityNumber(plog.SeverityNumber(c.next(25)))
			c.value(record.Body())
			c.attrs(record.Attributes(), 6)
		}
	}
	return ld
}

// tracesMaps, metricsMaps and logsMaps list every attribute map there is.
func tracesMaps(td ptrace.Traces) []pcommon.Map {
	var all []pcommon.Map
	for _, rs := range td.ResourceSpans().All() {
		all = append(all, rs.Resource().Attributes())
		for _, ss := range rs.ScopeSpans().All() {
			for _, span := range ss.Spans().All() {
				all = append(all, span.Attributes())
			}
		}
	}
	return all
}

func metricsMaps(md pmetric.Metrics) []pcommon.Map {
	var all []pcommon.Map
	for _, rm := range md.ResourceMetrics().All() {
		all = append(all, rm.Resource().Attributes())
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				eachPoint(m, func(point pcommon.Map) { all = append(all, point) })
				all = append(all, exemplarMaps(m)...)
			}
		}
	}
	return all
}

// exemplarMaps lists the attributes of a metric's exemplars.
func exemplarMaps(m pmetric.Metric) []pcommon.Map {
	var all []pcommon.Map
	add := func(exemplars pmetric.ExemplarSlice) {
		for _, x := range exemplars.All() {
			all = append(all, x.FilteredAttributes())
		}
	}
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		for _, p := range m.Gauge().DataPoints().All() {
			add(p.Exemplars())
		}
	case pmetric.MetricTypeSum:
		for _, p := range m.Sum().DataPoints().All() {
			add(p.Exemplars())
		}
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			add(p.Exemplars())
		}
	case pmetric.MetricTypeExponentialHistogram:
		for _, p := range m.ExponentialHistogram().DataPoints().All() {
			add(p.Exemplars())
		}
	case pmetric.MetricTypeEmpty, pmetric.MetricTypeSummary:
	}
	return all
}

// takeThroughput removes what was added as a metric of its own, and asserts
// that each rate is a number and has a point of the client's that it is of.
func takeThroughput(t *testing.T, md pmetric.Metrics) {
	t.Helper()
	for _, rm := range md.ResourceMetrics().All() {
		points, rated := 0, 0
		rm.ScopeMetrics().RemoveIf(func(sm pmetric.ScopeMetrics) bool {
			if sm.Scope().Name() != metadata.ScopeName {
				for _, m := range sm.Metrics().All() {
					eachPoint(m, func(pcommon.Map) { points++ })
				}
				return false
			}
			for _, m := range sm.Metrics().All() {
				if m.Type() != pmetric.MetricTypeGauge {
					continue // of the GPUs
				}
				for _, p := range m.Gauge().DataPoints().All() {
					rated++
					require.False(t, math.IsNaN(p.DoubleValue()) || math.IsInf(p.DoubleValue(), 0) || p.DoubleValue() < 0, p.DoubleValue())
					require.NotZero(t, p.Timestamp())
				}
			}
			return true
		})
		require.LessOrEqual(t, rated, points)
	}
}

func logsMaps(ld plog.Logs) []pcommon.Map {
	var all []pcommon.Map
	for _, rl := range ld.ResourceLogs().All() {
		all = append(all, rl.Resource().Attributes())
		for _, sl := range rl.ScopeLogs().All() {
			for _, record := range sl.LogRecords().All() {
				all = append(all, record.Attributes())
			}
		}
	}
	return all
}

// checkOnlyAdded asserts that what came in is there as it was, and that what
// was added is little and sound.
func checkOnlyAdded(t *testing.T, in, out []pcommon.Map) {
	t.Helper()
	require.Len(t, out, len(in))
	for i := range in {
		for key, value := range in[i].All() {
			got, ok := out[i].Get(key)
			require.True(t, ok, "%q is gone", key)
			require.True(t, same(value, got), "%q was %v and is %v", key, value.AsRaw(), got.AsRaw())
		}
		require.LessOrEqual(t, out[i].Len()-in[i].Len(), maxAdded)
		for key, value := range out[i].All() {
			if _, had := in[i].Get(key); had {
				continue
			}
			if value.Type() == pcommon.ValueTypeDouble {
				require.False(t, math.IsNaN(value.Double()) || math.IsInf(value.Double(), 0), "%q is %v", key, value.Double())
			}
			if value.Type() == pcommon.ValueTypeStr {
				require.LessOrEqual(t, len(value.Str()), mlattr.MaxText, key)
				require.NotEmpty(t, value.Str(), key)
			}
			for _, id := range keyNames {
				require.False(t, key == id && !mlattr.ValidID(value.Str()), "%q is %q", key, value.Str())
			}
		}
		seen := make(map[string]bool, out[i].Len())
		for key := range out[i].All() {
			require.False(t, seen[key], "%q is there twice", key)
			seen[key] = true
		}
	}
}

// checkEqual asserts that a second pass changed nothing.
func checkEqual(t *testing.T, first, second []pcommon.Map) {
	t.Helper()
	require.Len(t, second, len(first))
	for i := range first {
		added := diff(second[i], first[i])
		assert.Empty(t, added, "a second pass added to item %d, which had %v", i, slices.Collect(maps.Keys(first[i].AsRaw())))
		assert.Empty(t, diff(first[i], second[i]), "a second pass removed or changed")
	}
	if t.Failed() {
		t.FailNow()
	}
}

// diff lists what a has and b has not.
func diff(a, b pcommon.Map) []string {
	var lines []string
	for key, value := range a.All() {
		if other, ok := b.Get(key); !ok || !same(value, other) {
			lines = append(lines, fmt.Sprintf("%s=%v", key, value.AsRaw()))
		}
	}
	return lines
}

func same(a, b pcommon.Value) bool {
	if a.Type() == pcommon.ValueTypeDouble && b.Type() == pcommon.ValueTypeDouble && math.IsNaN(a.Double()) {
		return math.IsNaN(b.Double())
	}
	return a.Equal(b)
}

func fuzzConfig() *Config {
	cfg := createDefaultConfig().(*Config)
	cfg.HashKey = "only-for-this-test"
	cfg.Aliases = map[string]string{"unheard.of": mlattr.SessionID}
	cfg.ResourceLabels = []string{"team", mlattr.Cluster}
	return cfg
}

func seed(f *testing.F) {
	f.Add([]byte{})
	for n := range 40 {
		data := make([]byte, 400)
		state := uint32(n + 1)
		for i := range data {
			state = state*1664525 + 1013904223
			data[i] = byte(state >> 24)
		}
		f.Add(data)
	}
}

// checkRestAlike asserts that everything but the attributes of resources and items
// is as it came: names, values, times, bodies, events, links and the order.
func checkRestAlike[D any](t *testing.T, in, out D, copyTo func(D) D, maps func(D) []pcommon.Map, marshal func(D) ([]byte, error)) {
	t.Helper()
	bytes := func(data D) []byte {
		rest := copyTo(data)
		for _, m := range maps(rest) {
			m.Clear()
		}
		text, err := marshal(rest)
		require.NoError(t, err)
		return text
	}
	require.Equal(t, bytes(in), bytes(out), "more than attributes has changed")
}

func checkTraces(t *testing.T, in, out ptrace.Traces) {
	t.Helper()
	checkOnlyAdded(t, tracesMaps(in), tracesMaps(out))
	checkRestAlike(t, in, out, func(td ptrace.Traces) ptrace.Traces {
		to := ptrace.NewTraces()
		td.CopyTo(to)
		return to
	}, tracesMaps, (&ptrace.ProtoMarshaler{}).MarshalTraces)
}

func checkMetrics(t *testing.T, in, out pmetric.Metrics) {
	t.Helper()
	checkOnlyAdded(t, metricsMaps(in), metricsMaps(out))
	checkRestAlike(t, in, out, func(md pmetric.Metrics) pmetric.Metrics {
		to := pmetric.NewMetrics()
		md.CopyTo(to)
		return to
	}, metricsMaps, (&pmetric.ProtoMarshaler{}).MarshalMetrics)
}

func checkLogs(t *testing.T, in, out plog.Logs) {
	t.Helper()
	checkOnlyAdded(t, logsMaps(in), logsMaps(out))
	checkRestAlike(t, in, out, func(ld plog.Logs) plog.Logs {
		to := plog.NewLogs()
		ld.CopyTo(to)
		return to
	}, logsMaps, (&plog.ProtoMarshaler{}).MarshalLogs)
}

func FuzzConsumeTraces(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		in := (&choices{data}).traces()
		p := start(t, fuzzConfig())
		out := p.sendTraces(t, in)
		checkTraces(t, in, out)
		checkEqual(t, tracesMaps(out), tracesMaps(p.sendTraces(t, out)))
		checkEqual(t, tracesMaps(out), tracesMaps(start(t, fuzzConfig()).sendTraces(t, out)))
	})
}

func FuzzConsumeMetrics(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &choices{data}
		in, before := c.metrics(), c.traces()
		p := start(t, fuzzConfig())
		p.sendTraces(t, before)
		out := p.sendMetrics(t, in)
		checkEqual(t, metricsMaps(out), metricsMaps(p.sendMetrics(t, out)))
		checkEqual(t, metricsMaps(out), metricsMaps(start(t, fuzzConfig()).sendMetrics(t, out)))
		takeThroughput(t, out)
		checkMetrics(t, in, out)
	})
}

func FuzzConsumeLogs(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &choices{data}
		in, before := c.logs(), c.traces()
		p := start(t, fuzzConfig())
		p.sendTraces(t, before)
		out := p.sendLogs(t, in)
		checkLogs(t, in, out)
		checkEqual(t, logsMaps(out), logsMaps(p.sendLogs(t, out)))
		checkEqual(t, logsMaps(out), logsMaps(start(t, fuzzConfig()).sendLogs(t, out)))
	})
}
