package reprogenprocessor

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-ml/otelcol-ml/internal/testing/otlpnest"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/metadata"
)

// failed is when the failures of these tests end, by failedCall.
var failed = time.Unix(1_700_000_001, 0)

const gib = int64(1) << 30

// gpuBatch is what the gpu receiver sends of one GPU at one moment.
type gpuBatch struct {
	md   pmetric.Metrics
	rm   pmetric.ResourceMetrics
	at   time.Time
	base map[string]any
}

func gpuAt(host string, index int, at time.Time) *gpuBatch {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	rm.ScopeMetrics().AppendEmpty()
	return &gpuBatch{md, rm, at, map[string]any{"host.name": host, "hw.id": fmt.Sprintf("GPU-%s-%d", host, index), "nvidia.gpu.index": index, "nvidia.gpu.source": "replay"}}
}

func (b *gpuBatch) point(name string, value int64, attributes map[string]any) *gpuBatch {
	m := b.rm.ScopeMetrics().At(0).Metrics().AppendEmpty()
	m.SetName(name)
	p := m.SetEmptyGauge().DataPoints().AppendEmpty()
	p.SetTimestamp(pcommon.NewTimestampFromTime(b.at))
	p.SetIntValue(value)
	for _, set := range []map[string]any{b.base, attributes} {
		for k, v := range set {
			if err := p.Attributes().PutEmpty(k).FromRaw(v); err != nil {
				panic(err)
			}
		}
	}
	return b
}

func (b *gpuBatch) memory(used, limit int64) *gpuBatch {
	return b.point("hw.gpu.memory.usage", used, nil).point("hw.gpu.memory.limit", limit, nil)
}

func (b *gpuBatch) workload(bytes int64, attributes map[string]any) *gpuBatch {
	return b.point("nvidia.gpu.workload.memory.usage", bytes, attributes)
}

func (w *world) gpu(b *gpuBatch) {
	w.t.Helper()
	require.NoError(w.t, w.metrics.ConsumeMetrics(w.t.Context(), b.md))
}

// onHost is a failure of a process on a host.
func onHost(host string, c failedCall) (batch ptrace.Traces) {
	batch = c.traces()
	batch.ResourceSpans().At(0).Resource().Attributes().PutStr("host.name", host)
	return batch
}

const outOfMemory = "CUDA out of memory. Tried to allocate 8.00 GiB. GPU 0 has a total capacity of 80.00 GiB of which 1.50 GiB is free."

// TestMemoryRanOut: who had the GPU's memory when it ran out is in the
// artifact, though the process is gone from the GPU by the time that it is told.
func TestMemoryRanOut(t *testing.T) {
	w := newWorld(t, waitingConfig(t))
	rank := map[string]any{"ml.rank.global": 1, "ml.run.id": "run-1"}
	service := map[string]any{"service.name": "snakepit", "user.id": "1001"}
	w.gpu(gpuAt("node", 0, failed.Add(-2*time.Second)).memory(10*gib, 80*gib).workload(10*gib, map[string]any{"ml.rank.global": 0, "ml.run.id": "run-1"}))
	w.gpu(gpuAt("node", 1, failed.Add(-12*time.Second)).memory(60*gib, 80*gib).workload(60*gib, rank))
	w.gpu(gpuAt("node", 1, failed.Add(-2*time.Second)).memory(78*gib, 80*gib).workload(30*gib, service).workload(48*gib, rank).
		point("nvidia.gpu.throttle.active", 1, map[string]any{"nvidia.gpu.throttle.reason": "sw_power_cap"}).
		point("nvidia.gpu.throttle.active", 0, map[string]any{"nvidia.gpu.throttle.reason": "sync_boost"}).
		point("hw.status", 1, map[string]any{"hw.state": "ok"}))
	w.gpu(gpuAt("elsewhere", 0, failed).memory(1, 80*gib))
	fan := gpuAt("node", 7, failed)
	fan.base["hw.type"] = "fan"
	w.gpu(fan.point("hw.status", 1, map[string]any{"hw.state": "failed"}))
	w.gpu(gpuAt("node", 1, failed.Add(5*time.Second)).memory(30*gib, 80*gib).workload(30*gib, service))
	w.send(onHost("node", failedCall{errorType: "torch.OutOfMemoryError", message: outOfMemory, attrs: map[string]any{"ml.training_run.id": "run-1", "ml.rank.global": 1}}))
	w.pass(10 * time.Second)

	artifact := onlyArtifact(t, w.cfg)
	line := "GPU 1 of node (GPU-node-1), from a recording, the process's own by its run: 78.0 GiB of 80.0 GiB used, ok, clocks held down by sw_power_cap; " +
		"rank 1, run run-1 has 48.0 GiB; service snakepit has 30.0 GiB; read at 2023-11-14T22:13:19Z"
	assert.Contains(t, text(t, artifact, "report.md"), line)
	assert.NotContains(t, text(t, artifact, "report.md"), "GPU 0 of node", "another's")
	assert.Contains(t, pythons(t)[0].run(t, artifact, nil, "--info").Stderr, line)
	assert.Len(t, w.points.AllMetrics(), 6, "metrics are passed on")
}

