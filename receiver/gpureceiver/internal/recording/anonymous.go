package recording

import (
	"fmt"
	"maps"
	"slices"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// anonymousHost is the host's name in a Recorder's recordings.
const anonymousHost = "recorded-host"

// maxUses bounds the processes of all GPUs together.
const maxUses = 64 << 10

// anonymizer removes from snapshots what identifies GPUs, their owners and their
// work, so that a recording can be public.
type anonymizer struct {
	gpus  map[string]*GPU
	order []string
	pids  map[processKey]uint32
	// uses is the number of processes on each GPU together.
	uses int
}

// processKey identifies a process uniquely over time.
type processKey struct {
	pid   uint32
	start int64
}

func newAnonymizer() *anonymizer {
	return &anonymizer{gpus: make(map[string]*GPU), pids: make(map[processKey]uint32)}
}

// gpu returns the recorded GPU, or nil beyond the format's limit.
func (a *anonymizer) gpu(identity *device.Identity) *GPU {
	if known := a.gpus[identity.ID]; known != nil {
		return known
	}
	if len(a.gpus) >= maxGPUs {
		return nil
	}
	prefix, known := "GPU", &GPU{Identity: *identity}
	if mig := identity.MIG; mig != nil {
		// A MIG device is listed after its GPU. Without a known GPU it is left
		// out.
		parent := a.gpus[mig.Parent]
		if parent == nil || parent.MIG != nil {
			return nil
		}
		part := *mig
		part.Parent, part.Profile = parent.ID, shorten(mig.Profile)
		prefix, known.MIG = "MIG", &part
	}
	known.ID, known.Serial, known.Index = fmt.Sprintf("%s-00000000-0000-0000-0000-%012d", prefix, len(a.gpus)), "", max(identity.Index, 0)
	for _, text := range []*string{&known.Name, &known.PCIBusID, &known.VBIOS, &known.Architecture} {
		*text = shorten(*text)
	}
	a.gpus[identity.ID] = known
	a.order = append(a.order, identity.ID)
	return known
}

// readings returns a GPU's readings, or false beyond the format's limit of GPUs.
func (a *anonymizer) readings(gpu *device.GPU) (Readings, bool) {
	known := a.gpu(&gpu.Identity)
	if known == nil {
		return Readings{}, false
	}
	readings := Readings{ID: known.ID, Lost: gpu.Lost, Asleep: gpu.Asleep, Unresponsive: gpu.Unresponsive, Tree: gpu.Readings.Tree()}
	if !gpu.ProcessesKnown {
		return readings, true
	}
	readings.Processes = ProcessList{}
	seen := make(map[uint32]bool, len(gpu.Processes))
	for i := range gpu.Processes {
		process := &gpu.Processes[i]
		pid, ok := a.process(known, process)
		if !ok || seen[pid] {
			continue
		}
		seen[pid] = true
		read := device.Process{PID: pid, Types: slices.Clone(process.Types), Utilization: maps.Clone(process.Utilization)}
		maps.DeleteFunc(read.Utilization, func(task string, value float64) bool {
			return !device.IsReading(value) || !slices.Contains(device.ProcessTasks, task)
		})
		if device.IsReading(process.Memory.Value) {
			read.Memory = process.Memory
		}
		readings.Processes = append(readings.Processes, read)
	}
	return readings, true
}

// process returns a made-up id, or false beyond the format's limit of processes.
func (a *anonymizer) process(gpu *GPU, process *device.Process) (uint32, bool) {
	key := processKey{pid: process.PID, start: process.Details.Start.UnixNano()}
	pid, found := a.pids[key]
	if !found {
		if len(a.pids) >= maxUses {
			return 0, false
		}
		pid = uint32(len(a.pids) + 1)
		a.pids[key] = pid
	}
	if slices.ContainsFunc(gpu.Processes, func(p Process) bool { return p.PID == pid }) {
		return pid, true
	}
	if len(gpu.Processes) >= maxProcesses || a.uses >= maxUses {
		return 0, false
	}
	a.uses++
	gpu.Processes = append(gpu.Processes, Process{PID: pid})
	return pid, true
}

// list returns the GPUs in the order of their first snapshot.
func (a *anonymizer) list() []GPU {
	gpus := make([]GPU, 0, len(a.order))
	for _, id := range a.order {
		gpus = append(gpus, *a.gpus[id])
	}
	return gpus
}

// xid returns an event without its GPU.
func xid(event *device.Event) XID {
	return XID{Code: event.Code, GPUInstance: pointer(event.GPUInstance), ComputeInstance: pointer(event.ComputeInstance)}
}

func pointer(number workload.Number) *int64 {
	if !number.Known {
		return nil
	}
	return &number.Value
}
