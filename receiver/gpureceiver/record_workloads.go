package gpureceiver

import (
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
)

// maxWorkloads bounds the workload series of one GPU.
const maxWorkloads = 128

// recordWorkloads makes the points of a GPU's processes and workloads. It returns the
// number of processes that were added to the unknown workload because there are too many.
func (p *points) recordWorkloads(gpu *device.GPU) (merged int) {
	sums := &groups{limit: maxWorkloads, index: make(map[workload.Workload]int)}
	for _, process := range gpu.Processes {
		general, known := process.Utilization["general"]
		if !process.Serves {
			sums.add(process.Workload, process.Memory, device.Number{Value: general, Known: known})
		}
		p.recordProcess(&process)
	}
	for _, pod := range idleOwners(gpu) {
		// One that has a process is there already. The others hold 0 bytes of memory.
		if !slices.ContainsFunc(sums.sums, func(sum groupSum) bool { return sum.workload.Pod == pod }) {
			addKnown(&sums.of(workload.Workload{Pod: pod}).memory, device.Read(0))
		}
	}
	p.recordProcessTypes(gpu)
	for _, sum := range sums.sums {
		attributes := p.with(workloadAttributes(&sum.workload)...)
		if sum.memory.Known {
			p.RecordNvidiaGpuWorkloadMemoryUsageDataPoint(p.now, int64(sum.memory.Value), p.id, p.host, p.index, attributes...)
		}
		if sum.utilization.Known {
			p.RecordNvidiaGpuWorkloadUtilizationDataPoint(p.now, min(sum.utilization.Value, 1), p.id, p.host, p.index, attributes...)
		}
	}
	return sums.merged
}

// idleOwners returns the containers that have a GPU and no process on it. It
// returns none if the driver did not list the processes, if a process could belong
// to any of the containers, or if any could use an MPS server whose clients are not listed.
func idleOwners(gpu *device.GPU) []workload.Pod {
	if !gpu.ProcessesKnown {
		return nil
	}
	for _, process := range gpu.Processes {
		if !process.Serves && (process.MPSServer() || process.Workload.Pod.Container == "" && !process.Evidence.OnHost(&process.Workload)) {
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
			count += shared.OneIf[int64](slices.Contains(gpu.Processes[i].Types, kind))
		}
		p.RecordNvidiaGpuProcessesDataPoint(p.now, count, p.id, p.host, p.index, metadata.MapAttributeNvidiaGpuProcessType[kind], p.labels...)
	}
}

// groupSum is the use of a GPU by all processes of one workload.
type groupSum struct {
	workload workload.Workload
	// memory is in bytes, and utilization the fraction of time, 0 to 1.
	memory, utilization device.Number
}

// groups sums the use of a GPU by workload, in the order of the first use.
type groups struct {
	// limit is the number of workloads beside the unknown one.
	limit int
	// merged is the number of processes that were added to the unknown workload
	// because of the limit.
	merged int
	sums   []groupSum
	index  map[workload.Workload]int
}

// add adds a process's use to its workload. Beyond the limit it adds the use of a new
// workload to the unknown workload, so that the total stays right.
func (g *groups) add(w workload.Workload, memory, utilization device.Number) {
	sum := g.of(w)
	addKnown(&sum.memory, memory)
	addKnown(&sum.utilization, utilization)
}

// addKnown adds a number. An unknown number adds nothing.
func addKnown(to *device.Number, number device.Number) {
	if number.Known {
		*to = device.Read(to.Value + number.Value)
	}
}

// of returns the sum of a workload. It is valid until the next call.
func (g *groups) of(w workload.Workload) *groupSum {
	i, found := g.index[w]
	if !found && w != (workload.Workload{}) && len(g.sums) >= g.limit {
		g.merged++
		w = workload.Workload{}
		i, found = g.index[w]
	}
	if !found {
		i = len(g.sums)
		g.index[w] = i
		g.sums = append(g.sums, groupSum{workload: w})
	}
	return &g.sums[i]
}
