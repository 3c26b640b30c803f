//go:build cgo && linux

package nvmlsource

import (
	"context"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/podresources"
)

// slowAnswers are the last answers of the slow calls about one GPU, which each reading
// uses.
type slowAnswers struct {
	// asked is true once the calls were made.
	asked   bool
	numbers []value
	// listed is true if the driver listed the processes.
	listed    bool
	processes []device.Process
}

// apply adds the answers to a GPU's readings. It leaves out processes that have
// ended since.
func (a *slowAnswers) apply(read *device.GPU, alive func([]device.Process) []device.Process) {
	store(a.numbers, &read.Readings)
	if !a.listed {
		return
	}
	read.ProcessesKnown = true
	read.Processes = alive(a.processes)
	for i := range read.Processes {
		// Impossible values are removed from this copy.
		read.Processes[i].Utilization = maps.Clone(read.Processes[i].Utilization)
	}
}

// askAbout makes one call about a GPU and waits for it. The subject of calls about a MIG
// device is its GPU, because both hang together.
func askAbout[T any](ctx context.Context, s *Source, known *knownGPU, name string, question func() (T, status)) (T, status) {
	type answer struct {
		value  T
		result status
	}
	given, outcome := request(ctx, s, known.identity.Whole(), func() answer {
		value, result := ask(name, s.opts.Telemetry, question)
		return answer{value, result}
	}, func(answer) {})
	if given.result == "" {
		given.result = statusTimeout
		if outcome == abandoned && ctx.Err() == nil {
			s.opts.Telemetry.Failed(name, string(statusTimeout))
		}
	}
	return given.value, given.result
}

// maxProcesses bounds the processes of one GPU. More are left out and counted.
const maxProcesses = 1024

// kubeletTimeout is the limit for the kubelet's answer, which no reading waits
// for.
const kubeletTimeout = 5 * time.Second

// unavailableMemory is NVML's value if it does not know the memory of a process,
// for example on a MIG device without permission.
const unavailableMemory = ^uint64(0)

// processLists are the driver's answers about one GPU's processes in one reading.
type processLists struct {
	// byType are the processes by the names of device.ProcessTypes. A type
	// without an answer is missing.
	byType map[string][]nvml.ProcessInfo
	// samples are the samples since the lists before. They count only if
	// sampled is true, and then a process without samples was idle.
	samples []nvml.ProcessUtilizationSample
	sampled bool
}

// attribution describes processes and the GPUs' owners. It does not use the
// driver, and does not run on the goroutine that makes the driver's calls.
type attribution struct {
	opts    Options
	procs   *workload.Processes
	kubelet *podresources.Client
	// warned is true once it was logged that processes are not visible.
	warned bool
}

// newAttribution returns an attribution that has read nothing yet.
func newAttribution(opts Options) *attribution {
	return &attribution{opts: opts, procs: workload.NewProcesses(opts.RootPath, opts.UserNames), kubelet: podresources.NewClient(podresources.Options{
		Socket: filepath.Join("/", opts.RootPath, podresources.Socket), Interval: opts.SlowInterval, Timeout: kubeletTimeout,
		Logger: opts.Logger, Now: opts.Now,
	})}
}

// describe merges the lists, and reads each process's details and workload. It
// runs when the processes were listed. Processes that have ended meanwhile are left
// out.
func (a *attribution) describe(lists *processLists) []device.Process {
	processes, dropped := lists.merge()
	for range dropped {
		a.opts.Telemetry.Failed("processes", string(statusTooMany))
	}
	if len(processes) > 0 && !a.procs.Visible() && !a.warned {
		a.warned = true
		a.opts.Logger.Info("The host's processes are not visible, so that workloads have no names; the collector needs the host's PID namespace, or the host's root directory at root_path",
			zap.String("root_path", a.opts.RootPath))
	}
	described := processes[:0]
	for _, process := range processes {
		found, alive := a.procs.Describe(process.PID)
		if !alive {
			continue
		}
		process.Details, process.Workload, process.Evidence = found.Details, found.Workload, found.Evidence
		described = append(described, process)
	}
	return described
}

// alive returns a copy of the processes that have not ended since they were
// described. It runs for each GPU at each reading.
func (a *attribution) alive(processes []device.Process) []device.Process {
	return slices.DeleteFunc(slices.Clone(processes), func(p device.Process) bool { return !a.procs.Alive(p.PID, &p.Details) })
}

// complete sets the states of the attribution sources, the owners of the GPUs,
// and the pods of their processes. It runs last at each reading, with the
// processes that are alive.
func (a *attribution) complete(snapshot *device.Snapshot) {
	snapshot.Attribution = make(map[workload.Source]workload.SourceState, len(workload.Sources))
	for _, source := range workload.Sources {
		snapshot.Attribution[source] = workload.SourceAbsent
	}
	for i := range snapshot.GPUs {
		for j := range snapshot.GPUs[i].Processes {
			snapshot.GPUs[i].Processes[j].Evidence.Add(snapshot.Attribution)
		}
	}
	a.kubelet.Poll()
	owners, denied := a.kubelet.Owners()
	if denied {
		snapshot.Attribution[workload.SourcePodResources] = workload.SourceDenied
	}
	for i := range snapshot.GPUs {
		snapshot.GPUs[i].Owners = owners.Of(&snapshot.GPUs[i].Identity)
		if len(snapshot.GPUs[i].Owners) > 0 {
			snapshot.Attribution[workload.SourcePodResources] = workload.SourceOK
		}
	}
	namePods(snapshot.GPUs)
}

// merge returns the processes of all lists, in their order, each once, and the
// number of those that it left out.
func (l *processLists) merge() (processes []device.Process, dropped int) {
	indexes := make(map[uint32]int)
	for _, kind := range device.ProcessTypes {
		for _, listed := range l.byType[kind] {
			index, found := indexes[listed.Pid]
			if !found {
				if len(processes) >= maxProcesses {
					dropped++
					continue
				}
				index = len(processes)
				indexes[listed.Pid] = index
				processes = append(processes, device.Process{PID: listed.Pid})
			}
			if !slices.Contains(processes[index].Types, kind) {
				processes[index].Types = append(processes[index].Types, kind)
			}
			if listed.UsedGpuMemory != unavailableMemory {
				// Each list has the memory of the whole process.
				memory := max(processes[index].Memory.Value, float64(listed.UsedGpuMemory))
				processes[index].Memory = device.Read(memory)
			}
		}
	}
	if l.sampled {
		l.use(processes, indexes)
	}
	return processes, dropped
}

// use sets each process's use of the engines: the mean of its possible samples.
// If all of a process's samples are impossible, it is NaN, which is dropped and
// counted like every impossible value.
func (l *processLists) use(processes []device.Process, indexes map[uint32]int) {
	counts := make([]float64, len(processes))
	for i := range processes {
		processes[i].Utilization = device.Numbers{"general": 0, "encoder": 0, "decoder": 0}
	}
	for _, sample := range l.samples {
		index, found := indexes[sample.Pid]
		if !found {
			continue
		}
		mean := processes[index].Utilization
		if max(sample.SmUtil, sample.EncUtil, sample.DecUtil) > 100 {
			if counts[index] == 0 {
				for task := range mean {
					mean[task] = math.NaN()
				}
			}
			continue
		}
		if counts[index]++; counts[index] == 1 {
			clear(mean)
		}
		for task, value := range map[string]uint32{"general": sample.SmUtil, "encoder": sample.EncUtil, "decoder": sample.DecUtil} {
			mean[task] += (float64(value)/100 - mean[task]) / counts[index]
		}
	}
}