// TestWhichGPUs says which failures are shown with a GPU, and with which.
func TestWhichGPUs(t *testing.T) {
	ofRun := func(run string, more map[string]any) failedCall {
		attrs := map[string]any{"ml.run.id": run}
		maps.Copy(attrs, more)
		return failedCall{message: outOfMemory, attrs: attrs}
	}
	on := func(at time.Time, attributes map[string]any) *gpuBatch {
		return gpuAt("node", 0, at).workload(1, attributes)
	}
	trigger := ofRun("r", map[string]any{"repro.trigger": "oom"})
	trigger.message = ""
	other := ofRun("r", nil)
	other.errorType, other.message = "KeyError", "'x'"
	for name, tc := range map[string]struct {
		failedCall
		gpu *gpuBatch
		own string
	}{
		"joined by ml_enrich":             {ofRun("r", nil), on(failed, map[string]any{"ml.run.id": "r", "ml.gpu.join": "container"}), "container"},
		"an inferred run's":               {ofRun("r", map[string]any{"ml.run.inferred": true, "ml.job.id": "j"}), on(failed, map[string]any{"ml.run.id": "r", "ml.gpu.join": "process"}), "process"},
		"its rank's":                      {failedCall{message: outOfMemory, attrs: map[string]any{"ml.job.id": "j", "ml.rank.global": 3}}, on(failed, map[string]any{"ml.run.id": "j", "ml.rank.global": 3}), "run"},
		"a job's whose id is a number":    {failedCall{message: outOfMemory, attrs: map[string]any{"ml.job.id": 815}}, on(failed, map[string]any{"ml.run.id": "815"}), "run"},
		"a job's, its run says nothing":   {ofRun("unknown", map[string]any{"ml.job.id": "j"}), on(failed, map[string]any{"ml.run.id": "j"}), "run"},
		"a service's run, not inferred":   {ofRun("r", map[string]any{"ml.run.inferred": true, "ml.training_run.id": "t"}), on(failed, map[string]any{"ml.run.id": "t"}), "run"},
		"of a run with too long an id":    {ofRun(strings.Repeat("r", 129), map[string]any{"ml.job.id": "j"}), on(failed, map[string]any{"ml.run.id": "j"}), "run"},
		"the same rank of another run":    {failedCall{message: outOfMemory, attrs: map[string]any{"ml.job.id": "j", "ml.rank.global": 3}}, on(failed, map[string]any{"ml.run.id": "k", "ml.rank.global": 3}), ""},
		"a rank of its host, by no run":   {failedCall{message: outOfMemory, attrs: map[string]any{"ml.rank.global": 3}}, on(failed, map[string]any{"ml.run.id": "k", "ml.rank.global": 3}), ""},
		"its service's, not joined":       {ofRun("r", nil), on(failed, map[string]any{"service.name": "worker"}), ""},
		"too long before":                 {ofRun("r", nil), on(failed.Add(-time.Hour), map[string]any{"ml.run.id": "r"}), ""},
		"a trigger":                       {trigger, on(failed, map[string]any{"ml.run.id": "r"}), "run"},
		"an error that is not about GPUs": {other, on(failed, map[string]any{"ml.run.id": "r"}), ""},
		"a point without a GPU":           {ofRun("r", nil), &gpuBatch{md: gpuAt("node", 0, failed).md}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, testConfig(t))
			w.gpu(tc.gpu)
			w.send(onHost("node", tc.failedCall))
			w.pass(time.Second)
			report := text(t, onlyArtifact(t, w.cfg), "report.md")
			assert.Equal(t, tc.own != "", strings.Contains(report, "the process's own by its "+tc.own+";"), report)
		})
	}
}

