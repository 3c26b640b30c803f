package reprogenprocessor

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
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

func (w *world) xid(host string, index int, at time.Time, code int64) {
	w.t.Helper()
	ld := plog.NewLogs()
	record := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	record.SetEventName("nvidia.gpu.xid")
	record.SetTimestamp(pcommon.NewTimestampFromTime(at))
	record.Body().SetStr(fmt.Sprintf("XID %d: uncorrectable memory error", code))
	record.Attributes().PutInt("nvidia.gpu.xid.code", code)
	record.Attributes().PutStr("host.name", host)
	record.Attributes().PutStr("hw.id", fmt.Sprintf("GPU-%s-%d", host, index))
	require.NoError(w.t, w.logs.ConsumeLogs(w.t.Context(), ld))
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
		point("hw.status", 1, map[string]any{"hw.state": "ok"}).
		point("nvidia.gpu.process.memory.usage", 48*gib, map[string]any{"process.pid": 41208}))
	w.gpu(gpuAt("elsewhere", 0, failed).memory(1, 80*gib))
	fan := gpuAt("node", 7, failed)
	fan.base["hw.type"] = "fan"
	w.gpu(fan.point("hw.status", 1, map[string]any{"hw.state": "failed"}))
	w.gpu(gpuAt("node", 1, failed.Add(5*time.Second)).memory(30*gib, 80*gib).workload(30*gib, service))
	w.send(onHost("node", failedCall{errorType: "torch.OutOfMemoryError", message: outOfMemory, attrs: map[string]any{"ml.training_run.id": "run-1", "ml.rank.global": 1}}))
	w.xid("node", 1, failed.Add(3*time.Second), 94) // told after the failure
	w.xid("node", 1, failed.Add(-time.Hour), 31)
	w.pass(10 * time.Second)

	artifact := onlyArtifact(t, w.cfg)
	trace := readTrace(t, artifact)
	require.Len(t, trace.GPUs, 2, "those of the host")
	own, other := trace.GPUs[0], trace.GPUs[1]
	assert.Equal(t, "run", own.Own)
	assert.Equal(t, "GPU-node-1", own.ID)
	assert.True(t, own.Replayed)
	assert.Equal(t, 78*gib, own.Used)
	assert.Equal(t, 80*gib, own.Limit)
	assert.Equal(t, "ok", own.Status)
	assert.Equal(t, []string{"sw_power_cap"}, own.Throttled)
	require.Len(t, own.Workloads, 3)
	assert.Equal(t, 48*gib, own.Workloads[0].Memory)
	assert.Equal(t, "snakepit", own.Workloads[2].Service)
	require.Len(t, own.XIDs, 1)
	assert.EqualValues(t, 94, own.XIDs[0].Code)
	assert.Equal(t, "GPU-node-0", other.ID)
	assert.Empty(t, other.Own)

	line := "GPU 1 of node (GPU-node-1), from a recording, the process's own by its run: 78.0 GiB of 80.0 GiB used, ok, clocks held down by sw_power_cap; " +
		"rank 1, run run-1 has 48.0 GiB; process 41208 has 48.0 GiB; service snakepit has 30.0 GiB; XID 94: uncorrectable memory error at 2023-11-14T22:13:24Z; read at 2023-11-14T22:13:19Z"
	assert.Contains(t, text(t, artifact, "report.md"), line)
	assert.Contains(t, pythons(t)[0].run(t, artifact, nil, "--info").Stderr, line)
	assert.Len(t, w.points.AllMetrics(), 6, "metrics are passed on")
}

