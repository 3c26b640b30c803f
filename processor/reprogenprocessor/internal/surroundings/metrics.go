package surroundings

import (
	"cmp"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/gpupoint"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/attr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/gpustate"
)

// maxGPUPoints is how many points of a batch are read; a host with eight GPUs has
// some hundred.
const maxGPUPoints = 8192

// AddMetrics reads the GPUs' metrics of a batch.
func (m *View) AddMetrics(md pmetric.Metrics, now time.Time) {
	var points []gpustate.Point
	for _, rm := range md.ResourceMetrics().All() {
		var device *gpupoint.Device
		for _, sm := range rm.ScopeMetrics().All() {
			for _, one := range sm.Metrics().All() {
				if !gpustate.Reads(gpupoint.QuantityOf(one.Name())) {
					continue
				}
				if device == nil {
					read := gpupoint.DeviceOf(rm.Resource().Attributes())
					device = &read
				}
				for p, attrs := range gpupoint.Points(one, device) {
					if len(points) == maxGPUPoints {
						break
					}
					points = append(points, gpustate.Point{Point: *p, Workload: workloadOf(attrs)})
				}
			}
		}
	}
	if len(points) > 0 {
		m.gpus.Apply(points, now)
	}
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
