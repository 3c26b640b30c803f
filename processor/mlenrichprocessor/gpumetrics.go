package mlenrichprocessor

import (
	"context"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/metadata"
)

// The metrics that are added to the GPUs', and what is their own.
const (
	runInfo         = "ml.run.info"
	memoryBreakdown = "ml.gpu.memory.breakdown"
	memoryKind      = "ml.gpu.memory.kind"
)

// The gpu receiver's metrics that a breakdown needs.
const (
	gpuMemoryLimit = "hw.gpu.memory.limit"
	gpuMemoryUsage = "hw.gpu.memory.usage"
	gpuMemoryKept  = "nvidia.gpu.memory.reserved"
	workloadMemory = workloadPrefix + "memory.usage"
)

// gpuLabels tell a GPU from others, and bindingLabels a binding.
var (
	gpuLabels     = []string{mlattr.HardwareID, mlattr.HostName, "hw.parent", "nvidia.gpu.index", "nvidia.gpu.source"}
	bindingLabels = []string{
		mlattr.RunID, mlattr.RunAttempt, mlattr.JobID, mlattr.RankGlobal, mlattr.RankLocal, mlattr.WorldSize, mlattr.GPUShared,
	}
	breakdownLabels = []string{mlattr.RunID, mlattr.RunAttempt, mlattr.RankGlobal}
)

// gpuMemory is what the gpu receiver reports of a GPU's memory, in bytes.
type gpuMemory struct{ limit, used, kept count }

// sizesGPU says whether a metric is one of those.
func sizesGPU(name string) bool {
	return name == gpuMemoryLimit || name == gpuMemoryUsage || name == gpuMemoryKept
}

func (g *gpuMemory) read(name string, size count) {
	switch name {
	case gpuMemoryLimit:
		g.limit = size
	case gpuMemoryUsage:
		g.used = size
	case gpuMemoryKept:
		g.kept = size
	}
}

// ownMetrics adds metrics to resources, in a scope of the processor's own.
type ownMetrics struct {
	md pmetric.Metrics
	// scopes and points have what was added, by the resource and the metric.
	scopes map[int]pmetric.ScopeMetrics
	points map[ownMetric]pmetric.NumberDataPointSlice
	seen   map[string]bool
}

type ownMetric struct {
	resource int
	name     string
}

func newOwnMetrics(md pmetric.Metrics) *ownMetrics {
	return &ownMetrics{md: md, scopes: make(map[int]pmetric.ScopeMetrics),
		points: make(map[ownMetric]pmetric.NumberDataPointSlice), seen: make(map[string]bool)}
}

// add returns a new point of a metric, which is a sum that may fall.
func (o *ownMetrics) add(resource int, name, description, unit string) pmetric.NumberDataPoint {
	key := ownMetric{resource, name}
	points, ok := o.points[key]
	if !ok {
		sm, ok := o.scopes[resource]
		if !ok {
			sm = o.md.ResourceMetrics().At(resource).ScopeMetrics().AppendEmpty()
			sm.Scope().SetName(metadata.ScopeName)
			o.scopes[resource] = sm
		}
		m := sm.Metrics().AppendEmpty()
		m.SetName(name)
		m.SetDescription(description)
		m.SetUnit(unit)
		sum := m.SetEmptySum()
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		points = sum.DataPoints()
		o.points[key] = points
	}
	return points.AppendEmpty()
}

// maxLabelBytes bounds the value of a label. Names of devices and hosts are
// shorter.
const maxLabelBytes = 1 << 10

// first says whether there was no point of these labels yet.
func (o *ownMetrics) first(name string, attrs pcommon.Map, labels ...[]string) bool {
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
	if o.seen[key.String()] {
		return false
	}
	o.seen[key.String()] = true
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
// its own only where its workload's run is not known.
func (j *gpuJoin) addRunInfo(own *ownMetrics) {
	for i := range j.points {
		p := &j.points[i]
		t := &j.tenants[p.tenant]
		if p.run == "" || p.process >= 0 && t.hasPoints && (t.run != "" || t.binding.bound) {
			continue
		}
		if !own.first(runInfo, p.attrs, gpuLabels, bindingLabels) {
			continue
		}
		point := own.add(p.resource, runInfo, "1 for each run that uses the GPU, to join its labels to the GPU's series.", "")
		point.SetTimestamp(p.at)
		point.SetIntValue(1)
		copyLabels(p.attrs, point.Attributes(), gpuLabels, bindingLabels)
	}
}

// addBreakdowns adds the parts of a GPU's memory for each workload whose client
// reports its allocator's, and which is known to be of this GPU only.
func (e *enricher) addBreakdowns(ctx context.Context, j *gpuJoin, own *ownMetrics) {
	clients := make(map[tenantClient]int)
	for i := range j.tenants {
		if t := &j.tenants[i]; t.reports() {
			clients[t.client()]++
		}
	}
	for i := range j.points {
		p := &j.points[i]
		t := &j.tenants[p.tenant]
		if p.name != workloadMemory || p.run == "" || !t.reports() || clients[t.client()] > 1 {
			continue
		}
		g := &j.gpus[t.gpu]
		if !g.memory.limit.ok || !g.memory.used.ok || g.unsized || !own.first(memoryBreakdown, p.attrs, gpuLabels, breakdownLabels) {
			continue
		}
		sizes := memorySizes{limit: g.memory.limit.n, used: g.memory.used.n, kept: g.memory.kept.n, process: t.memory.n,
			others: g.workloads - t.memory.n, reserved: t.binding.memory.reserved, allocated: t.binding.memory.allocated}
		parts, ok := sizes.breakDown()
		if !ok {
			e.telemetry.ProcessorMlEnrichBreakdownsSkipped.Add(ctx, 1,
				metric.WithAttributes(attribute.String("processor", e.set.ID.String())))
			continue
		}
		for part, size := range parts {
			if !sizes.has(part) {
				continue
			}
			point := own.add(p.resource, memoryBreakdown, "The GPU's memory by what has it, as the run's client and the GPU report it.", "By")
			point.SetTimestamp(p.at)
			point.SetIntValue(size)
			copyLabels(p.attrs, point.Attributes(), gpuLabels, breakdownLabels)
			point.Attributes().PutStr(memoryKind, memoryParts[part])
		}
	}
}

// tenantClient is a client's process on a GPU.
type tenantClient struct {
	gpu    int
	client uint64
}

func (t *tenant) client() tenantClient { return tenantClient{t.gpu, t.binding.client} }

// reports says whether what the client reports of its memory is surely of the
// workload and its GPU.
func (t *tenant) reports() bool {
	b := &t.binding
	return b.bound && b.memory.ok && b.alone && !b.manyGPUs && !b.rung.weak() && t.memory.ok
}
