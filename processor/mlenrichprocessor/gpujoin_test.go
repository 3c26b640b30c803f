package mlenrichprocessor

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/metadatatest"
)

// rig is an enricher for all signals, whose clock the test moves.
type rig struct {
	t *testing.T
	e *enricher
	c *clock
}

func newRig(t *testing.T) *rig {
	t.Helper()
	e := newEnricher(processortest.NewNopSettings(metadata.Type), createDefaultConfig().(*Config), new(shared.Registry[*store]))
	require.NoError(t, e.start(context.Background(), componenttest.NewNopHost()))
	t.Cleanup(func() { require.NoError(t, e.stores.Shutdown(context.Background())) })
	c := &clock{at: time.Unix(1_700_000_000, 0)}
	e.store.now = c.now
	return &rig{t, e, c}
}

// client sends a span of a process.
func (r *rig) client(attrs map[string]any) {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	require.NoError(r.t, rs.Resource().Attributes().FromRaw(attrs))
	rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty().SetName("train")
	_, err := r.e.processTraces(context.Background(), td)
	require.NoError(r.t, err)
}

// metrics sends metrics and returns the names and values of what comes out, by
// the GPU and, for a part of a breakdown, its kind.
func (r *rig) metrics(md pmetric.Metrics) map[string]pcommon.Map {
	out, err := r.e.processMetrics(context.Background(), md)
	require.NoError(r.t, err)
	points := make(map[string]pcommon.Map)
	for _, rm := range out.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				eachPoint(m, func(attrs pcommon.Map) {
					points[m.Name()+" "+readID(attrs, "hw.id")+readID(attrs, memoryKind)] = attrs
				})
			}
		}
	}
	return points
}

// gpuMetrics is one workload of a GPU in a batch of its own.
func gpuMetrics(t *testing.T, gpu string, memory int64, attrs map[string]any) pmetric.Metrics {
	t.Helper()
	md := pmetric.NewMetrics()
	ms := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	for name, size := range map[string]int64{mlattr.GPUWorkloadMemory: memory, mlattr.GPUMemoryLimit: 1000, mlattr.GPUMemoryUsage: 500, mlattr.GPUMemoryReserved: 100} {
		m := ms.AppendEmpty()
		m.SetName(name)
		p := m.SetEmptySum().DataPoints().AppendEmpty()
		p.SetTimestamp(1)
		p.SetIntValue(size)
		if name == mlattr.GPUWorkloadMemory {
			require.NoError(t, p.Attributes().FromRaw(attrs))
		}
		p.Attributes().PutStr("hw.id", gpu)
		p.Attributes().PutStr("host.name", "n1")
	}
	return md
}

// allocator is what TorchTel reports of its own.
func allocator(t *testing.T, reserved, allocated int64, attrs map[string]any) pmetric.Metrics {
	t.Helper()
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	require.NoError(t, rm.Resource().Attributes().FromRaw(attrs))
	m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	m.SetName("gpu.memory.bytes")
	m.SetUnit("By")
	points := m.SetEmptyGauge().DataPoints()
	for kind, size := range map[string]int64{"reserved": reserved, "allocated": allocated} {
		p := points.AppendEmpty()
		p.SetIntValue(size)
		p.Attributes().PutStr("kind", kind)
	}
	return md
}

func torchRank(rank int) map[string]any {
	return map[string]any{"service.name": "torchtel", "job_id": 0, "job_name": "local", "host": "n1",
		"local_rank": rank, "global_rank": rank, "world_size": 8}
}

func workloadRank(rank int) map[string]any {
	return map[string]any{"ml.rank.local": rank, "ml.rank.global": rank, "ml.world_size": 8}
}

