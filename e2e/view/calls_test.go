package view_test

import (
	"encoding/binary"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
	"github.com/otelcol-ml/otelcol-ml/e2e/view"
)

// timedSpans makes spans with times in seconds since its begin.
type timedSpans struct {
	t     *testing.T
	begin time.Time
	last  uint64
}

// trace returns a trace without spans.
func (s *timedSpans) trace() pcommon.TraceID {
	s.last++
	var id pcommon.TraceID
	binary.BigEndian.PutUint64(id[:], s.last)
	return id
}

// add adds a span of a service to td. It returns the span's id, for those below it.
func (s *timedSpans) add(td ptrace.Traces, trace pcommon.TraceID, parent pcommon.SpanID, service, name string, kind ptrace.SpanKind, from, to float64, attributes map[string]any) ptrace.Span {
	s.last++
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", service)
	rs.Resource().Attributes().PutStr("service.instance.id", service+"-1")
	span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	var id pcommon.SpanID
	binary.BigEndian.PutUint64(id[:], s.last)
	span.SetTraceID(trace)
	span.SetSpanID(id)
	span.SetParentSpanID(parent)
	span.SetName(name)
	span.SetKind(kind)
	at := func(seconds float64) pcommon.Timestamp {
		return pcommon.NewTimestampFromTime(s.begin.Add(time.Duration(seconds * float64(time.Second))))
	}
	span.SetStartTimestamp(at(from))
	span.SetEndTimestamp(at(to))
	require.NoError(s.t, span.Attributes().FromRaw(attributes))
	return span
}

// call is a call of 2 seconds whose client measured a wait of 0.5, the encoding of
// its arguments, 0.25, and the time in the function, 1.
func (s *timedSpans) call(td ptrace.Traces, service, function string) {
	span := s.add(td, s.trace(), pcommon.SpanID{}, service, "snakepit.grpc.call", ptrace.SpanKindClient, 0, 2, nil)
	stop := span.Events().AppendEmpty()
	stop.SetName("snakepit.call.stop")
	stop.SetTimestamp(span.EndTimestamp())
	require.NoError(s.t, stop.Attributes().FromRaw(map[string]any{
		"library": "numpy", "function": function, "duration": int64(2e9),
		"queue_time": int64(5e8), "serialize_time": int64(25e7), "python_time": int64(1e9),
	}))
}

// agent is a request of 10 seconds to an agent that asks a model for 6 of them, of
// which the model's server knows 5, of which 2 are a wait, and another process for 2.
func (s *timedSpans) agent(td ptrace.Traces) {
	trace := s.trace()
	root := s.add(td, trace, pcommon.SpanID{}, "agent", "invoke_agent", ptrace.SpanKindInternal, 0, 10, map[string]any{"gen_ai.operation.name": "invoke_agent"})
	chat := s.add(td, trace, root.SpanID(), "agent", "chat", ptrace.SpanKindClient, 1, 7, map[string]any{"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"})
	s.add(td, trace, chat.SpanID(), "server", "chat", ptrace.SpanKindServer, 1.5, 6.5, map[string]any{
		"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.latency.time_in_queue": 2.0, "gen_ai.usage.output_tokens": 1,
	})
	s.add(td, trace, root.SpanID(), "agent", "execute_tool", ptrace.SpanKindClient, 7.5, 9.5, map[string]any{"gen_ai.operation.name": "execute_tool"})
}

// cpuTime is the counter of the CPU time of a service's process.
func cpuTime(service string, seconds float64, at time.Time) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", service)
	rm.Resource().Attributes().PutStr("service.instance.id", service+"-1")
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("process.cpu.time")
	m.SetUnit("s")
	sum := m.SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	p := sum.DataPoints().AppendEmpty()
	p.SetTimestamp(pcommon.NewTimestampFromTime(at))
	p.SetDoubleValue(seconds)
	p.Attributes().PutStr("cpu.mode", "user")
	return md
}

// boundBy has the seconds of ml.call.time by cause.
func boundBy(samples []harness.Sample, labels harness.Labels) map[string]float64 {
	seconds := map[string]float64{}
	for _, sample := range harness.Select(samples, "ml_call_time_seconds_total", labels) {
		seconds[sample.Labels["ml_call_bound"]] += sample.Value
	}
	return seconds
}

// fractionsOf are the fractions of the sum.
func fractionsOf(seconds map[string]float64) map[string]float64 {
	sum, of := 0.0, map[string]float64{}
	for value := range maps.Values(seconds) {
		sum += value
	}
	for cause, value := range seconds {
		of[cause] = value / sum
	}
	return of
}

