package e2e

import (
	"context"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// The runs of TestTwoWriters: the traces of one are shared out between two
// collectors, those of the other go to the first one and then to the second.
const (
	sharedRun = "shared-out"
	movedRun  = "handed-over"
)

const (
	// stepTime is the time of a step, in which its spans leave a tenth.
	stepTime = 100 * time.Millisecond
	// stepsAtOnce are sent in one request, as soon as they have ended.
	stepsAtOnce = 5
)

// writers are two collectors that share the telemetry of some runs, and one that
// gets all of it.
type writers struct {
	first, second, all *harness.GRPCSender
	// sent is the number of steps of each run.
	sent int
	// oneOfGPU reports whether each GPU is read by one of the first two, as agents that
	// send to gateways have it.
	oneOfGPU bool
}

// step adds the spans of a step that began at a time. Each step is a trace.
func step(td ptrace.Traces, run string, number int, began time.Time) {
	rs := td.ResourceSpans().AppendEmpty()
	rs.Resource().Attributes().PutStr("service.name", "trainer")
	rs.Resource().Attributes().PutStr("ml.run.id", run)
	rs.Resource().Attributes().PutStr("host.name", "gpu-01")
	spans := rs.ScopeSpans().AppendEmpty().Spans()
	var trace pcommon.TraceID
	copy(trace[:], run)
	binary.BigEndian.PutUint32(trace[12:], uint32(number)) // #nosec G115 -- small
	at := began
	for i, part := range []struct {
		phase string
		took  time.Duration
	}{{"data_load", stepTime / 5}, {"forward", stepTime * 3 / 10}, {"backward", stepTime * 3 / 10}, {"optimizer", stepTime / 10}} {
		span := spans.AppendEmpty()
		span.SetName(part.phase)
		span.SetTraceID(trace)
		span.SetSpanID(pcommon.SpanID{byte(i + 1)})
		span.SetStartTimestamp(pcommon.NewTimestampFromTime(at))
		at = at.Add(part.took)
		span.SetEndTimestamp(pcommon.NewTimestampFromTime(at))
		span.Attributes().PutStr("ml.phase", part.phase)
	}
}

// gpuOf is a reading of the GPU that a run holds.
func gpuOf(run string) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("host.name", "gpu-01")
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("nvidia.gpu.workload.memory.usage")
	m.SetDescription("GPU memory of one workload's processes together.")
	m.SetUnit("By")
	point := m.SetEmptySum().DataPoints().AppendEmpty()
	m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	point.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	point.SetIntValue(1 << 30)
	point.Attributes().PutStr("host.name", "gpu-01")
	point.Attributes().PutStr("hw.id", "GPU-"+run)
	point.Attributes().PutStr("ml.run.id", run)
	return md
}

// train sends steps as they end, until stop is closed. Until moved is closed, the
// steps of movedRun go to the first collector.
func (w *writers) train(ctx context.Context, moved, stop <-chan struct{}) error {
	ticker := time.NewTicker(stepsAtOnce * stepTime)
	defer ticker.Stop()
	began := time.Now()
	for {
		select {
		case <-stop:
			return nil
		case <-ticker.C:
		}
		first, second, all := ptrace.NewTraces(), ptrace.NewTraces(), ptrace.NewTraces()
		of := first
		select {
		case <-moved:
			of = second
		default:
		}
		for range stepsAtOnce {
			at := began.Add(time.Duration(w.sent) * stepTime)
			w.sent++
			step(of, movedRun, w.sent, at)
			// Two of three traces, as no hash shares them out equally.
			if w.sent%3 == 0 {
				step(first, sharedRun, w.sent, at)
			} else {
				step(second, sharedRun, w.sent, at)
			}
			step(all, movedRun, w.sent, at)
			step(all, sharedRun, w.sent, at)
		}
		for to, td := range map[*harness.GRPCSender]ptrace.Traces{w.first: first, w.second: second, w.all: all} {
			if err := to.Traces(ctx, td); err != nil {
				return err
			}
			for _, run := range []string{sharedRun, movedRun} {
				if w.oneOfGPU && to != w.all && (to == w.first) != (run == sharedRun || of == first) {
					continue
				}
				if err := to.Metrics(ctx, gpuOf(run)); err != nil {
					return err
				}
			}
		}
	}
}

// startWriter starts a collector that flushes every second.
func startWriter(t *testing.T) (*harness.Collector, *harness.GRPCSender) {
	t.Helper()
	collector := harness.StartCollector(t, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "demo.yaml"),
		Env: []string{
			"OTELCOL_ML_REPRO_DIR=" + t.TempDir(),
			"GPU_RECORDING=" + harness.Path("receiver", "gpureceiver", "testdata", "captures", "demo-2xh100.yaml"),
		},
		Overrides: map[string]any{
			"connectors::ml_metrics::flush_interval": "1s",
			"connectors::ml_metrics::initial_zero":   "3s",
			// Long enough for a slow machine to show the run at its new collector.
			"connectors::ml_metrics::stall_timeout":  "12s",
			"connectors::ml_metrics::instance_label": "collector_instance_id",
		},
	})
	sender, err := harness.NewGRPCSender(collector.Address(t, "receivers::otlp::protocols::grpc"))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, sender.Close()) })
	return collector, sender
}

