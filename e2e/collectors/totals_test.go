package collectors

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector"
	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor"
)

// flood is what many runs of several ranks send, a request for each rank and step: a forward
// pass, two optimizers, and a request to a model.
type flood struct {
	runs, ranks, steps int
	// service and run name what the identities of a rank are.
	service, run func(run, rank int) string
	// onSpan has the run on each span instead of the resource.
	onSpan bool
}

func (f *flood) send(t *testing.T, next func(ptrace.Traces)) {
	t.Helper()
	began := time.Now().Add(-time.Hour)
	id := uint32(0)
	for step := range f.steps {
		for run := range f.runs {
			for rank := range f.ranks {
				// All ranks take their steps at the same time, as they do.
				at := began.Add(time.Duration(step) * time.Second)
				td := ptrace.NewTraces()
				rs := td.ResourceSpans().AppendEmpty()
				rs.Resource().Attributes().PutStr("service.name", f.service(run, rank))
				rs.Resource().Attributes().PutStr("service.instance.id", fmt.Sprint(run, "-", rank))
				rs.Resource().Attributes().PutDouble("ml.tokens_per_step", 10)
				spans := rs.ScopeSpans().AppendEmpty().Spans()
				for n, phase := range []string{"forward", "optimizer", "optimizer", ""} {
					id++
					span := spans.AppendEmpty()
					span.SetTraceID(pcommon.TraceID{1, byte(id), byte(id >> 8), byte(id >> 16)})
					span.SetSpanID(pcommon.SpanID{2, byte(id), byte(id >> 8), byte(id >> 16)})
					span.SetStartTimestamp(pcommon.NewTimestampFromTime(at.Add(time.Duration(n) * 100 * time.Millisecond)))
					span.SetEndTimestamp(pcommon.NewTimestampFromTime(at.Add(time.Duration(n)*100*time.Millisecond + 90*time.Millisecond)))
					to := rs.Resource().Attributes()
					if f.onSpan {
						to = span.Attributes()
					}
					to.PutStr("ml.run.id", f.run(run, rank))
					to.PutInt("ml.rank.global", int64(rank))
					to.PutStr("host.name", fmt.Sprint("node-", rank))
					if phase != "" {
						span.Attributes().PutStr("ml.phase", phase)
						continue
					}
					span.Attributes().PutStr("gen_ai.operation.name", "chat")
					span.Attributes().PutStr("gen_ai.request.model", fmt.Sprint("model-", run))
					span.Attributes().PutInt("gen_ai.usage.input_tokens", 7)
				}
				next(td)
			}
		}
	}
}

// The totals over all labels are those that were sent, whatever ml_guard admits.
func TestTotalsOfAFlood(t *testing.T) {
	one := func(int, int) string { return "trainer" }
	ofRun := func(run, _ int) string { return fmt.Sprint("run-", run) }
	for name, f := range map[string]flood{
		"runs":             {runs: 20, ranks: 4, steps: 6, service: one, run: ofRun},
		"runs of spans":    {runs: 20, ranks: 4, steps: 6, service: one, run: ofRun, onSpan: true},
		"services":         {runs: 20, ranks: 4, steps: 6, service: ofRun, run: ofRun},
		"services, a run":  {runs: 20, ranks: 4, steps: 6, service: ofRun, run: one, onSpan: true},
		"ranks of one run": {runs: 1, ranks: 40, steps: 6, service: one, run: ofRun},
	} {
		for _, maxRuns := range []int{3, 1000} {
			for _, limits := range []map[string]any{
				{}, {"run": 4}, {"rank": 4}, {"service": 4}, {"instance": 4}, {"combination": 4}, {"label": 1, "operation": 1, "model": 1},
				{"run": 4, "rank": 4, "service": 4, "instance": 4, "combination": 4, "label": 1, "operation": 1, "model": 1},
			} {
				t.Run(fmt.Sprint(name, maxRuns, limits), func(t *testing.T) {
					guard, metrics := mlguardprocessor.NewFactory(), mlmetricsconnector.NewFactory()
					sink := new(consumertest.MetricsSink)
					cfg := metrics.CreateDefaultConfig().(*mlmetricsconnector.Config)
					cfg.MaxRuns, cfg.InitialZero = maxRuns, 0
					counts, err := metrics.CreateTracesToMetrics(t.Context(), connectortest.NewNopSettings(metrics.Type()), cfg, sink)
					require.NoError(t, err)
					guards := guard.CreateDefaultConfig()
					require.NoError(t, confmap.NewFromStringMap(map[string]any{"identities": map[string]any{"limits": limits}}).Unmarshal(guards))
					guarded, err := guard.CreateTraces(t.Context(), processortest.NewNopSettings(guard.Type()), guards, counts)
					require.NoError(t, err)
					for _, c := range []component.Component{counts, guarded} {
						require.NoError(t, c.Start(t.Context(), componenttest.NewNopHost()))
					}
					f.send(t, func(td ptrace.Traces) { require.NoError(t, guarded.ConsumeTraces(t.Context(), td)) })
					require.NoError(t, guarded.Shutdown(t.Context()))
					require.NoError(t, counts.Shutdown(t.Context()))
					want := int64(f.runs * f.ranks * f.steps)
					assert.Equal(t, map[string]int64{"ml.steps": want, "ml.requests": want, "ml.tokens": (7 + 10) * want}, totals(sink))
				})
			}
		}
	}
}

// totals returns the sums over all labels of the last emission.
func totals(sink *consumertest.MetricsSink) map[string]int64 {
	sums := make(map[string]int64)
	all := sink.AllMetrics()
	for _, rm := range all[len(all)-1].ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if name := m.Name(); m.Type() == pmetric.MetricTypeSum && (name == "ml.steps" || name == "ml.requests" || name == "ml.tokens") {
					for _, p := range m.Sum().DataPoints().All() {
						sums[name] += p.IntValue()
					}
				}
			}
		}
	}
	return sums
}
