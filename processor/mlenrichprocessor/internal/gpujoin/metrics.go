package gpujoin

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/metadata"
)

// The metrics that are added, and the attribute of their own.
const (
	runInfo         = "ml.run.info"
	memoryBreakdown = "ml.gpu.memory.breakdown"
	memoryKind      = "ml.gpu.memory.kind"
)

// gpuLabels tell a GPU from others, and joinLabels a join.
var (
	gpuLabels  = []string{mlattr.HardwareID, mlattr.HostName, mlattr.HardwareParent, mlattr.NVIDIAIndex, mlattr.GPUSource}
	joinLabels = []string{
		mlattr.RunID, mlattr.RunAttempt, mlattr.JobID, mlattr.RankGlobal, mlattr.RankLocal, mlattr.WorldSize, mlattr.GPUShared,
	}
	breakdownLabels = []string{mlattr.RunID, mlattr.RunAttempt, mlattr.RankGlobal}
)

// gpuMemory is what the gpu receiver reports of a GPU's memory, in bytes.
type gpuMemory struct{ limit, used, kept count }

// sizesGPU reports whether a metric is about a GPU's memory.
func sizesGPU(name string) bool {
	return name == mlattr.GPUMemoryLimit || name == mlattr.GPUMemoryUsage || name == mlattr.GPUMemoryReserved
}

func (g *gpuMemory) read(name string, size count) {
	switch name {
	case mlattr.GPUMemoryLimit:
		g.limit = size
	case mlattr.GPUMemoryUsage:
		g.used = size
	case mlattr.GPUMemoryReserved:
		g.kept = size
	}
}

// addedMetrics adds metrics to resources, in a scope of the processor's own.
type addedMetrics struct {
	md pmetric.Metrics
	// scopes and points have what was added, by the resource and the metric.
	scopes map[int]pmetric.ScopeMetrics
	points map[addedMetric]pmetric.NumberDataPointSlice
	seen   map[string]bool
}

type addedMetric struct {
	resource int
	name     string
}

func newAddedMetrics(md pmetric.Metrics) *addedMetrics {
	return &addedMetrics{md: md, scopes: make(map[int]pmetric.ScopeMetrics),
		points: make(map[addedMetric]pmetric.NumberDataPointSlice), seen: make(map[string]bool)}
}

// add returns a new point of a metric, which is a sum that may fall.
func (a *addedMetrics) add(resource int, name, description, unit string) pmetric.NumberDataPoint {
	key := addedMetric{resource, name}
	points, ok := a.points[key]
	if !ok {
		sm, ok := a.scopes[resource]
		if !ok {
			sm = a.md.ResourceMetrics().At(resource).ScopeMetrics().AppendEmpty()
			sm.Scope().SetName(metadata.ScopeName)
			a.scopes[resource] = sm
		}
		m := sm.Metrics().AppendEmpty()
		m.SetName(name)
		m.SetDescription(description)
		m.SetUnit(unit)
		sum := m.SetEmptySum()
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		points = sum.DataPoints()
		a.points[key] = points
	}
	return points.AppendEmpty()
}

// maxLabelBytes bounds the value of a label. Names of devices and hosts are
// shorter.
const maxLabelBytes = 1 << 10

// first reports whether there was no point of these labels yet.
func (a *addedMetrics) first(name string, attrs pcommon.Map, labels ...[]string) bool {
	var key strings.Builder
	key.WriteString(name)
	for _, list := range labels {
		for _, label := range list {
			key.WriteByte('\n')
			if v, ok := attrs.Get(label); ok {
				text, _ := mlattr.Text(v, maxLabelBytes)
				key.WriteString(text)
			}
		}
	}
	if a.seen[key.String()] {
		return false
	}
	a.seen[key.String()] = true
	return true
}

func copyLabels(from, to pcommon.Map, labels ...[]string) {
	for _, list := range labels {
		for _, label := range list {
			if v, ok := from.Get(label); ok {
				mlattr.Copy(v, to.PutEmpty(label), maxLabelBytes)
			}
		}
	}
}

// addRunInfo adds a point for each run that uses a GPU. A process has one of
// its own only if its workload's run is unknown.
func (r *request) addRunInfo(added *addedMetrics) {
	for i := range r.points {
		p := &r.points[i]
		w := &r.workloads[p.workload]
		if p.run == "" || p.process >= 0 && w.hasPoints && (w.run != "" || w.join.ok) {
			continue
		}
		if !added.first(runInfo, p.attrs, gpuLabels, joinLabels) {
			continue
		}
		point := added.add(p.resource, runInfo, "1 for each run that uses the GPU, to join its labels to the GPU's series.", "")
		point.SetTimestamp(p.at)
		point.SetIntValue(1)
		copyLabels(p.attrs, point.Attributes(), gpuLabels, joinLabels)
	}
}

// addBreakdowns adds the parts of a GPU's memory for each workload whose client
// reports its allocator's sizes and is known to use this GPU only. It returns
// how many were left out because their sizes contradict each other.
func (r *request) addBreakdowns(added *addedMetrics) (skipped int) {
	clients := make(map[clientOnGPU]int)
	for i := range r.workloads {
		if w := &r.workloads[i]; w.reports() {
			clients[w.client()]++
		}
	}
	for i := range r.points {
		p := &r.points[i]
		w := &r.workloads[p.workload]
		if p.name != mlattr.GPUWorkloadMemory || p.run == "" || !w.reports() || clients[w.client()] > 1 {
			continue
		}
		g := &r.gpus[w.gpu]
		if !g.memory.limit.ok || !g.memory.used.ok || g.unsized || !added.first(memoryBreakdown, p.attrs, gpuLabels, breakdownLabels) {
			continue
		}
		sizes := memorySizes{limit: g.memory.limit.n, used: g.memory.used.n, kept: g.memory.kept.n, process: w.memory.n,
			others: g.inUse - w.memory.n, reserved: w.join.memory.reserved, allocated: w.join.memory.allocated}
		parts, ok := sizes.breakDown()
		if !ok {
			skipped++
			continue
		}
		for part, size := range parts {
			if !sizes.has(part) {
				continue
			}
			point := added.add(p.resource, memoryBreakdown, "The GPU's memory by what has it, as the run's client and the GPU report it.", "By")
			point.SetTimestamp(p.at)
			point.SetIntValue(size)
			copyLabels(p.attrs, point.Attributes(), gpuLabels, breakdownLabels)
			point.Attributes().PutStr(memoryKind, memoryParts[part])
		}
	}
	return skipped
}

// clientOnGPU is a client's process on a GPU.
type clientOnGPU struct {
	gpu    int
	client uint64
}

func (w *workload) client() clientOnGPU { return clientOnGPU{w.gpu, w.join.client} }

// reports reports whether what the client says of its memory is certainly about
// the workload and its GPU.
func (w *workload) reports() bool {
	j := &w.join
	return j.ok && j.memory.ok && j.alone && !j.manyGPUs && !j.rule.weak() && w.memory.ok
}
