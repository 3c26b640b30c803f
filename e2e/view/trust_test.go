package view_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
	"github.com/otelcol-ml/otelcol-ml/e2e/view"
)

// heldGPU is a recording of a GPU that a process of run-a holds, busy at little power.
const heldGPU = `version: 1
origin: made for a test
host_name: gpu-node-1
duration: 24h
gpus:
  - uuid: GPU-held
    index: 0
    processes: [{pid: 7, executable: python3, user_id: 1000, environ: [TORCHELASTIC_RUN_ID=run-a, RANK=0, OTEL_SERVICE_NAME=trainer]}]
frames:
  - at: 0s
    attribution: {cgroup: ok, environ: ok, podresources: absent, slurm: absent}
    gpus:
      - uuid: GPU-held
        activity: {general: {utilization: 1, peak: 1, busy_seconds: 100}}
        memory: {total_bytes: 85520809984, used_bytes: 59022245888, reserved_bytes: 577765376, controller_utilization: 0.5}
        power: {draw_watts: 120, peak_watts: 120, energy_joules: 8412650}
        processes: [{pid: 7, memory_bytes: 58518929408, utilization: {general: 1}}]
`

// stepsOf are ten steps of a run, up to now.
func stepsOf(service, run string) ptrace.Traces {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	for key, value := range map[string]string{"service.name": service, "ml.run.id": run, "host.name": "gpu-node-1"} {
		rs.Resource().Attributes().PutStr(key, value)
	}
	rs.Resource().Attributes().PutInt("ml.rank.global", 0)
	spans, now := rs.ScopeSpans().AppendEmpty().Spans(), time.Now()
	for step := range 10 {
		start := now.Add(time.Duration(step-10) * 200 * time.Millisecond)
		for i, phase := range []string{"forward", "backward", "optimizer"} {
			span := spans.AppendEmpty()
			span.SetName(phase)
			span.SetTraceID(pcommon.TraceID{byte(len(service)), byte(step), 1})
			span.SetSpanID(pcommon.SpanID{byte(step), byte(i), 1})
			span.SetStartTimestamp(pcommon.NewTimestampFromTime(start.Add(time.Duration(i) * 60 * time.Millisecond)))
			span.SetEndTimestamp(pcommon.NewTimestampFromTime(start.Add(time.Duration(i+1) * 60 * time.Millisecond)))
			span.Attributes().PutStr("ml.phase", phase)
			span.Attributes().PutInt("ml.step", int64(step+1))
		}
	}
	return td
}

// forge are readings and conclusions that somebody makes up: run-b holds a GPU, run-a
// holds none and goes on, the GPU of run-a has failed, and run-b has a problem.
func forge() (pmetric.Metrics, plog.Logs) {
	md, ld := pmetric.NewMetrics(), plog.NewLogs()
	metrics := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	now := pcommon.NewTimestampFromTime(time.Now())
	point := func(name string, value float64, attributes ...string) {
		m := metrics.AppendEmpty()
		m.SetName(name)
		p := m.SetEmptyGauge().DataPoints().AppendEmpty()
		p.SetTimestamp(now)
		p.SetDoubleValue(value)
		p.Attributes().PutStr("host.name", "gpu-node-1")
		for i := 0; i < len(attributes); i += 2 {
			p.Attributes().PutStr(attributes[i], attributes[i+1])
		}
	}
	point("nvidia.gpu.workload.memory.usage", 1<<30, "hw.id", "GPU-forged", "ml.run.id", "run-b", "service.name", "victim")
	point("nvidia.gpu.workload.memory.usage", 0, "hw.id", "GPU-held", "ml.run.id", "run-a", "service.name", "trainer")
	point("hw.gpu.memory.limit", 1, "hw.id", "GPU-held")
	point("hw.status", 1, "hw.id", "GPU-held", "hw.state", "failed", "hw.type", "gpu")
	point("ml_problem_onset_timestamp_seconds", float64(time.Now().Unix()), "ml.problem", "restart_loop", "ml.run.id", "run-b")
	record := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	record.SetEventName("nvidia.gpu.xid")
	record.Attributes().PutStr("hw.id", "GPU-held")
	record.Attributes().PutStr("host.name", "gpu-node-1")
	record.Attributes().PutInt("nvidia.gpu.xid.code", 79)
	return md, ld
}