func TestARunThatEndedIsNotJoined(t *testing.T) {
	r := newRig(t)
	r.client(torchRank(0))
	assert.NotContains(t, r.metrics(gpuMetrics(t, "g1", 400, workloadRank(1))), "ml.run.info g1", "no such rank")
	point := func() pcommon.Map {
		points := r.metrics(gpuMetrics(t, "g0", 400, workloadRank(0)))
		info, told := points["ml.run.info g0"]
		run := readID(points[mlattr.GPUWorkloadMemory+" g0"], "ml.run.id")
		assert.Equal(t, run != "", told, "there is an info for a binding and for nothing else")
		if told {
			assert.Equal(t, run, readID(info, "ml.run.id"))
		}
		return points[mlattr.GPUWorkloadMemory+" g0"]
	}
	assert.Equal(t, "rank", readID(point(), "ml.gpu.join"))
	r.c.at = r.c.at.Add(liveAge)
	assert.Equal(t, "rank", readID(point(), "ml.gpu.join"))
	r.c.at = r.c.at.Add(time.Second)
	assert.Empty(t, readID(point(), "ml.gpu.join"))
}

func TestARankOnTwoGPUsInTwoBatches(t *testing.T) {
	r := newRig(t)
	r.client(torchRank(0))
	joined := func(gpu string) bool {
		_, ok := r.metrics(gpuMetrics(t, gpu, 400, workloadRank(0)))["ml.run.info "+gpu]
		return ok
	}
	assert.True(t, joined("g0"))
	assert.False(t, joined("g1"), "another job of the same size")
	assert.False(t, joined("g0"))
	r.c.at = r.c.at.Add(2*time.Minute + time.Second)
	assert.True(t, joined("g1"), "the rank has moved")
}

func TestABreakdownNeedsFreshSizes(t *testing.T) {
	r := newRig(t)
	breakdown := func(process int64) map[string]pcommon.Map {
		points := r.metrics(gpuMetrics(t, "g0", process, workloadRank(0)))
		for name := range points {
			if len(name) < len(memoryBreakdown) || name[:len(memoryBreakdown)] != memoryBreakdown {
				delete(points, name)
			}
		}
		return points
	}
	r.client(torchRank(0))
	assert.Empty(t, breakdown(400), "the client has said nothing")
	r.metrics(allocator(t, 300, 200, torchRank(0)))
	assert.Len(t, breakdown(400), 6)
	r.client(torchRank(0))
	assert.Len(t, breakdown(400), 6, "spans say nothing about it")
	r.c.at = r.c.at.Add(memoryAge)
	assert.Len(t, breakdown(400), 6)
	r.c.at = r.c.at.Add(time.Second)
	assert.Empty(t, breakdown(400), "too old")

	two := allocator(t, 300, 200, torchRank(0))
	allocator(t, 300, 200, torchRank(0)).ResourceMetrics().MoveAndAppendTo(two.ResourceMetrics())
	second := two.ResourceMetrics().At(1).ScopeMetrics()
	second.At(0).Metrics().MoveAndAppendTo(two.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics())
	r.metrics(two)
	assert.Empty(t, breakdown(400), "of two GPUs, and the client does not say which")
	r.metrics(allocator(t, 300, -1, torchRank(0)))
	assert.Empty(t, breakdown(400), "no size")
}

func TestABreakdownThatDoesNotFitIsCounted(t *testing.T) {
	p := startDefault(t)
	p.sendMetrics(t, allocator(t, 401, 200, torchRank(0)))
	out := p.sendMetrics(t, gpuMetrics(t, "g0", 400, workloadRank(0)))
	for _, sm := range out.ResourceMetrics().At(0).ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			assert.NotEqual(t, memoryBreakdown, m.Name())
		}
	}
	metadatatest.AssertEqualProcessorMlEnrichBreakdownsSkipped(t, p.telemetry, []metricdata.DataPoint[int64]{
		{Value: 1, Attributes: attribute.NewSet(attribute.String("processor", metadata.Type.String()))},
	}, metricdatatest.IgnoreTimestamp())
}

