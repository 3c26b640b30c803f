//go:build cgo && linux

package nvmlsource

import (
	"context"
	"maps"
	"math"
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
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

// merge returns the processes of all lists, in their order, each once. It calls dropped for
// each that it leaves out.
func (l *processLists) merge(dropped func()) (processes []device.Process) {
	indexes := make(map[uint32]int)
	for _, kind := range device.ProcessTypes {
		for _, listed := range l.byType[kind] {
			index, found := indexes[listed.Pid]
			if !found {
				if len(processes) >= maxProcesses {
					dropped()
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
	return processes
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