// FuzzConsumeMetrics: whatever comes in goes on unchanged, and nothing of it
// harms a failure that follows.
func FuzzConsumeMetrics(f *testing.F) {
	var marshaler pmetric.ProtoMarshaler
	for _, b := range []*gpuBatch{
		gpuAt("node", 0, failed).memory(1, 2).workload(1, map[string]any{"ml.rank.global": 1}),
		gpuAt("node", 1, time.Time{}).point("hw.status", 1, map[string]any{"hw.state": "\xff"}),
	} {
		seed, err := marshaler.MarshalMetrics(b.md)
		require.NoError(f, err)
		f.Add(seed, "node", "GPU-1", int64(5), 0.5, uint16(0))
		f.Add(seed, "node", "GPU-1", int64(5), 0.5, uint16(3000))
	}
	dir := filepath.Join(f.TempDir(), "reproductions")
	f.Fuzz(func(t *testing.T, b []byte, host, id string, nanos int64, value float64, levels uint16) {
		var unmarshaler pmetric.ProtoUnmarshaler
		md, err := unmarshaler.UnmarshalMetrics(b)
		if err != nil {
			md = pmetric.NewMetrics()
		}
		sm := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty()
		for _, name := range []string{
			"hw.gpu.memory.usage", "hw.gpu.memory.limit", "hw.gpu.utilization", "hw.status", "nvidia.gpu.throttle.active",
			"nvidia.gpu.workload.memory.usage", "nvidia.gpu.workload.utilization", "nvidia.gpu.process.memory.usage",
		} {
			m := sm.Metrics().AppendEmpty()
			m.SetName(name)
			p := m.SetEmptySum().DataPoints().AppendEmpty()
			p.SetTimestamp(pcommon.Timestamp(nanos))
			p.SetDoubleValue(value)
			for _, k := range []string{"host.name", "hw.gpu.task", "hw.state", "service.name"} {
				p.Attributes().PutStr(k, host)
			}
			p.Attributes().PutStr("hw.id", id)
			otlpnest.Value(p.Attributes().PutEmpty("ml.rank.global"), int(levels))
		}
		before := pmetric.NewMetrics()
		md.CopyTo(before)

		cfg := testConfig(t)
		cfg.Directory = dir
		set := processortest.NewNopSettings(metadata.Type)
		factory, sink := NewFactory(), &consumertest.MetricsSink{}
		p, err := factory.CreateMetrics(context.Background(), set, cfg, sink)
		require.NoError(t, err)
		traces, err := factory.CreateTraces(context.Background(), set, cfg, consumertest.NewNop())
		require.NoError(t, err)
		require.NoError(t, p.Start(context.Background(), componenttest.NewNopHost()))
		require.NoError(t, traces.Start(context.Background(), componenttest.NewNopHost()))
		require.NoError(t, p.ConsumeMetrics(context.Background(), md))
		assert.Equal(t, before, sink.AllMetrics()[0])
		require.NoError(t, traces.ConsumeTraces(context.Background(), onHost(host, failedCall{service: host, message: outOfMemory})))
		require.NoError(t, traces.Shutdown(context.Background()))
		require.NoError(t, p.Shutdown(context.Background()))
		for _, a := range artifacts(t, cfg) {
			readTrace(t, a)
			removeAll(t, filepath.Dir(a))
		}
	})
}

// TestGPUsAreRedacted: names of workloads come from telemetry as messages do.
func TestGPUsAreRedacted(t *testing.T) {
	const token = "ghp_a1b2c3d4e5f6a1b2c3d4e5f6"
	w := newWorld(t, waitingConfig(t))
	own := map[string]any{"ml.run.id": "run-1", "ml.rank.global": 1, "service.name": "of " + token}
	w.gpu(gpuAt("node", 0, failed.Add(-2*time.Second)).memory(gib, 80*gib).workload(gib, own))
	w.send(onHost("node", failedCall{errorType: "DistBackendError", message: "NCCL: it timed out", attrs: map[string]any{"ml.training_run.id": "run-1", "ml.rank.global": 1}}))
	w.pass(10 * time.Second)
	artifact := onlyArtifact(t, w.cfg)
	assert.Contains(t, specText(t, artifact), "service of <REDACTED:github_token> has 1.0 GiB")
	for _, file := range []string{"repro.py", "trace.json", "report.md"} {
		assert.NotContains(t, text(t, artifact, file), token, file)
	}
}
