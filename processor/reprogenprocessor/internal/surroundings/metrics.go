package surroundings

import (
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/attr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/gpustate"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/incident"
)

// maxGPUPoints is how many points of a batch are read; a host with eight GPUs has
// some hundred.
const maxGPUPoints = 8192

// gpuMetric is the quantity that a metric has of a GPU, and the attribute that
// names it.
type gpuMetric struct {
	quantity gpustate.Quantity
	name     string
	only     string // the one value of name that counts, or ""
}

// gpuMetrics are the metrics of the gpu receiver that may show the cause of a
// failure.
var gpuMetrics = map[string]gpuMetric{
	mlattr.GPUMemoryUsage:         {quantity: gpustate.MemoryUsed},
	mlattr.GPUMemoryLimit:         {quantity: gpustate.MemoryLimit},
	mlattr.GPUUtilization:         {quantity: gpustate.Utilization, name: mlattr.GPUTask, only: mlattr.GPUTaskGeneral},
	mlattr.GPUStatus:              {quantity: gpustate.Status, name: mlattr.HardwareState},
	mlattr.GPUThrottleActive:      {quantity: gpustate.Throttled, name: mlattr.GPUThrottleReason},
	mlattr.GPUWorkloadMemory:      {quantity: gpustate.WorkloadMemory},
	mlattr.GPUWorkloadUtilization: {quantity: gpustate.WorkloadUtilization},
	mlattr.GPUProcessMemory:       {quantity: gpustate.WorkloadMemory},
}

// AddMetrics reads the GPUs' metrics of a batch. Of other metrics it reads the
// first letters of the name.
func (m *View) AddMetrics(md pmetric.Metrics, now time.Time) {
	var points []gpustate.Point
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, one := range sm.Metrics().All() {
				if !strings.HasPrefix(one.Name(), "hw.") && !strings.HasPrefix(one.Name(), "nvidia.") {
					continue
				}
				if of, ok := gpuMetrics[one.Name()]; ok {
					points = appendGPUPoints(points, of, one, rm.Resource().Attributes())
				}
			}
		}
	}
	if len(points) > 0 {
		m.gpus.Apply(points, now)
	}
}

func appendGPUPoints(points []gpustate.Point, of gpuMetric, m pmetric.Metric, resource pcommon.Map) []gpustate.Point {
	var values pmetric.NumberDataPointSlice
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		values = m.Gauge().DataPoints()
	case pmetric.MetricTypeSum:
		values = m.Sum().DataPoints()
	default:
		return points
	}
	for _, v := range values.All() {
		if len(points) == maxGPUPoints || v.Flags().NoRecordedValue() {
			continue
		}
		maps := [...]pcommon.Map{v.Attributes(), resource}
		p := gpustate.Point{
			Host: attr.TextIn(maps[:], mlattr.HostName), ID: attr.TextIn(maps[:], mlattr.HardwareID),
			Index: gpustate.Unknown, At: int64(v.Timestamp()), Quantity: of.quantity,
			Replayed: attr.TextIn(maps[:], mlattr.GPUSource) == mlattr.GPUSourceReplay,
		}
		if of.name != "" {
			if p.Name = attr.Text(v.Attributes(), of.name); of.only != "" && p.Name != of.only {
				continue
			}
		}
		// Fans and disks have a hw.status too.
		if kind := attr.TextIn(maps[:], mlattr.HardwareType); kind != "" && kind != mlattr.HardwareTypeGPU {
			continue
		}
		if index, ok := attr.IntIn(maps[:], mlattr.NVIDIAIndex); ok {
			p.Index = index
		}
		if v.ValueType() == pmetric.NumberDataPointValueTypeInt {
			p.Value = float64(v.IntValue())
		} else {
			p.Value = v.DoubleValue()
		}
		if of.quantity == gpustate.WorkloadMemory || of.quantity == gpustate.WorkloadUtilization {
			p.Workload = workloadOf(v.Attributes())
		}
		points = append(points, p)
	}
	return points
}

// workloadOf reads the workload of a point, as the gpu receiver and ml_enrich
// write it.
func workloadOf(attributes pcommon.Map) gpustate.Workload {
	w := gpustate.Workload{
		Run: attr.Text(attributes, mlattr.RunID), Join: attr.Text(attributes, mlattr.GPUJoin), Service: attr.Text(attributes, mlattr.ServiceName),
		Job: attr.Text(attributes, mlattr.JobID, "slurm.job.id"), User: attr.Text(attributes, "user.id"),
		Namespace: attr.Text(attributes, "k8s.namespace.name"), Pod: attr.Text(attributes, "k8s.pod.name"),
	}
	if v, ok := attributes.Get(mlattr.RankGlobal); ok {
		text, _ := mlattr.Text(v, incident.MaxRank)
		w.Rank = strings.Clone(text)
	}
	w.PID, _ = attr.IntIn([]pcommon.Map{attributes}, "process.pid")
	return w
}
