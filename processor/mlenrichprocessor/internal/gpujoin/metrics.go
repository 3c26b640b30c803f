package gpujoin

import (
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/metadata"
)

// addedMetric is a metric that is added, and the labels that its points copy.
type addedMetric struct {
	name, description, unit string
	labels                  []string
}

var (
	runInfo = addedMetric{
		name: "ml.run.info", description: "1 for each run that uses the GPU, to join its labels to the GPU's series.",
		labels: slices.Concat(gpuLabels, []string{mlattr.RunID, mlattr.RunAttempt, mlattr.JobID, mlattr.RankGlobal, mlattr.RankLocal, mlattr.WorldSize, mlattr.GPUShared}),
	}
	memoryBreakdown = addedMetric{
		name: "ml.gpu.memory.breakdown", description: "The GPU's memory by what has it, as the run's client and the GPU report it.", unit: "By",
		labels: slices.Concat(gpuLabels, []string{mlattr.RunID, mlattr.RunAttempt, mlattr.RankGlobal}),
	}
	// gpuLabels tell a GPU from others.
	gpuLabels = []string{mlattr.HardwareID, mlattr.HostName, mlattr.HardwareParent, mlattr.NVIDIAIndex, mlattr.GPUSource}
	// gpuSizes are the metrics of the gpu receiver about a GPU's memory, in bytes.
	gpuSizes = []string{mlattr.GPUMemoryLimit, mlattr.GPUMemoryUsage, mlattr.GPUMemoryReserved}
)

// memoryKind is the attribute that memoryBreakdown has of its own.
const memoryKind = "ml.gpu.memory.kind"

// addedMetrics adds metrics to resources, in a scope of the processor's own.
type addedMetrics struct {
	md pmetric.Metrics
	// scopes and points have what was added, by the resource and the metric.
	scopes map[int]pmetric.ScopeMetrics
	points map[pointsKey]pmetric.NumberDataPointSlice
	seen   map[string]bool
}

type pointsKey struct {
	resource int
	name     string
}

// add adds to a metric, which is a sum that may fall, a point with the labels of another.
func (a *addedMetrics) add(metric *addedMetric, of *point, value int64) pcommon.Map {
	points := shared.Entry(a.points, pointsKey{of.resource, metric.name}, func() pmetric.NumberDataPointSlice {
		sm := shared.Entry(a.scopes, of.resource, func() pmetric.ScopeMetrics {
			sm := a.md.ResourceMetrics().At(of.resource).ScopeMetrics().AppendEmpty()
			sm.Scope().SetName(metadata.ScopeName)
			return sm
		})
		m := sm.Metrics().AppendEmpty()
		m.SetName(metric.name)
		m.SetDescription(metric.description)
		m.SetUnit(metric.unit)
		sum := m.SetEmptySum()
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		return sum.DataPoints()
	})
	added := points.AppendEmpty()
	added.SetTimestamp(of.at)
	added.SetIntValue(value)
	for _, label := range metric.labels {
		if v, ok := of.attrs.Get(label); ok {
			mlattr.Copy(v, added.Attributes().PutEmpty(label), maxLabelBytes)
		}
	}
	return added.Attributes()
}

// maxLabelBytes bounds the value of a label. Names of devices and hosts are
// shorter.
const maxLabelBytes = 1 << 10

// first reports whether there was no point of a metric with these labels yet.
func (a *addedMetrics) first(metric *addedMetric, attrs pcommon.Map) bool {
	var key strings.Builder
	key.WriteString(metric.name)
	for _, label := range metric.labels {
		key.WriteByte('\n')
		if v, ok := attrs.Get(label); ok {
			text, _ := mlattr.Text(v, maxLabelBytes)
			key.WriteString(text)
		}
	}
	if a.seen[key.String()] {
		return false
	}
	a.seen[key.String()] = true
	return true
}

// addRunInfo adds a point for each run that uses a GPU. A process has one of
// its own only if its workload's run is unknown.
func (r *request) addRunInfo(added *addedMetrics) {
	for i := range r.points {
		p := &r.points[i]
		w := p.workload
		ofWorkload := p.process >= 0 && w.hasPoints && (w.run != "" || w.join.ok)
		if p.run != "" && !ofWorkload && added.first(&runInfo, p.attrs) {
			added.add(&runInfo, p, 1)
		}
	}
}

// addBreakdowns adds the parts of a GPU's memory for each workload whose client
// reports its allocator's sizes and is known to use this GPU only. It returns
// how many were left out because their sizes contradict each other.
func (r *request) addBreakdowns(added *addedMetrics) (skipped int) {
	clients := make(map[clientOnGPU]int)
	for _, w := range r.workloads {
		if w.reports() {
			clients[w.client()]++
		}
	}
	for i := range r.points {
		p := &r.points[i]
		w := p.workload
		if p.name != mlattr.GPUWorkloadMemory || p.run == "" || !w.reports() || clients[w.client()] > 1 {
			continue
		}
		g := w.gpu
		limit, used := g.memory[mlattr.GPUMemoryLimit], g.memory[mlattr.GPUMemoryUsage]
		if !limit.ok || !used.ok || g.unsized || !added.first(&memoryBreakdown, p.attrs) {
			continue
		}
		sizes := memorySizes{limit: limit.n, used: used.n, kept: g.memory[mlattr.GPUMemoryReserved].n, process: w.memory.n,
			others: g.inUse - w.memory.n, reserved: w.join.memory.reserved, allocated: w.join.memory.allocated}
		parts, ok := sizes.breakDown()
		if !ok {
			skipped++
			continue
		}
		for part, size := range parts {
			if kind := memoryParts[part]; kind != partCached || sizes.reserved.ok {
				added.add(&memoryBreakdown, p, size).PutStr(memoryKind, kind)
			}
		}
	}
	return skipped
}

// clientOnGPU is a client's process on a GPU.
type clientOnGPU struct {
	gpu    *gpu
	client uint64
}

func (w *workload) client() clientOnGPU { return clientOnGPU{w.gpu, w.join.client} }

// reports reports whether what the client says of its memory is certainly about
// the workload and its GPU.
func (w *workload) reports() bool {
	j := &w.join
	return j.ok && j.memory.ok && j.alone && !j.manyGPUs && !j.rule.weak() && w.memory.ok
}
