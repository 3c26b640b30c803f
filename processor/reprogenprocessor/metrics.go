package reprogenprocessor

import (
	"context"
	"strings"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/gpustate"
)

// maxGPUPoints is how many points of a batch are looked at; a host with eight
// GPUs has some hundred.
const maxGPUPoints = 8192

// metricsProcessor remembers how GPUs are and passes everything on.
type metricsProcessor struct {
	instance
	next consumer.Metrics
}

// Capabilities says that metrics are left as they are.
func (*metricsProcessor) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: false}
}

// ConsumeMetrics looks for the GPUs' metrics and passes the batch on.
func (p *metricsProcessor) ConsumeMetrics(ctx context.Context, md pmetric.Metrics) error {
	p.recorder.sawMetrics(md)
	return p.next.ConsumeMetrics(ctx, md)
}

// gpuMetric says what a metric tells of a GPU, and which attribute names it.
type gpuMetric struct {
	quantity gpustate.Quantity
	name     string
	only     string // the one value of name that counts, or ""
}

// gpuMetrics are the metrics of the gpu receiver that tell what a failure may
// come from.
var gpuMetrics = map[string]gpuMetric{
	"hw.gpu.memory.usage":              {quantity: gpustate.MemoryUsed},
	"hw.gpu.memory.limit":              {quantity: gpustate.MemoryLimit},
	"hw.gpu.utilization":               {quantity: gpustate.Utilization, name: "hw.gpu.task", only: "general"},
	"hw.status":                        {quantity: gpustate.Status, name: "hw.state"},
	"nvidia.gpu.throttle.active":       {quantity: gpustate.Throttled, name: "nvidia.gpu.throttle.reason"},
	"nvidia.gpu.workload.memory.usage": {quantity: gpustate.WorkloadMemory},
	"nvidia.gpu.workload.utilization":  {quantity: gpustate.WorkloadUtilization},
	"nvidia.gpu.process.memory.usage":  {quantity: gpustate.WorkloadMemory},
}

// sawMetrics looks at a batch of metrics for those of GPUs. It never blocks
// and never fails; of other metrics it reads the first letters of the name.
func (r *recorder) sawMetrics(md pmetric.Metrics) {
	var points []gpustate.Point
	for _, rm := range md.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if !strings.HasPrefix(m.Name(), "hw.") && !strings.HasPrefix(m.Name(), "nvidia.") {
					continue
				}
				if of, ok := gpuMetrics[m.Name()]; ok {
					points = appendGPUPoints(points, of, m, rm.Resource().Attributes())
				}
			}
		}
	}
	if len(points) > 0 {
		r.gpus.Apply(points, r.now())
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
			Host: oneOf(maps[:], mlattr.HostName), ID: oneOf(maps[:], mlattr.HardwareID),
			Index: gpustate.Unknown, At: int64(v.Timestamp()), Quantity: of.quantity,
			Replayed: oneOf(maps[:], "nvidia.gpu.source") == "replay",
		}
		if of.name != "" {
			if p.Name = firstText(v.Attributes(), of.name); of.only != "" && p.Name != of.only {
				continue
			}
		}
		// Fans and disks have a hw.status too.
		if kind := oneOf(maps[:], "hw.type"); kind != "" && kind != "gpu" {
			continue
		}
		if index, ok := intOf(maps[:], "nvidia.gpu.index"); ok {
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

// workloadOf reads what a point says of a workload, as the gpu receiver and
// ml_enrich write it.
func workloadOf(attributes pcommon.Map) gpustate.Workload {
	w := gpustate.Workload{
		Run: firstText(attributes, mlattr.RunID), Service: firstText(attributes, mlattr.ServiceName),
		Job: firstText(attributes, mlattr.JobID, "slurm.job.id"), User: firstText(attributes, "user.id"),
		Namespace: firstText(attributes, "k8s.namespace.name"), Pod: firstText(attributes, "k8s.pod.name"),
	}
	if v, ok := attributes.Get(mlattr.RankGlobal); ok {
		text, _ := mlattr.Text(v, maxRank)
		w.Rank = strings.Clone(text)
	}
	w.PID, _ = intOf([]pcommon.Map{attributes}, "process.pid")
	return w
}

// oneOf returns the text that the first of the maps has under a key.
func oneOf(maps []pcommon.Map, key string) string {
	for _, m := range maps {
		if text := firstText(m, key); text != "" {
			return text
		}
	}
	return ""
}

func intOf(maps []pcommon.Map, key string) (int64, bool) {
	for _, m := range maps {
		if v, ok := m.Get(key); ok && v.Type() == pcommon.ValueTypeInt {
			return v.Int(), true
		}
	}
	return 0, false
}