// TestWhatCallsAreBoundBy sends calls and requests whose time was spent on known
// causes. Prometheus' endpoint has their seconds, and the page their fractions.
func TestWhatCallsAreBoundBy(t *testing.T) {
	c := startCollector(t)
	url := "http://" + c.Address(t, "receivers::otlp::protocols::http")
	spans := &timedSpans{t: t, begin: time.Now().Add(-20 * time.Second)}
	send := func(t require.TestingT, td ptrace.Traces) {
		require.NoError(t, harness.PostTraces(spans.t.Context(), url+"/v1/traces", td))
	}
	// The process of one service uses 0.9 cores; nothing is known of the others'.
	for seconds := 0.0; seconds <= 10; seconds += 10 {
		require.NoError(t, harness.PostMetrics(t.Context(), url+"/v1/metrics", cpuTime("computes", 100+0.9*seconds, spans.begin.Add(time.Duration(seconds)*time.Second))))
	}
	require.EventuallyWithT(t, func(t2 *assert.CollectT) {
		td := ptrace.NewTraces()
		spans.call(td, "computes", "probe")
		send(t2, td)
		samples, err := harness.Scrape(t.Context(), c.Address(t, "exporters::prometheus"))
		require.NoError(t2, err)
		assert.Contains(t2, boundBy(samples, harness.Labels{"ml_function": "probe"}), "cpu", "the CPU use is known")
	}, time.Minute, 500*time.Millisecond)

	const calls = 4
	td := ptrace.NewTraces()
	for range calls {
		spans.call(td, "computes", "embed")
		spans.call(td, "unmeasured", "embed")
		spans.add(td, spans.trace(), pcommon.SpanID{}, "unmeasured", "snakepit.grpc.call", ptrace.SpanKindInternal, 0, 1, map[string]any{"snakepit.command": "noop"})
		spans.agent(td)
		spans.add(td, spans.trace(), pcommon.SpanID{}, "chat", "chat", ptrace.SpanKindClient, 0, 3, map[string]any{"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"})
	}
	send(t, td)

	wanted := []struct {
		service string
		labels  harness.Labels
		// seconds are those of one call.
		seconds map[string]float64
	}{
		{"computes", harness.Labels{"ml_function": "embed"}, map[string]float64{"queue": 0.5, "serialize": 0.25, "cpu": 1, "network": 0.25}},
		{"unmeasured", harness.Labels{"ml_function": "embed"}, map[string]float64{"queue": 0.5, "serialize": 0.25, "unknown": 1, "network": 0.25}},
		{"unmeasured", harness.Labels{"ml_function": "noop"}, map[string]float64{"unknown": 1}},
		{"agent", harness.Labels{"ml_operation": "invoke_agent"}, map[string]float64{"model_server": 5, "network": 3, "unknown": 2}},
		{"server", harness.Labels{"gen_ai_request_model": "m"}, map[string]float64{"queue": 2, "unknown": 3}},
		{"chat", harness.Labels{"gen_ai_request_model": "m"}, map[string]float64{"model_server": 3}},
	}
	require.EventuallyWithT(t, func(t2 *assert.CollectT) {
		samples, err := harness.Scrape(t.Context(), c.Address(t, "exporters::prometheus"))
		require.NoError(t2, err)
		state, err := view.Read(t.Context(), c.Address(t, "exporters::ml_view"))
		require.NoError(t2, err)
		for _, want := range wanted {
			labels := maps.Clone(want.labels)
			labels["job"] = want.service
			have := boundBy(samples, labels)
			for cause := range have {
				have[cause] /= calls
			}
			assert.InDeltaMapValues(t2, want.seconds, have, 1e-9, "%v: %v", labels, have)
			fractions := shownBound(state, want.service, want.labels["ml_function"])
			if want.service == "agent" {
				assert.Empty(t2, fractions, "the page has no row for an agent")
				continue
			}
			assert.InDeltaMapValues(t2, fractionsOf(want.seconds), fractions, 1e-9, "%v: %v", labels, fractions)
		}
	}, time.Minute, 500*time.Millisecond)
}

// shownBound is what the page says of a service's calls of a function, or of its
// requests to a model where that is "".
func shownBound(state *view.State, service, function string) map[string]float64 {
	if function == "" {
		at := slices.IndexFunc(state.Models, func(m view.Model) bool { return m.Service == service })
		if at < 0 {
			return nil
		}
		return state.Models[at].Bound
	}
	at := slices.IndexFunc(state.Calls, func(c view.Call) bool { return c.Service == service && c.Function == function })
	if at < 0 {
		return nil
	}
	return state.Calls[at].Bound
}