// TestRunsOfSpansAreAtEveryPlace: a service that holds many runs is at its pod
// with all of them.
func TestRunsOfSpansAreAtEveryPlace(t *testing.T) {
	r := newRig(t)
	send := func(run string) {
		td := batchOf("tuft", testSpan{1, 1, 0, "training_backend.forward", map[string]any{"tuft.lora_id": run}})
		td.ResourceSpans().At(0).Resource().Attributes().PutStr("k8s.pod.uid", "pod")
		_, err := r.e.processTraces(context.Background(), td)
		require.NoError(t, err)
	}
	join := func() string {
		return readID(r.metrics(gpuMetrics(t, "g0", 1, map[string]any{"k8s.pod.uid": "pod"}))[mlattr.GPUWorkloadMemory+" g0"], "ml.gpu.join")
	}
	send("a")
	assert.Equal(t, "pod", join())
	send("b")
	assert.Empty(t, join())
}

func TestPlacesOfRunsAreBounded(t *testing.T) {
	r := newRig(t)
	for i := range 2_500 {
		r.client(map[string]any{"service.name": "trainer", "mlflow.run_id": "r" + strconv.Itoa(i), "host.name": "n" + strconv.Itoa(i),
			"container.id": strconv.Itoa(i), "k8s.pod.uid": strconv.Itoa(i), "slurm.job.id": strconv.Itoa(i + 1),
			"process.pid": i + 1, "process.creation.time": "2023-11-14T22:00:00Z", "ml.gpu.index": 0,
			"ml.rank.global": 0, "ml.rank.local": 0, "ml.world_size": 1})
	}
	assert.Equal(t, 16384, r.e.store.gpus.Size().Entries)
}

// TestASlurmJobOnTwoHosts shows that a GPU is only joined to what runs on its
// own host, where the job has several runs or its client says what it has of a
// GPU's memory.
func TestASlurmJobOnTwoHosts(t *testing.T) {
	client := func(host, run string) map[string]any {
		attrs := map[string]any{"service.name": "trainer", "SLURM_JOB_ID": "42"}
		if host != "" {
			attrs["host.name"] = host
		}
		if run != "" {
			attrs["mlflow.run_id"] = run
		}
		return attrs
	}
	gpu := func(r *rig, host string) (workload pcommon.Map, breakdown bool) {
		md := gpuMetrics(t, "g-"+host, 400, map[string]any{"slurm.job.id": "42"})
		for _, m := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
			m.Sum().DataPoints().At(0).Attributes().PutStr("host.name", host)
		}
		points := r.metrics(md)
		_, breakdown = points[memoryBreakdown+" g-"+host+"free"]
		return points[mlattr.GPUWorkloadMemory+" g-"+host], breakdown
	}
	joined := func(r *rig, host string) string {
		workload, _ := gpu(r, host)
		return readID(workload, "ml.run.id")
	}

	r := newRig(t)
	r.client(client("n1", "a"))
	assert.Equal(t, "a", joined(r, "n1"))
	assert.Empty(t, joined(r, "n2"), "a run of the job on another host")
	r.client(client("n2", "b"))
	assert.Equal(t, "a", joined(r, "n1"))
	assert.Equal(t, "b", joined(r, "n2"))
	r.client(client("n3", "c"))
	assert.Equal(t, []string{"a", "b", "c"}, []string{joined(r, "n1"), joined(r, "n2"), joined(r, "n3")}, "three hosts")
	r.client(client("n1", "d"))
	assert.Equal(t, []string{"", "b"}, []string{joined(r, "n1"), joined(r, "n2")}, "two runs of the job on one host")

	r = newRig(t)
	r.client(client("n1", ""))
	r.metrics(allocator(t, 300, 200, map[string]any{"service.name": "torchtel", "job_id": 42, "host": "n1"}))
	workload, breakdown := gpu(r, "n1")
	assert.Equal(t, "42", readID(workload, "ml.run.id"))
	assert.False(t, breakdown, "two processes of the run")
	r = newRig(t)
	torch := map[string]any{"service.name": "torchtel", "job_id": 42, "host": "n1", "local_rank": 0, "global_rank": 0, "world_size": 2}
	r.client(torch)
	r.metrics(allocator(t, 300, 200, torch))
	workload, breakdown = gpu(r, "n2")
	assert.Equal(t, "42", readID(workload, "ml.run.id"), "the job is the run, on whatever host")
	assert.Equal(t, "slurm", readID(workload, "ml.gpu.join"))
	assert.False(t, breakdown, "its memory is that of the other host")
	_, ranked := workload.Get("ml.rank.global")
	assert.False(t, ranked)
	workload, breakdown = gpu(r, "n1")
	assert.Equal(t, "42", readID(workload, "ml.run.id"))
	assert.True(t, breakdown)
	r.client(client("n2", "b"))
	assert.Equal(t, "b", joined(r, "n2"), "the host's own run comes first")

	r = newRig(t)
	r.client(client("", "a"))
	assert.Equal(t, "a", joined(r, "n1"), "a client that does not say its host")
	r.client(client("", "b"))
	assert.Empty(t, joined(r, "n1"))

	r = newRig(t)
	attrs := client("n1", "a")
	attrs["host.id"] = "i-1"
	r.client(attrs)
	md := gpuMetrics(t, "g", 400, map[string]any{"slurm.job.id": "42"})
	md.ResourceMetrics().At(0).Resource().Attributes().PutStr("host.id", "i-2")
	assert.NotContains(t, r.metrics(md), "ml.run.info g", "another host of the same name")
}