// readerOf starts a Prometheus with the shipped configuration that reads collectors
// every second.
func readerOf(t *testing.T, collectors ...*harness.Collector) *harness.Prometheus {
	t.Helper()
	var series, own []string
	for _, collector := range collectors {
		series = append(series, collector.Address(t, "exporters::prometheus"))
		own = append(own, collector.Address(t, harness.TelemetryPath))
	}
	return harness.StartPrometheus(t, map[string]string{
		"otelcol-ml:8889":         strings.Join(series, `", "`),
		"otelcol-ml:8888":         strings.Join(own, `", "`),
		"scrape_interval: 5s":     "scrape_interval: 1s",
		"scrape_timeout: 4s":      "scrape_timeout: 1s",
		"evaluation_interval: 5s": "evaluation_interval: 1s",
	})
}

// TestTwoWriters has two collectors write the series of two runs, and compares what
// the shipped rules make of them with what they make of one collector that was sent
// the same.
func TestTwoWriters(t *testing.T) {
	w := &writers{}
	var first, second, all *harness.Collector
	first, w.first = startWriter(t)
	second, w.second = startWriter(t)
	all, w.all = startWriter(t)
	two, one := readerOf(t, first, second), readerOf(t, all)

	moved, stop, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() { ended <- w.train(t.Context(), moved, stop) }()
	at := func(collector *harness.Collector, state string) string {
		return fmt.Sprintf(`ml_run_state{ml_run_id=%q,instance=%q,ml_run_state=%q}`, movedRun, collector.Address(t, "exporters::prometheus"), state)
	}
	two.AwaitValues(t, at(first, "running"), "ml_run_id", map[string]float64{movedRun: 1})
	close(moved)
	two.AwaitValues(t, at(first, "stalled"), "ml_run_id", map[string]float64{movedRun: 1})

	for expression, part := range map[string]float64{
		`run:state`:           0,
		`run:ml_attempts:max`: 0,
		// What Prometheus extrapolates depends on when it scrapes.
		`run:ml_steps:rate5m`:       0.15,
		`run:goodput:ratio_rate15m`: 0.1,
		`run:ml_run_time:ratio_rate15m{ml_run_state=~"productive|data_load"}`: 0.1,
	} {
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			wanted, got := byRun(t, one, expression), byRun(t, two, expression)
			assert.GreaterOrEqual(c, len(wanted), 2, "each run has %s", expression)
			assert.Len(c, got, len(wanted), expression)
			for of, value := range wanted {
				assert.InDelta(c, value, got[of], part*value, "%s of %s", expression, of)
			}
		}, harness.ArrivalTimeout, harness.ArrivalPoll)
	}
	states := byRun(t, two, "run:state")
	assert.Equal(t, map[string]float64{sharedRun + " running": 1, movedRun + " running": 1}, states)
	for name, prometheus := range map[string]*harness.Prometheus{"one": one, "two": two} {
		for _, none := range []string{`ALERTS{job="trainer"}`, `problem:onset_timestamp_seconds:max{job="trainer"}`, `ml_steps_total{collector_instance_id=""}`} {
			series, err := prometheus.Series(t.Context(), none)
			require.NoError(t, err)
			assert.Empty(t, series, "%s of %s", none, name)
		}
	}

	close(stop)
	require.NoError(t, <-ended)
	for _, prometheus := range []*harness.Prometheus{one, two} {
		sent := float64(w.sent)
		prometheus.AwaitValues(t, "sum by (ml_run_id) (ml_steps_total)", "ml_run_id", map[string]float64{sharedRun: sent, movedRun: sent})
		// Now the runs hang.
		prometheus.AwaitValues(t, `run:state{ml_run_state="stalled"}`, "ml_run_id", map[string]float64{sharedRun: 1, movedRun: 1})
		prometheus.AwaitValues(t, `ALERTS{alertname="RunStalled"}`, "ml_run_id", map[string]float64{sharedRun: 1, movedRun: 1})
	}
}

// byRun returns the values of a query by run and state.
func byRun(t *testing.T, prometheus *harness.Prometheus, expression string) map[string]float64 {
	t.Helper()
	samples, err := prometheus.Query(t.Context(), expression)
	require.NoError(t, err)
	values := map[string]float64{}
	for _, sample := range samples {
		values[sample.Labels["ml_run_id"]+" "+sample.Labels["ml_run_state"]] += sample.Value
	}
	return values
}