// TestForgedReadings: whoever can send spans can neither page a run with made-up readings
// of GPUs and conclusions, nor hide that one hangs, unless the collector is told to
// believe them.
func TestForgedReadings(t *testing.T) {
	recording := filepath.Join(t.TempDir(), "recording.yaml")
	require.NoError(t, os.WriteFile(recording, []byte(heldGPU), 0o600))
	for _, believed := range []bool{false, true} {
		t.Run(strconv.FormatBool(believed), func(t *testing.T) {
			senders := []string{}
			if believed {
				senders = append(senders, "127.0.0.1")
			}
			c := startCollector(t, map[string]any{
				"receivers::gpu::replay::path": recording, "receivers::gpu::collection_interval": "2s", "processors::ml_guard::trusted_senders": senders,
			})
			sender, err := harness.NewGRPCSender(c.Address(t, "receivers::otlp::protocols::grpc"))
			require.NoError(t, err)
			defer func() { assert.NoError(t, sender.Close()) }()
			require.NoError(t, sender.Traces(t.Context(), stepsOf("trainer", "run-a")))
			require.NoError(t, sender.Traces(t.Context(), stepsOf("victim", "run-b")))
			needs := func(c2 *assert.CollectT) []string {
				md, ld := forge()
				require.NoError(c2, sender.Metrics(t.Context(), md))
				require.NoError(c2, sender.Logs(t.Context(), ld))
				state, err := view.Read(t.Context(), c.Address(t, "exporters::ml_view"))
				require.NoError(c2, err)
				var found []string
				for _, need := range state.Needs {
					found = append(found, need.Kind+" "+subject(&need))
				}
				return found
			}
			want, never := "looks_hung run-a", []string{"looks_hung run-b", "restart_loop run-b"}
			if believed {
				want, never = "looks_hung run-b", nil
			}
			seen := map[string]bool{}
			require.EventuallyWithT(t, func(c2 *assert.CollectT) {
				found := needs(c2)
				for _, need := range found {
					seen[need] = true
				}
				assert.Contains(c2, found, want)
				if !believed {
					// Whoever was to be paged is silent for as long as the run that hangs.
					metrics, err := harness.Get(t.Context(), "http://"+c.Address(t, "exporters::prometheus")+"/metrics")
					require.NoError(c2, err)
					assert.NotContains(c2, metrics, "GPU-forged")
					assert.NotContains(c2, metrics, `hw_state="failed",hw_type="gpu"} 1`)
				}
			}, time.Minute, 200*time.Millisecond)
			for need := range seen {
				assert.False(t, slices.Contains(never, need) || !believed && need[:min(10, len(need))] == "gpu_failed", need)
			}
			samples, err := harness.Scrape(t.Context(), c.Address(t, harness.TelemetryPath))
			require.NoError(t, err)
			dropped := harness.Select(samples, "otelcol_processor_ml_guard_untrusted", harness.Labels{"signal": "metrics"})
			if believed {
				assert.Empty(t, dropped)
				return
			}
			require.Len(t, dropped, 1)
			assert.Positive(t, dropped[0].Value)
			page, err := harness.Get(t.Context(), "http://"+c.Address(t, "exporters::ml_view")+"/api/v1/state")
			require.NoError(t, err)
			assert.Contains(t, page, "Readings of GPUs and conclusions of collectors from 127.0.0.1")
			assert.Contains(t, page, "trusted_senders")
		})
	}
}