// TestSnakepitsMemory shows the parts of a GPU's memory by what a Snakepit node
// reports in megabytes, with and without what its allocator has.
func TestSnakepitsMemory(t *testing.T) {
	const mega = 1 << 20
	node := map[string]any{"service.name": "snakepit", "host.name": "n1", "k8s.pod.uid": "p"}
	report := func(r *rig, sizes map[string]float64, devices ...string) {
		md := pmetric.NewMetrics()
		rm := md.ResourceMetrics().AppendEmpty()
		require.NoError(t, rm.Resource().Attributes().FromRaw(node))
		for name, size := range sizes {
			m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
			m.SetName(name)
			m.SetEmptyGauge()
			for _, device := range devices {
				p := m.Gauge().DataPoints().AppendEmpty()
				p.SetDoubleValue(size)
				p.Attributes().PutStr("device", device)
			}
		}
		r.metrics(md)
	}
	parts := func(r *rig) map[string]int64 {
		md := gpuMetrics(t, "g", 400, map[string]any{"k8s.pod.uid": "p"})
		for _, m := range md.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
			p := m.Sum().DataPoints().At(0)
			p.SetIntValue(p.IntValue() * mega)
		}
		out, err := r.e.processMetrics(t.Context(), md)
		require.NoError(t, err)
		found := make(map[string]int64)
		for _, sm := range out.ResourceMetrics().At(0).ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Name() == memoryBreakdown {
					for _, p := range m.Sum().DataPoints().All() {
						found[readID(p.Attributes(), memoryKind)] = p.IntValue() / mega
					}
				}
			}
		}
		return found
	}
	one := "{:cuda, 0}"

	r := newRig(t)
	report(r, map[string]float64{"snakepit.memory.gpu.allocated_mb": 200, "snakepit.memory.gpu.free_mb": 900}, one)
	assert.Equal(t, map[string]int64{"allocated": 200, "process_other": 200, "other_processes": 0, "driver": 200, "free": 400}, parts(r))

	r = newRig(t)
	report(r, map[string]float64{"snakepit.memory.gpu.allocated_mb": 200, "snakepit.memory.gpu.reserved_mb": 300}, one)
	assert.Equal(t, map[string]int64{"allocated": 200, "cached": 100, "process_other": 100, "other_processes": 0, "driver": 200, "free": 400}, parts(r))

	r = newRig(t)
	report(r, map[string]float64{"snakepit.gpu.memory.used_mb": 500}, one)
	assert.Empty(t, parts(r), "what nvidia-smi says of the whole GPU is no process's")

	r = newRig(t)
	report(r, map[string]float64{"snakepit.memory.gpu.allocated_mb": 200}, one, "{:cuda, 1}")
	assert.Empty(t, parts(r), "of two GPUs")

	r = newRig(t)
	report(r, map[string]float64{"snakepit.memory.gpu.reserved_mb": 300}, one)
	assert.Empty(t, parts(r), "not what is allocated")
}

