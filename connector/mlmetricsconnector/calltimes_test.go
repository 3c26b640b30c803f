package mlmetricsconnector

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// callTimes has the seconds of ml.call.time by cause.
func callTimes(t *testing.T, md pmetric.Metrics) map[string]float64 {
	t.Helper()
	times := map[string]float64{}
	for _, p := range find(t, md, "ml.call.time").Sum().DataPoints().All() {
		cause, _ := p.Attributes().Get("ml.call.bound")
		times[cause.Str()] += p.DoubleValue()
	}
	return times
}

// cpuReading is a reading of the CPU use of process 7 on the host n1.
func cpuReading(name, state string, value float64, now time.Time) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("host.name", "n1")
	rm.Resource().Attributes().PutInt("process.pid", 7)
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName(name)
	p := m.SetEmptySum().DataPoints().AppendEmpty()
	p.SetTimestamp(pcommon.NewTimestampFromTime(now))
	p.Attributes().PutStr("state", state)
	p.SetDoubleValue(value)
	return md
}

func TestWorkIsBoundByWhatIsBusy(t *testing.T) {
	gpu := func(holder string, utilization float64) func(*testing.T, *run) {
		return func(t *testing.T, r *run) {
			r.read(t, gpuMetrics{host: "n1", id: "GPU-a", run: holder, memory: 1, utilization: utilization})
		}
	}
	cpu := func(state string, cores float64) func(*testing.T, *run) {
		return func(t *testing.T, r *run) {
			r.metrics(t, cpuReading("process.cpu.time", state, 100, r.clock))
			r.clock = r.clock.Add(10 * time.Second)
			r.metrics(t, cpuReading("process.cpu.time", state, 100+10*cores, r.clock))
		}
	}
	type steps = []func(*testing.T, *run)
	for name, tt := range map[string]struct {
		readings steps
		later    time.Duration
		want     string
	}{
		"nothing is measured":            {nil, 0, "unknown"},
		"the run's GPU is busy":          {steps{gpu("run-a", 0.8)}, 0, "gpu"},
		"the service's GPU is busy":      {steps{gpu("run-b", 0.8)}, 0, "gpu"},
		"a GPU that nobody holds":        {steps{gpu("", 0.8)}, 0, "unknown"},
		"its process computes":           {steps{cpu("user", 0.9)}, 0, "cpu"},
		"its process waits":              {steps{cpu("wait", 0.9)}, 0, "unknown"},
		"its process does little":        {steps{cpu("user", 0.5)}, 0, "unknown"},
		"it feeds a GPU":                 {steps{gpu("run-a", 0.8), cpu("system", 1)}, 0, "gpu"},
		"it computes beside its GPU":     {steps{gpu("run-a", 0.2), cpu("user", 1)}, 0, "cpu"},
		"the readings are too long past": {steps{gpu("run-a", 0.8), cpu("user", 1)}, 6 * time.Minute, "unknown"},
		"a share of all cores": {steps{func(t *testing.T, r *run) {
			r.metrics(t, cpuReading("process.cpu.utilization", "user", 0.9, r.clock))
		}}, 0, "cpu"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t, createDefaultConfig().(*Config))
			r.resource = map[string]any{"host.name": "n1", "process.pid": 7}
			for _, read := range tt.readings {
				read(t, r)
			}
			r.after(t, tt.later)
			r.work(t, "sample", 2*time.Second)
			assert.Equal(t, map[string]float64{tt.want: 2}, callTimes(t, r.after(t, 0)))
		})
	}
}

// agentTrace is an agent that asks a model for 6 of its 10 seconds, 5 of which the
// model's server knows of, of which 2 are a wait, and another process for 2. Children
// come first.
func agentTrace(t *testing.T, trace byte) (spans []ptrace.Traces) {
	t.Helper()
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	add := func(service string, id, parent byte, kind ptrace.SpanKind, from, to float64, attributes map[string]any) {
		td := ptrace.NewTraces()
		rs := td.ResourceSpans().AppendEmpty()
		rs.Resource().Attributes().PutStr("service.name", service)
		span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		span.SetTraceID(pcommon.TraceID{trace})
		span.SetSpanID(pcommon.SpanID{id})
		if parent > 0 {
			span.SetParentSpanID(pcommon.SpanID{parent})
		}
		span.SetKind(kind)
		at := func(seconds float64) pcommon.Timestamp {
			return pcommon.NewTimestampFromTime(begin.Add(time.Duration(seconds * float64(time.Second))))
		}
		span.SetStartTimestamp(at(from))
		span.SetEndTimestamp(at(to))
		require.NoError(t, span.Attributes().FromRaw(attributes))
		spans = append(spans, td)
	}
	add("server", 4, 3, ptrace.SpanKindServer, 1.5, 6.5, map[string]any{
		"gen_ai.operation.name": "chat", "gen_ai.latency.time_in_queue": 2.0, "gen_ai.usage.output_tokens": 1,
	})
	add("agent", 3, 2, ptrace.SpanKindClient, 1, 7, map[string]any{"gen_ai.operation.name": "chat"})
	add("agent", 2, 1, ptrace.SpanKindInternal, 0.5, 7.5, map[string]any{"ml.operation": "chain"})
	add("agent", 5, 1, ptrace.SpanKindClient, 7.5, 9.5, map[string]any{"gen_ai.operation.name": "execute_tool"})
	add("agent", 1, 0, ptrace.SpanKindInternal, 0, 10, map[string]any{"gen_ai.operation.name": "invoke_agent"})
	return spans
}

// The times of an agent's calls are those of the agent, however the spans arrive, as
// long as children come before their parents or with them.
func TestTimesOfCallsReachTheAgent(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		r := newRun(t, createDefaultConfig().(*Config))
		const agents = 10
		for n := range byte(agents) {
			spans := agentTrace(t, n+1)
			for len(spans) > 0 {
				request := ptrace.NewTraces()
				count := 1 + random.IntN(len(spans))
				for _, i := range random.Perm(count) {
					spans[i].ResourceSpans().At(0).CopyTo(request.ResourceSpans().AppendEmpty())
				}
				require.NoError(t, r.connector.ConsumeTraces(t.Context(), request))
				if random.IntN(4) == 0 {
					require.NoError(t, r.connector.ConsumeTraces(t.Context(), request), "sent again")
				}
				spans = spans[count:]
			}
		}
		md := r.after(t, 0)
		byOperation := map[string]map[string]float64{}
		for _, rm := range md.ResourceMetrics().All() {
			service, _ := rm.Resource().Attributes().Get("service.name")
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					if m.Name() != "ml.call.time" {
						continue
					}
					for _, p := range m.Sum().DataPoints().All() {
						operation, _ := p.Attributes().Get("ml.operation")
						cause, _ := p.Attributes().Get("ml.call.bound")
						key := service.Str() + " " + operation.Str()
						if byOperation[key] == nil {
							byOperation[key] = map[string]float64{}
						}
						byOperation[key][cause.Str()] += p.DoubleValue() / agents
					}
				}
			}
		}
		want := map[string]map[string]float64{
			"server chat":        {"queue": 2, "unknown": 3},
			"agent invoke_agent": {"model_server": 5, "network": 3, "unknown": 2},
		}
		for key, times := range want {
			assert.InDeltaMapValues(t, times, byOperation[key], 1e-9, "%s, seed %d", key, seed)
		}
	}
}