// TestWhichGPUs says which failures are told with a GPU, and with which.
func TestWhichGPUs(t *testing.T) {
	for name, tc := range map[string]struct {
		failedCall
		host string
		gpu  *gpuBatch
		own  string
		none bool
	}{
		"of its host":                     {failedCall{message: outOfMemory}, "node", gpuAt("node", 0, failed).memory(1, 2), "", false},
		"of another host":                 {failedCall{message: outOfMemory}, "other", gpuAt("node", 0, failed).memory(1, 2), "", true},
		"of no host":                      {failedCall{message: outOfMemory}, "", gpuAt("", 0, failed).memory(1, 2), "", true},
		"joined by ml_enrich":             {failedCall{message: outOfMemory, attrs: map[string]any{"ml.run.id": "r"}}, "node", gpuAt("node", 0, failed).workload(1, map[string]any{"ml.run.id": "r", "ml.gpu.join": "container"}), "container", false},
		"an inferred run's":               {failedCall{message: outOfMemory, attrs: map[string]any{"ml.run.id": "r", "ml.run.inferred": true, "ml.job.id": "j"}}, "node", gpuAt("node", 0, failed).workload(1, map[string]any{"ml.run.id": "r", "ml.gpu.join": "process"}), "process", false},
		"its service's, not joined":       {failedCall{message: outOfMemory}, "node", gpuAt("node", 0, failed).workload(1, map[string]any{"service.name": "worker"}), "", false},
		"its process's, not joined":       {failedCall{message: outOfMemory, attrs: map[string]any{"process.pid": 7}}, "node", gpuAt("node", 0, failed).point("nvidia.gpu.process.memory.usage", 1, map[string]any{"process.pid": 7}), "", false},
		"its rank's, on another host":     {failedCall{message: outOfMemory, attrs: map[string]any{"ml.job.id": "j", "ml.rank.global": 3}}, "pod", gpuAt("node", 0, failed).workload(1, map[string]any{"ml.run.id": "j", "ml.rank.global": 3}), "run", false},
		"the same rank of another run":    {failedCall{message: outOfMemory, attrs: map[string]any{"ml.job.id": "j", "ml.rank.global": 3}}, "pod", gpuAt("node", 0, failed).workload(1, map[string]any{"ml.run.id": "k", "ml.rank.global": 3}), "", true},
		"a rank of its host, by no run":   {failedCall{message: outOfMemory, attrs: map[string]any{"ml.rank.global": 3}}, "node", gpuAt("node", 0, failed).workload(1, map[string]any{"ml.run.id": "k", "ml.rank.global": 3}), "", false},
		"too long before":                 {failedCall{message: outOfMemory}, "node", gpuAt("node", 0, failed.Add(-time.Hour)).memory(1, 2), "", true},
		"a trigger":                       {failedCall{attrs: map[string]any{"repro.trigger": "oom"}}, "node", gpuAt("node", 0, failed).memory(1, 2), "", false},
		"an error that is not about GPUs": {failedCall{errorType: "KeyError", message: "'x'"}, "node", gpuAt("node", 0, failed).memory(1, 2), "", true},
		"a point without a GPU":           {failedCall{message: outOfMemory}, "node", (&gpuBatch{md: gpuAt("node", 0, failed).md}), "", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, testConfig(t))
			w.gpu(tc.gpu)
			td := tc.traces()
			if tc.host != "" {
				td = onHost(tc.host, tc.failedCall)
			}
			w.send(td)
			w.pass(time.Second)
			artifact := onlyArtifact(t, w.cfg)
			gpus := readTrace(t, artifact).GPUs
			unknown := len(gpus) > 0 && len(gpus[0].Workloads) > 0 && strings.Contains(name, "not joined")
			assert.Equal(t, unknown, strings.Contains(text(t, artifact, "report.md"), "no workload is joined to a run"))
			if tc.none {
				assert.Empty(t, gpus)
				return
			}
			require.Len(t, gpus, 1)
			assert.Equal(t, tc.own, gpus[0].Own)
		})
	}
}