// TestAProcessIsAtAllItsPlaces has a client that says all there is of where it
// is: it is found at the last of its places too.
func TestAProcessIsAtAllItsPlaces(t *testing.T) {
	r := newRig(t)
	r.client(map[string]any{"service.name": "trainer", "host.name": "n1", "SLURM_JOB_ID": "42", "container.id": "c", "k8s.pod.uid": "p",
		"process.pid": 7, "process.creation.time": "2023-11-14T22:00:00Z", "ml.rank.global": 0, "ml.rank.local": 0, "ml.world_size": 1,
		"ml.gpu.index": 3})
	points := r.metrics(gpuMetrics(t, "g", 400, map[string]any{"nvidia.gpu.index": 3}))
	assert.Equal(t, "index", readID(points[mlattr.GPUWorkloadMemory+" g"], "ml.gpu.join"))
	other := gpuMetrics(t, "h", 400, map[string]any{"slurm.job.id": "42", "host.name": "n2"})
	for _, m := range other.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		m.Sum().DataPoints().At(0).Attributes().PutStr("host.name", "n2")
	}
	assert.Equal(t, "slurm", readID(r.metrics(other)[mlattr.GPUWorkloadMemory+" h"], "ml.gpu.join"))
}

// A process that names its GPU has it, whatever else is on its host; the prefix
// that NVML gives a UUID does not matter. If two workloads use the GPU, it is
// not known which of them is the process.
func TestTheGPUThatAClientNames(t *testing.T) {
	const uuid = "6a1b0c9e-0000-4000-8000-00000000000a"
	client := func(run, gpu string) map[string]any {
		return map[string]any{"service.name": "trainer", "host.name": "n1", "dl.rank": 7, "nemo.run.id": run, "dl.gpu.uuid": gpu}
	}
	for name, tt := range map[string]struct {
		clients   []map[string]any
		workloads []string
		want      string
	}{
		"as NVML spells it":        {clients: []map[string]any{client("a", "GPU-"+uuid), client("b", "GPU-other")}, workloads: []string{"u1"}, want: "a gpu"},
		"without the prefix":       {clients: []map[string]any{client("a", uuid), client("b", "other")}, workloads: []string{"u1"}, want: "a gpu"},
		"another GPU":              {clients: []map[string]any{client("a", "other")}, workloads: []string{"u1"}},
		"two runs name the GPU":    {clients: []map[string]any{client("a", uuid), client("b", uuid)}, workloads: []string{"u1"}},
		"two workloads on the GPU": {clients: []map[string]any{client("a", uuid)}, workloads: []string{"u1", "u2"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			for _, attrs := range tt.clients {
				r.client(attrs)
			}
			md := pmetric.NewMetrics()
			for _, user := range tt.workloads {
				gpuMetrics(t, "GPU-"+uuid, 100, map[string]any{"user.id": user}).ResourceMetrics().MoveAndAppendTo(md.ResourceMetrics())
			}
			attrs := r.metrics(md)[mlattr.GPUWorkloadMemory+" GPU-"+uuid]
			got := readID(attrs, mlattr.RunID)
			if got != "" {
				got += " " + readID(attrs, mlattr.GPUJoin)
			}
			assert.Equal(t, tt.want, got)
		})
	}
}
