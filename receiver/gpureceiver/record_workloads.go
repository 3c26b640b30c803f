package gpureceiver

import (
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
)

// maxWorkloads bounds the workload series of one GPU.
const maxWorkloads = 128

// workloadMetrics are those about the processes on a GPU.
func workloadMetrics() []gpuMetric {
	return []gpuMetric{
		needs(declared.NvidiaGpuProcesses.Name, device.ProcessList),
		needs(declared.NvidiaGpuProcessMemoryUsage.Name, device.ProcessList),
		needs(declared.NvidiaGpuProcessUtilization.Name, device.ProcessList, device.ProcessUtilization),
		needs(declared.NvidiaGpuWorkloadMemoryUsage.Name, device.ProcessList),
		needs(declared.NvidiaGpuWorkloadUtilization.Name, device.ProcessList, device.ProcessUtilization),
	}
}

// recordWorkloads makes the points of a GPU's processes and workloads. It sums
// them in groups.
func (p *points) recordWorkloads(gpu *device.GPU, groups *groups) {
	groups.reset()
	for i := range gpu.Processes {
		process := &gpu.Processes[i]
		general, known := process.Utilization["general"]
		groups.add(process.Workload, process.Memory, device.Number{Value: general, Known: known})
		p.recordProcess(process)
	}
	for _, pod := range idleOwners(gpu) {
		groups.addOwner(pod)
	}
	p.recordProcessTypes(gpu)
	for _, sum := range groups.sums {
		attributes := p.with(workloadAttributes(&sum.workload)...)
		if sum.memory.Known {
			p.RecordNvidiaGpuWorkloadMemoryUsageDataPoint(p.now, int64(sum.memory.Value), p.id, p.host, p.index, attributes...)
		}
		if sum.utilization.Known {
			p.RecordNvidiaGpuWorkloadUtilizationDataPoint(p.now, min(sum.utilization.Value, 1), p.id, p.host, p.index, attributes...)
		}
	}
}

// idleOwners returns the containers that have a GPU and no process on it. It
// returns none if the driver did not list the processes, or if a process could
// belong to any of the containers.
func idleOwners(gpu *device.GPU) []workload.Pod {
	if !gpu.ProcessesKnown {
		return nil
	}
	for i := range gpu.Processes {
		process := &gpu.Processes[i]
		if process.Workload.Pod.Container == "" && !process.Evidence.OnHost(&process.Workload) {
			return nil
		}
	}
	return gpu.Owners
}

func (p *points) recordProcess(process *device.Process) {
	if !p.cfg.Metrics.NvidiaGpuProcessMemoryUsage.Enabled && !p.cfg.Metrics.NvidiaGpuProcessUtilization.Enabled {
		return
	}
	details, attributes := &process.Details, workloadAttributes(&process.Workload)
	attributes.Text(details.Executable, metadata.WithProcessExecutableNameMetricAttribute)
	attributes.Number(details.NamespacePID, metadata.WithProcessVpidMetricAttribute)
	if !details.Start.IsZero() {
		attributes.Text(details.Start.UTC().Format(time.RFC3339Nano), metadata.WithProcessCreationTimeMetricAttribute)
	}
	attributes = p.with(attributes...)
	if process.Memory.Known {
		p.RecordNvidiaGpuProcessMemoryUsageDataPoint(p.now, int64(process.Memory.Value), p.id, p.host, p.index, int64(process.PID), attributes...)
	}
	for _, task := range device.ProcessTasks {
		if value, known := process.Utilization[task]; known {
			p.RecordNvidiaGpuProcessUtilizationDataPoint(p.now, value, p.id, p.host, p.index, int64(process.PID),
				metadata.MapAttributeHwGpuTask[task], attributes...)
		}
	}
}

// recordProcessTypes makes the points of the number of processes of each type.
func (p *points) recordProcessTypes(gpu *device.GPU) {
	if !gpu.ProcessesKnown {
		return
	}
	for _, kind := range device.ProcessTypes {
		count := int64(0)
		for i := range gpu.Processes {
			count += oneIf(slices.Contains(gpu.Processes[i].Types, kind))
		}
		p.RecordNvidiaGpuProcessesDataPoint(p.now, count, p.id, p.host, p.index, metadata.MapAttributeNvidiaGpuProcessType[kind], p.labels...)
	}
}

// workloadAttributes returns the known attributes of a workload.
func workloadAttributes(w *workload.Workload) (a workload.Attributes[metadata.MetricAttributeOption]) {
	a.Text(w.RunID, metadata.WithMlRunIDMetricAttribute)
	a.Number(w.RunAttempt, metadata.WithMlRunAttemptMetricAttribute)
	a.Number(w.RankGlobal, metadata.WithMlRankGlobalMetricAttribute)
	a.Number(w.RankLocal, metadata.WithMlRankLocalMetricAttribute)
	a.Number(w.WorldSize, metadata.WithMlWorldSizeMetricAttribute)
	a.Text(w.SlurmJobID, metadata.WithSlurmJobIDMetricAttribute)
	a.Text(w.ContainerID, metadata.WithContainerIDMetricAttribute)
	a.Text(w.PodUID, metadata.WithK8sPodUIDMetricAttribute)
	a.Text(w.Pod.Namespace, metadata.WithK8sNamespaceNameMetricAttribute)
	a.Text(w.Pod.Name, metadata.WithK8sPodNameMetricAttribute)
	a.Text(w.Pod.Container, metadata.WithK8sContainerNameMetricAttribute)
	a.Text(w.ServiceName, metadata.WithServiceNameMetricAttribute)
	a.Text(w.UserID, metadata.WithUserIDMetricAttribute)
	a.Text(w.UserName, metadata.WithUserNameMetricAttribute)
	return a
}
