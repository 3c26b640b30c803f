package surroundings

import (
	"cmp"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/gpupoint"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/attr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/gpustate"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

// maxGPUPoints is how many points of a batch are read; a host with eight GPUs has
// some hundred.
const maxGPUPoints = 8192

// quantities are those that may show the cause of a failure.
var quantities = map[gpupoint.Quantity]gpustate.Quantity{
	gpupoint.MemoryUsed:          gpustate.MemoryUsed,
	gpupoint.MemoryLimit:         gpustate.MemoryLimit,
	gpupoint.Utilization:         gpustate.Utilization,
	gpupoint.Status:              gpustate.Status,
	gpupoint.Throttle:            gpustate.Throttled,
	gpupoint.WorkloadMemory:      gpustate.WorkloadMemory,
	gpupoint.WorkloadUtilization: gpustate.WorkloadUtilization,
	gpupoint.ProcessMemory:       gpustate.WorkloadMemory,
}

// AddMetrics reads the GPUs' metrics of a batch.
func (m *View) AddMetrics(md pmetric.Metrics, now time.Time) {
	var points []gpustate.Point
	for _, rm := range md.ResourceMetrics().All() {
		var device *gpupoint.Device
		for _, sm := range rm.ScopeMetrics().All() {
			for _, one := range sm.Metrics().All() {
				of, ok := quantities[gpupoint.QuantityOf(one.Name())]
				if !ok {
					continue
				}
				if device == nil {
					read := gpupoint.DeviceOf(rm.Resource().Attributes())
					device = &read
				}
				points = appendGPUPoints(points, of, one, device)
			}
		}
	}
	if len(points) > 0 {
		m.gpus.Apply(points, now)
	}
}

func appendGPUPoints(points []gpustate.Point, of gpustate.Quantity, m pmetric.Metric, resource *gpupoint.Device) []gpustate.Point {
	for read, attrs := range gpupoint.Points(m, resource) {
		if len(points) == maxGPUPoints {
			break
		}
		p := gpustate.Point{
			Host: read.Host, ID: read.ID, Index: gpustate.Unknown, At: int64(read.At), Quantity: of,
			Name: read.Name, Value: read.Value, Replayed: read.Replayed(),
		}
		if index, err := strconv.ParseInt(read.Index, 10, 64); err == nil {
			p.Index = jsontree.Known(index)
		}
		if of == gpustate.WorkloadMemory || of == gpustate.WorkloadUtilization {
			p.Workload = workloadOf(attrs)
		}
		points = append(points, p)
	}
	return points
}

// workloadOf reads the workload of a point, as the gpu receiver and ml_enrich
// write it.
func workloadOf(attributes pcommon.Map) gpustate.Workload {
	run, h := gpupoint.HolderOf(attributes)
	w := gpustate.Workload{
		Run: run, Join: attr.Text(attributes, mlattr.GPUJoin), Service: h.Service, Rank: h.Rank,
		Job: cmp.Or(attr.Text(attributes, mlattr.JobID), h.Job), User: h.UserID, Namespace: h.Namespace, Pod: h.Pod,
	}
	w.PID, _ = attr.IntIn([]pcommon.Map{attributes}, "process.pid")
	return w
}
