//go:build cgo && linux

package nvmlsource

import (
	"context"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/podresources"
)

// slowAnswers are the last answers of the slow calls about one GPU. The
// background fills them, and each reading uses them.
type slowAnswers struct {
	mu     sync.Mutex
	values values
	// listed is true if the driver listed the processes.
	listed    bool
	processes []device.Process

	// asked is true once the processes were listed or tried, and fresh if that was
	// in this reading. Only readings use them.
	asked, fresh bool
	// since is the time of the last sample of the processes' utilization, in
	// the driver's microseconds. Only one round runs at a time.
	since uint64
}

// clear removes the answers, because a GPU that does not answer has no values.
func (a *slowAnswers) clear() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.values, a.listed, a.processes = nil, false, nil
}

// set changes the answers.
func (a *slowAnswers) set(change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change()
}

// apply adds the answers to a GPU's readings. It leaves out processes that have
// ended since.
func (a *slowAnswers) apply(read *device.GPU, alive func([]device.Process) []device.Process) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.values.store(&read.Readings)
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

// askAbout makes one call about a GPU and waits for it.
func askAbout[T any](ctx context.Context, s *Source, known *knownGPU, name string, question func() (T, status)) (T, status) {
	type answer struct {
		value  T
		result status
	}
	given, outcome := request(ctx, s, known.subject(), func() answer {
		if known.session.closed.Load() {
			// The library was closed before the call was made.
			return answer{result: statusTimeout}
		}
		value, result := ask(name, s.opts.Telemetry, question)
		return answer{value, result}
	}, func(answer) {})
	switch {
	case given.result == "":
		given.result = statusTimeout
		if outcome == abandoned && ctx.Err() == nil {
			s.opts.Telemetry.Failed(name, string(statusTimeout))
		}
	case given.result != statusSuccess && given.result != statusTimeout && !given.result.unsupported():
		s.opts.Telemetry.Failed(name, string(given.result))
	}
	return given.value, given.result
}

// listProcesses lists the processes of a GPU and their use of it. It calls turn
// before each call, which waits and reports false to stop.
func (s *Source) listProcesses(ctx context.Context, known *knownGPU, turn func() bool) {
	lists := &processLists{byType: make(map[string][]nvml.ProcessInfo, len(device.ProcessTypes))}
	for i, list := range known.processLists() {
		kind := device.ProcessTypes[i]
		if !turn() {
			return
		}
		processes, result := askAbout(ctx, s, known, kind+"_processes", list)
		if result.dead() {
			known.slow.clear()
			return
		}
		if result == statusSuccess {
			lists.byType[kind] = processes
		}
	}
	// The driver does not sample the processes of MIG devices.
	if known.identity.MIG == nil && slices.ContainsFunc(device.ProcessTypes, func(kind string) bool { return len(lists.byType[kind]) > 0 }) && s.opts.Wants(device.ProcessUtilization) {
		if !turn() {
			return
		}
		s.sampleProcesses(ctx, known, lists)
	}
	// If every list failed, the processes are unknown.
	listed := len(lists.byType) > 0
	var described []device.Process
	if listed {
		s.describing.Lock()
		described = s.attribution.describe(lists)
		s.describing.Unlock()
	}
	known.slow.set(func() { known.slow.listed, known.slow.processes = listed, described })
}

// sampleProcesses reads the driver's samples of processes since the last round.
func (s *Source) sampleProcesses(ctx context.Context, known *knownGPU, lists *processLists) {
	since := known.slow.since
	samples, result := askAbout(ctx, s, known, "process_utilization", func() ([]nvml.ProcessUtilizationSample, status) {
		return known.processUtilization(since)
	})
	if result != statusSuccess {
		return
	}
	lists.samples, lists.sampled = samples, true
	for _, sample := range samples {
		known.slow.since = max(known.slow.since, sample.TimeStamp)
	}
}

// askSlowly makes the slow calls about a GPU's readings.
func (s *Source) askSlowly(ctx context.Context, known *knownGPU, turn func() bool) {
	if len(known.slowCalls) == 0 {
		return
	}
	var all values
	for i := range known.slowCalls {
		if !turn() {
			return
		}
		read, result := askAbout(ctx, s, known, known.slowCalls[i].name, func() (read values, result status) {
			result = known.slowCalls[i].read(&read)
			return read, result
		})
		if result.dead() {
			known.slow.clear()
			return
		}
		if result == statusSuccess {
			all = append(all, read...)
		}
	}
	known.slow.set(func() { known.slow.values = all })
}

// slowTarget is a GPU of a slow round, and whether to list its processes.
type slowTarget struct {
	known     *knownGPU
	processes bool
}

// slowRound makes the slow calls about every GPU. A GPU that hangs does not
// affect the others.
func (s *Source) slowRound(ctx context.Context, targets []slowTarget, turn func() bool) {
	for _, target := range targets {
		if !turn() {
			return
		}
		if asleep(target.known.powerStatus) {
			continue
		}
		if target.processes {
			s.listProcesses(ctx, target.known, turn)
		}
		s.askSlowly(ctx, target.known, turn)
	}
}

// firstProcesses lists the processes of new GPUs, so that their first reading
// has them.
func (s *Source) firstProcesses(ctx context.Context, answering []*knownGPU) {
	for _, known := range answering {
		known.slow.fresh = s.opts.Wants(device.ProcessList) && !known.slow.asked && !known.divided
		if known.slow.fresh {
			known.slow.asked = true
			s.listProcesses(ctx, known, func() bool { return ctx.Err() == nil })
		}
	}
}

// slowTargets returns the targets of a slow round, or nothing if none is due.
func (s *Source) slowTargets(now time.Time, answering []*knownGPU) []slowTarget {
	if now.Before(s.slowNext) || len(answering) == 0 {
		return nil
	}
	s.slowNext = now.Add(s.opts.SlowInterval)
	targets := make([]slowTarget, 0, len(answering))
	for _, known := range answering {
		target := slowTarget{known: known, processes: s.opts.Wants(device.ProcessList) && !known.divided && !known.slow.fresh}
		if target.processes || len(known.slowCalls) > 0 {
			targets = append(targets, target)
		}
	}
	return targets
}

// startSlowRound starts a slow round in the background, unless one still runs.
// Readings take precedence over each of its calls.
func (s *Source) startSlowRound(targets []slowTarget) {
	if len(targets) == 0 || !s.slowRunning.CompareAndSwap(false, true) {
		return
	}
	s.background.Go(func() {
		defer s.slowRunning.Store(false)
		s.slowRound(s.stopping, targets, func() bool { return s.calls.waitForIdle(s.stopping) })
	})
}

// maxProcesses bounds the processes of one GPU. More are left out and counted.
const maxProcesses = 1024

// kubeletTimeout is the limit for the kubelet's answer, which no reading waits
// for.
const kubeletTimeout = 5 * time.Second

// unavailableMemory is NVML's value if it does not know the memory of a process,
// for example on a MIG device without permission.
const unavailableMemory = ^uint64(0)

// processLists are the driver's answers about one GPU's processes in one slow
// round.
type processLists struct {
	// byType are the processes by the names of device.ProcessTypes. A type
	// without an answer is missing.
	byType map[string][]nvml.ProcessInfo
	// samples are the samples since the round before. They count only if
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
// runs once for each GPU in each slow round. Processes that have ended meanwhile
// are left out.
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
	running := make([]device.Process, 0, len(processes))
	for i := range processes {
		if a.procs.Alive(processes[i].PID, &processes[i].Details) {
			running = append(running, processes[i])
		}
	}
	return running
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