// TestHang: of ranks that wait for each other, the artifact tells which one is
// behind, and how the GPUs of the run are.
func TestHang(t *testing.T) {
	w := newWorld(t, waitingConfig(t))
	step := func(rank, number int, at time.Time, run string) {
		td := failedCall{name: "train_step", trace: byte(100 + rank), attrs: map[string]any{
			"ml.training_run.id": run, "ml.rank.global": rank, "ml.step": number, "ml.epoch": 2}}.traces()
		s := spans(td)[0]
		s.SetEndTimestamp(pcommon.NewTimestampFromTime(at))
		td.ResourceSpans().At(0).Resource().Attributes().PutStr("host.name", fmt.Sprintf("node-%d", rank))
		s.Status().SetCode(0)
		w.send(td)
	}
	for rank, last := range []int{42, 42, 41, 42} {
		step(rank, last, failed.Add(-time.Minute), "run-1")
		step(rank, last-1, failed.Add(-2*time.Minute), "run-1") // came late
	}
	step(9, 7, failed, "run-2")
	w.gpu(gpuAt("node-2", 5, failed).memory(70*gib, 80*gib).workload(70*gib, map[string]any{"ml.run.id": "run-1", "ml.rank.global": 2}))
	w.gpu(gpuAt("node-8", 0, failed).memory(70*gib, 80*gib).workload(70*gib, map[string]any{"ml.run.id": "run-2", "ml.rank.global": 2}))
	w.send(onHost("node-0", failedCall{errorType: "torch.distributed.DistBackendError",
		message: "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1042, OpType=ALLREDUCE, NumelIn=4096, NumelOut=4096, Timeout(ms)=600000) ran for 600123 milliseconds",
		attrs:   map[string]any{"ml.training_run.id": "run-1", "ml.rank.global": 0, "ml.world_size": 6}}))
	w.xid("node-2", 5, failed.Add(-time.Minute), 79)
	w.pass(10 * time.Second)

	artifact := onlyArtifact(t, w.cfg)
	trace := readTrace(t, artifact)
	require.Len(t, trace.Steps, 4)
	assert.Equal(t, "2", trace.Steps[0].Rank)
	assert.EqualValues(t, 41, trace.Steps[0].Step)
	assert.Equal(t, "node-2", trace.Steps[0].Host)
	require.Len(t, trace.GPUs, 1, "those of the run, on whichever host")
	assert.EqualValues(t, 79, trace.GPUs[0].XIDs[0].Code)
	report := text(t, artifact, "report.md")
	assert.Contains(t, report, "Furthest behind: rank 2, whose last step is 41; the first are at 42. No step was seen of 2 of 6 ranks: 4, 5.")
	assert.Contains(t, report, "rank 2: step 41 of epoch 2, train_step on node-2, ended at 2023-11-14T22:12:21Z")
	assert.Contains(t, report, "XID 79")
	info := pythons(t)[0].run(t, artifact, nil, "--info").Stderr
	assert.Contains(t, info, "Furthest behind: rank 2")
}

// TestGPUsWithoutContent: whoever can send metrics chooses the texts in them.
func TestGPUsWithoutContent(t *testing.T) {
	cfg := waitingConfig(t)
	cfg.CaptureContent = false
	w := newWorld(t, cfg)
	b := gpuAt("node", 0, failed)
	b.base["hw.id"] = "of " + canary
	w.gpu(b.memory(1, 2).workload(1, map[string]any{"service.name": canary, "ml.rank.global": canary, "k8s.pod.name": canary}).
		workload(1, map[string]any{"ml.run.id": "j", "ml.rank.global": "0", "ml.gpu.join": canary}).
		point("nvidia.gpu.throttle.active", 1, map[string]any{"nvidia.gpu.throttle.reason": canary}).
		point("hw.status", 1, map[string]any{"hw.state": canary}))
	w.send(onHost("node", failedCall{message: "NCCL timeout", attrs: map[string]any{"ml.job.id": "j", "ml.rank.global": 0, "ml.step": 1}}))
	w.pass(10 * time.Second)
	require.Len(t, readTrace(t, onlyArtifact(t, cfg)).GPUs, 1)
	assert.Empty(t, leaks(t, cfg.Directory))
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

// TestSurroundingsAreRedacted: names of workloads and of spans come from
// telemetry as messages do.
func TestSurroundingsAreRedacted(t *testing.T) {
	const token = "ghp_a1b2c3d4e5f6a1b2c3d4e5f6"
	w := newWorld(t, waitingConfig(t))
	w.gpu(gpuAt("node", 0, failed.Add(-2*time.Second)).memory(gib, 80*gib).workload(gib, map[string]any{"service.name": "of " + token}))
	rank := func(n int) map[string]any {
		return map[string]any{"ml.training_run.id": "run-1", "ml.rank.global": n, "ml.step": n}
	}
	for n := range 2 {
		w.unfailed(failedCall{name: "of " + token, trace: byte(10 + n), attrs: rank(n)})
	}
	w.send(onHost("node", failedCall{errorType: "DistBackendError", message: "NCCL: it timed out", attrs: rank(1)}))
	w.pass(10 * time.Second)
	artifact := onlyArtifact(t, w.cfg)
	spec := specText(t, artifact)
	assert.Contains(t, spec, "service of <REDACTED:github_token> has 1.0 GiB")
	assert.Contains(t, spec, "step 0, of <REDACTED:github_token>")
	for _, file := range []string{"repro.py", "trace.json", "report.md"} {
		assert.NotContains(t, text(t, artifact, file), token, file)
	}
}
