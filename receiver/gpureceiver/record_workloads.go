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
func (p *points) recordWorkloads(gpu *device.GPU, groups *workload.Groups) {
	groups.Reset()
	for i := range gpu.Processes {
		process := &gpu.Processes[i]
		groups.Add(process.Workload, usage(process))
		p.recordProcess(process)
	}
	for _, pod := range idleOwners(gpu) {
		groups.AddOwner(pod)
	}
	p.recordProcessTypes(gpu)
	for _, sum := range groups.Sums() {
		attributes := p.with(workloadAttributes(sum.Workload)...)
		if sum.Memory.Known {
			p.RecordNvidiaGpuWorkloadMemoryUsageDataPoint(p.now, int64(sum.Memory.Value), p.id, p.host, p.index, attributes...)
		}
		if sum.Utilization.Known {
			p.RecordNvidiaGpuWorkloadUtilizationDataPoint(p.now, min(sum.Utilization.Value, 1), p.id, p.host, p.index, attributes...)
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

// usage is a process's part of its workload's usage.
func usage(process *device.Process) workload.Usage {
	u := workload.Usage{}
	if process.Memory.Known {
		u.Memory = workload.Amount{Value: process.Memory.Value, Known: true}
	}
	if value, known := process.Utilization["general"]; known {
		u.Utilization = workload.Amount{Value: value, Known: true}
	}
	return u
}

func (p *points) recordProcess(process *device.Process) {
	if !p.cfg.Metrics.NvidiaGpuProcessMemoryUsage.Enabled && !p.cfg.Metrics.NvidiaGpuProcessUtilization.Enabled {
		return
	}
	attributes := p.with(workloadAttributes(process.Workload)...)
	details := &process.Details
	if details.Executable != "" {
		attributes = append(attributes, metadata.WithProcessExecutableNameMetricAttribute(details.Executable))
	}
	if !details.Start.IsZero() {
		attributes = append(attributes, metadata.WithProcessCreationTimeMetricAttribute(details.Start.UTC().Format(time.RFC3339Nano)))
	}
	if details.NamespacePID.Known {
		attributes = append(attributes, metadata.WithProcessVpidMetricAttribute(details.NamespacePID.Value))
	}
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
func workloadAttributes(w workload.Workload) []metadata.MetricAttributeOption {
	var options []metadata.MetricAttributeOption
	text := func(value string, attribute func(string) metadata.MetricAttributeOption) {
		if value != "" {
			options = append(options, attribute(value))
		}
	}
	number := func(value workload.Number, attribute func(int64) metadata.MetricAttributeOption) {
		if value.Known {
			options = append(options, attribute(value.Value))
		}
	}
	text(w.RunID, metadata.WithMlRunIDMetricAttribute)
	number(w.RunAttempt, metadata.WithMlRunAttemptMetricAttribute)
	number(w.RankGlobal, metadata.WithMlRankGlobalMetricAttribute)
	number(w.RankLocal, metadata.WithMlRankLocalMetricAttribute)
	number(w.WorldSize, metadata.WithMlWorldSizeMetricAttribute)
	text(w.SlurmJobID, metadata.WithSlurmJobIDMetricAttribute)
	text(w.ContainerID, metadata.WithContainerIDMetricAttribute)
	text(w.PodUID, metadata.WithK8sPodUIDMetricAttribute)
	text(w.Pod.Namespace, metadata.WithK8sNamespaceNameMetricAttribute)
	text(w.Pod.Name, metadata.WithK8sPodNameMetricAttribute)
	text(w.Pod.Container, metadata.WithK8sContainerNameMetricAttribute)
	text(w.ServiceName, metadata.WithServiceNameMetricAttribute)
	text(w.UserID, metadata.WithUserIDMetricAttribute)
	text(w.UserName, metadata.WithUserNameMetricAttribute)
	return options
}
