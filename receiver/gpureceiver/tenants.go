package gpureceiver

import (
	"sync"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/xid"
)

// tenants are the workloads on each GPU at the last reading. An error mostly
// ends its process, so that the next reading no longer shows the workload.
type tenants struct {
	mu   sync.Mutex
	last []tenant
}

// tenant is a workload on a GPU or MIG device, or the pod that holds it without
// using it.
type tenant struct {
	// gpu is the whole GPU's ID.
	gpu string
	// mig is nil if the workload has the whole GPU.
	mig *device.MIG
	// pid is 0 for a pod that has no process on it.
	pid      uint32
	workload workload.Workload
}

// update replaces the tenants by those of a snapshot.
func (t *tenants) update(snapshot *device.Snapshot) {
	if snapshot.Driver != device.DriverOK {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = t.last[:0]
	for i := range snapshot.GPUs {
		gpu := &snapshot.GPUs[i]
		id := gpu.ID
		if gpu.MIG != nil {
			id = gpu.MIG.Parent
		}
		for j := range gpu.Processes {
			t.last = append(t.last, tenant{gpu: id, mig: gpu.MIG, pid: gpu.Processes[j].PID, workload: gpu.Processes[j].Workload})
		}
		if len(gpu.Processes) == 0 && len(gpu.Owners) == 1 {
			t.last = append(t.last, tenant{gpu: id, mig: gpu.MIG, workload: workload.Workload{Pod: gpu.Owners[0]}})
		}
	}
}

// of returns the workload that an event most likely concerns: that of the process in
// the driver's message, or else the only one on the event's GPU or MIG device. If there
// are several it returns none, because nothing says which. It returns none, too, if
// the error is a program's own and its process was not on the GPU.
func (t *tenants) of(event *device.Event) workload.Workload {
	if event.Switch != nil {
		return workload.Workload{}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	found, several, only := false, false, workload.Workload{}
	for i := range t.last {
		candidate := &t.last[i]
		if candidate.gpu != event.GPU.ID || !concerns(event, candidate.mig) {
			continue
		}
		if event.PID.Known && event.PID.Value == int64(candidate.pid) {
			return candidate.workload
		}
		several = several || found && candidate.workload != only
		found, only = true, candidate.workload
	}
	if several || event.PID.Known && xid.Of(event.Code).Severity == xid.Program {
		return workload.Workload{}
	}
	return only
}

// concerns reports whether an event can concern a MIG device. An event without
// an instance concerns the whole GPU.
func concerns(event *device.Event, mig *device.MIG) bool {
	if mig == nil {
		return true
	}
	return (!event.GPUInstance.Known || event.GPUInstance.Value == int64(mig.GPUInstance)) &&
		(!event.ComputeInstance.Known || event.ComputeInstance.Value == int64(mig.ComputeInstance))
}
