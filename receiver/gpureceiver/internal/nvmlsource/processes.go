package nvmlsource

import (
	"context"
	"math"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/podresources"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/workload"
)

// maxProcesses bounds the processes of one GPU. Those beyond it are left out
// and counted.
const maxProcesses = 1024

// kubeletTimeout is how long the kubelet may take to answer. Nobody waits for
// it.
const kubeletTimeout = 5 * time.Second

// statusTooMany means that a GPU has more processes than maxProcesses.
const statusTooMany status = "TOO_MANY"

// processLists are what the driver told about one GPU's processes in one slow
// round.
type processLists struct {
	// byType are the processes by the names of device.ProcessTypes. A type
	// that is missing was not told.
	byType map[string][]process
	// samples are those since the round before. They count only if sampled is
	// true: then a process without any was idle.
	samples []processSample
	sampled bool
}

// attribution says what processes are and whose GPUs are. It reads no driver,
// so that none of it is done by the goroutine that makes the driver's calls.
type attribution struct {
	opts  Options
	procs *workload.Processes
	// kubelet is nil where none is to be asked.
	kubelet *podresources.Client
	// blind is true once it was logged that processes cannot be seen.
	blind bool
}

// newAttribution returns an attribution that has read nothing yet.
func newAttribution(opts Options) *attribution {
	a := &attribution{opts: opts, procs: workload.NewProcesses(opts.RootPath)}
	if opts.PodResourcesSocket != "" {
		a.kubelet = podresources.NewClient(podresources.Options{
			Socket: opts.PodResourcesSocket, Interval: opts.SlowInterval, Timeout: kubeletTimeout,
			Logger: opts.Logger, Now: opts.Now,
		})
	}
	return a
}

// start asks the kubelet, so that the first reading has an answer already.
func (a *attribution) start() {
	if a.kubelet != nil {
		a.kubelet.Poll()
	}
}

// shutdown lets go of everything and waits for it, until ctx ends.
func (a *attribution) shutdown(ctx context.Context) {
	if a.kubelet != nil {
		a.kubelet.Shutdown(ctx)
	}
}

// describe makes one process of what the lists say about each, and reads what
// it is and what it belongs to. It is called once for each GPU in each slow
// round. Processes that have ended meanwhile are left out.
func (a *attribution) describe(lists *processLists) []device.Process {
	processes, dropped := lists.merge()
	for range dropped {
		a.opts.Failed("processes", string(statusTooMany))
	}
	if len(processes) > 0 && !a.procs.Visible() && !a.blind {
		a.blind = true
		a.opts.Logger.Info("The host's processes cannot be seen, so that workloads have no names; the collector needs the host's PID namespace, or the host's root directory at root_path",
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

// living returns a copy of those processes that have not ended since they were
// described. It is called for each GPU at each reading.
func (a *attribution) living(processes []device.Process) []device.Process {
	alive := make([]device.Process, 0, len(processes))
	for i := range processes {
		if a.procs.Alive(processes[i].PID, &processes[i].Details) {
			alive = append(alive, processes[i])
		}
	}
	return alive
}

// complete fills in which ways of attribution work, the owners of the GPUs,
// and the pods of their processes, which it changes in place. It is called
// last at each reading, with the living processes.
func (a *attribution) complete(snapshot *device.Snapshot) {
	snapshot.Attribution = make(map[workload.Source]workload.SourceState, len(workload.Sources))
	for _, way := range workload.Sources {
		snapshot.Attribution[way] = workload.SourceAbsent
	}
	for i := range snapshot.GPUs {
		for j := range snapshot.GPUs[i].Processes {
			snapshot.GPUs[i].Processes[j].Evidence.Add(snapshot.Attribution)
		}
	}
	if a.kubelet == nil {
		return
	}
	a.kubelet.Poll()
	owners, state := a.kubelet.Owners()
	if state == workload.SourceDenied {
		snapshot.Attribution[workload.SourcePodResources] = state
	}
	for i := range snapshot.GPUs {
		snapshot.GPUs[i].Owners = owners.Of(&snapshot.GPUs[i].Identity)
		if len(snapshot.GPUs[i].Owners) > 0 {
			snapshot.Attribution[workload.SourcePodResources] = workload.SourceOK
		}
	}
	namePods(snapshot.GPUs)
}

// merge makes one process of what the lists say about each, in the order in
// which they come, and says how many it left out.
func (l *processLists) merge() (processes []device.Process, dropped int) {
	places := make(map[uint32]int)
	for _, kind := range device.ProcessTypes {
		for _, listed := range l.byType[kind] {
			place, found := places[listed.pid]
			if !found {
				if len(processes) >= maxProcesses {
					dropped++
					continue
				}
				place = len(processes)
				places[listed.pid] = place
				processes = append(processes, device.Process{PID: listed.pid})
			}
			if !slices.Contains(processes[place].Types, kind) {
				processes[place].Types = append(processes[place].Types, kind)
			}
			if listed.memory != unavailableMemory {
				// The lists of a process with several kinds of context give
				// the same memory, that of the process.
				memory := max(processes[place].Memory.Value, float64(listed.memory))
				processes[place].Memory = device.Read(memory)
			}
		}
	}
	if l.sampled {
		l.use(processes, places)
	}
	return processes, dropped
}

// use adds how much of the GPU's engines each process used: the mean of its
// samples that can be true. Where a process has others only, it is no number,
// which is dropped and counted like every value that cannot be true.
func (l *processLists) use(processes []device.Process, places map[uint32]int) {
	counts := make([]float64, len(processes))
	for i := range processes {
		processes[i].Utilization = device.Numbers{"general": 0, "encoder": 0, "decoder": 0}
	}
	for _, sample := range l.samples {
		place, found := places[sample.pid]
		if !found {
			continue
		}
		mean := processes[place].Utilization
		if max(sample.general, sample.encoder, sample.decoder) > 100 {
			if counts[place] == 0 {
				for task := range mean {
					mean[task] = math.NaN()
				}
			}
			continue
		}
		if counts[place]++; counts[place] == 1 {
			clear(mean)
		}
		for task, value := range map[string]uint32{"general": sample.general, "encoder": sample.encoder, "decoder": sample.decoder} {
			mean[task] += (float64(value)/100 - mean[task]) / counts[place]
		}
	}
}
