package mlenrichprocessor

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/gpujoin"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/metadata"
)

// some gives attributes of few values each, so that clients and GPUs often have
// the same.
func (c *choices) some(attrs pcommon.Map, values map[string][]any, keys []string) {
	for _, key := range keys {
		if n := c.next(len(values[key]) + 2); n < len(values[key]) {
			if err := attrs.PutEmpty(key).FromRaw(values[key][n]); err != nil {
				panic(err)
			}
		}
	}
}

var (
	joinValues = map[string][]any{
		"host.name": {"n1", "n1", "n2"}, "host.id": {"h1", "h2"}, "container.id": {"c1", "c2"}, "k8s.pod.uid": {"p1", "p2"},
		"slurm.job.id": {"7", "8"}, "service.name": {"torchtel", "other"}, "ml.rank.global": {0, 1}, "ml.rank.local": {0, 1},
		"ml.world_size": {2, 1}, "process.pid": {7, 8}, "process.vpid": {7, 8}, "nvidia.gpu.index": {0, 1}, "ml.gpu.index": {0, 1},
		"process.creation.time": {"2023-11-14T22:00:00Z", "2023-11-14T22:00:00.9Z", "2023-11-14T22:10:00Z"},
		"mlflow.run_id":         {"r1", "r2", "r3"}, "ml.run.id": {"r1"}, "hw.id": {"g1", "g2"}, "user.id": {"1"},
		"TORCHELASTIC_RESTART_COUNT": {0, 3}, "kind": {"reserved", "allocated"},
	}
	clientKeys = []string{"host.name", "host.id", "container.id", "k8s.pod.uid", "slurm.job.id", "service.name", "ml.rank.global",
		"ml.rank.local", "ml.world_size", "process.pid", "process.creation.time", "mlflow.run_id", "TORCHELASTIC_RESTART_COUNT", "ml.gpu.index"}
	gpuKeys = []string{"hw.id", "nvidia.gpu.index", "ml.run.id", "container.id", "k8s.pod.uid", "slurm.job.id", "service.name",
		"ml.rank.global", "ml.rank.local", "ml.world_size", "user.id", "process.pid", "process.vpid", "process.creation.time"}
)

// FuzzJoinGPUs sends clients and GPUs that have much in common. Whatever comes
// in, a point gets a run that a client has, of whose clients one agrees with it
// on each trait, a breakdown adds up, and a second pass changes nothing.
func FuzzJoinGPUs(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &choices{data}
		td := ptrace.NewTraces()
		for range 1 + c.next(4) {
			rs := td.ResourceSpans().AppendEmpty()
			c.some(rs.Resource().Attributes(), joinValues, clientKeys)
			rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty().SetName("train")
		}
		md := pmetric.NewMetrics()
		for _, rs := range td.ResourceSpans().All() {
			rm := md.ResourceMetrics().AppendEmpty()
			rs.Resource().Attributes().CopyTo(rm.Resource().Attributes())
			m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
			m.SetName("gpu.memory.bytes")
			points := m.SetEmptyGauge().DataPoints()
			for range c.next(3) {
				p := points.AppendEmpty()
				p.SetIntValue(int64(c.next(6)) * 100)
				c.some(p.Attributes(), joinValues, []string{"kind"})
			}
		}
		rm := md.ResourceMetrics().AppendEmpty()
		c.some(rm.Resource().Attributes(), joinValues, []string{"host.name", "host.id"})
		ms := rm.ScopeMetrics().AppendEmpty().Metrics()
		for _, name := range []string{mlattr.GPUWorkloadMemory, "nvidia.gpu.process.memory.usage", mlattr.GPUMemoryLimit, mlattr.GPUMemoryUsage, mlattr.GPUMemoryReserved} {
			m := ms.AppendEmpty()
			m.SetName(name)
			points := m.SetEmptySum().DataPoints()
			for range c.next(5) {
				p := points.AppendEmpty()
				p.SetIntValue(int64(c.next(12)) * 100)
				if !gpujoin.Joinable(name) {
					c.some(p.Attributes(), joinValues, gpuKeys[:1])
				} else {
					c.some(p.Attributes(), joinValues, gpuKeys)
				}
			}
		}

		p := start(t, fuzzConfig())
		in := pmetric.NewMetrics()
		md.CopyTo(in)
		before := p.sendTraces(t, td)
		out := p.sendMetrics(t, md)
		checkEqual(t, metricsMaps(out), metricsMaps(p.sendMetrics(t, out)))
		checkJoins(t, before, out)
		for _, rm := range out.ResourceMetrics().All() {
			rm.ScopeMetrics().RemoveIf(func(sm pmetric.ScopeMetrics) bool { return sm.Scope().Name() == metadata.ScopeName })
		}
		checkOnlyAdded(t, metricsMaps(in), metricsMaps(out))
	})
}

// checkJoins asserts what FuzzJoinGPUs says of points and breakdowns.
func checkJoins(t *testing.T, clients ptrace.Traces, out pmetric.Metrics) {
	t.Helper()
	gpus := out.ResourceMetrics().At(out.ResourceMetrics().Len() - 1)
	host := gpus.Resource().Attributes()
	sums, limits := make(map[string]int64), make(map[string]map[int64]bool)
	key := func(attrs pcommon.Map) string {
		return readID(attrs, "hw.id") + "/" + readID(attrs, "ml.run.id") + "/" + readID(attrs, "ml.rank.global")
	}
	for _, sm := range gpus.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			for _, p := range m.Sum().DataPoints().All() {
				attrs := p.Attributes()
				switch m.Name() {
				case runInfo:
					require.EqualValues(t, 1, p.IntValue())
					require.NotEmpty(t, readID(attrs, "ml.run.id"))
				case memoryBreakdown:
					require.GreaterOrEqual(t, p.IntValue(), int64(0))
					sums[key(attrs)] += p.IntValue()
				case mlattr.GPUMemoryLimit:
					id := readID(attrs, "hw.id")
					if limits[id] == nil {
						limits[id] = make(map[int64]bool)
					}
					limits[id][p.IntValue()] = true
				}
				rule := readID(attrs, "ml.gpu.join")
				if rule == "" {
					continue
				}
				for _, trait := range []string{"ml.run.id", "ml.world_size", "slurm.job.id", "host.id"} {
					if rule == "slurm" && trait == "host.id" {
						continue
					}
					ours := readID(attrs, trait)
					if trait == "host.id" {
						ours = readID(host, trait)
					}
					has := false
					for _, rs := range clients.ResourceSpans().All() {
						client := rs.Resource().Attributes()
						theirs := readID(client, trait)
						has = has || readID(client, "ml.run.id") == readID(attrs, "ml.run.id") && (ours == "" || theirs == "" || ours == theirs)
					}
					require.True(t, has, "no client of the run has this %s: %s %v", trait, rule, attrs.AsRaw())
				}
			}
		}
	}
	for key, sum := range sums {
		require.True(t, limits[key[:2]][sum], "%s: %d", key, sum)
	}
}
