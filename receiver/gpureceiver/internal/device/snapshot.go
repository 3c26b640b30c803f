package device

import (
	"context"
	"time"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/workload"
)

// Source gives snapshots of the GPUs of one host, and tells events. Its
// methods are called by one goroutine at a time, except Shutdown, which may
// come at any time after Start.
type Source interface {
	// Start prepares the source. An error means that the configuration can
	// never work; a driver that is missing is no error. Each event of a GPU
	// is given to tell, which must not block, from whatever goroutine.
	Start(ctx context.Context, tell func(Event)) error
	// Snapshot looks at the GPUs. It returns at the latest when ctx ends,
	// with what is known by then. What cannot be read is absent.
	Snapshot(ctx context.Context) Snapshot
	// Watch finds the GPUs as Snapshot does, so that their events come, and
	// reads nothing else.
	Watch(ctx context.Context)
	// Shutdown lets go of everything. It returns at the latest when ctx ends,
	// even while a call into the driver hangs.
	Shutdown(ctx context.Context) error
}

// Snapshot is what one look at the GPUs has found.
type Snapshot struct {
	// Host is the name of the host that the GPUs are in.
	Host string
	// Driver is the state that the driver is in.
	Driver DriverState
	// DriverVersion and CUDAVersion are empty where they are unknown.
	// CUDAVersion is the newest that the driver supports.
	DriverVersion string
	CUDAVersion   string
	// Replayed is true where the values come from a recording.
	Replayed bool
	// Attribution says which ways of telling what a process belongs to work.
	// A way that was not tried yet is absent.
	Attribution map[workload.Source]workload.SourceState
	// GPUs are ordered by index, each followed by its MIG devices. A GPU whose
	// calls fail is still listed, with fewer readings.
	GPUs []GPU
}

// Identity says which GPU or MIG device it is.
type Identity struct {
	// ID is the UUID as NVML spells it.
	ID string
	// Name is the product name as NVML spells it.
	Name string
	// Index is the NVML index, which can change when the driver restarts; of
	// a MIG device, that of its GPU.
	Index int
	// PCIBusID is the address on the PCI bus as sysfs writes it.
	PCIBusID string
	// Serial, VBIOS and Architecture are empty where they are unknown.
	Serial       string
	VBIOS        string
	Architecture string
	// NUMANode is that of the host memory next to the GPU.
	NUMANode Number
	// MIG is nil for a whole GPU.
	MIG *MIG
}

// MIG is what a GPU that is a part of another one has.
type MIG struct {
	// Parent is the ID of the GPU that it is a part of.
	Parent string
	// Profile is its size as nvidia-smi writes it, such as 1g.10gb.
	Profile string
	// GPUInstance and ComputeInstance are ids within the parent, which are
	// used again after a reconfiguration.
	GPUInstance     int
	ComputeInstance int
}

// GPU is one physical GPU or MIG device.
type GPU struct {
	Identity
	// Lost is true for a GPU that fell off the bus. It has no readings.
	Lost bool
	// Asleep is true for a GPU that the host has suspended. It is not woken
	// to be read.
	Asleep bool
	// Unresponsive is true for a GPU of which a call has not returned in time,
	// or more calls failed than succeeded, for another reason than a permission.
	Unresponsive bool
	// EventsKnown is true where the GPU's events are told, so that none means
	// that there was none. MIG devices have theirs told with their GPU's.
	EventsKnown bool
	// Readings is what it said.
	Readings Readings
	// ProcessesKnown is true where the driver listed the processes, also
	// where there are none.
	ProcessesKnown bool
	// Processes are those that use it.
	Processes []Process
	// Owners are the pods that the kubelet gave it to, also while none of
	// their processes uses it. There is more than one where it is shared.
	Owners []workload.Pod
}

// Process is a process that uses a GPU.
type Process struct {
	// PID is the number in the host's PID namespace.
	PID uint32
	// Types are why it uses the GPU: any of ProcessTypes.
	Types []string
	// Memory is in bytes.
	Memory Number
	// Utilization is the part of the time since the last reading in which the
	// process used an engine, 0 to 1, by the names of ProcessTasks.
	Utilization Numbers
	// Details are what is known about the process itself.
	Details workload.Details
	// Workload is what the process belongs to; its zero value means that
	// nothing is known.
	Workload workload.Workload
	// Evidence says what each way of telling that has told.
	Evidence workload.Evidence
}

// ProcessTypes are the names of what a process has on a GPU.
var ProcessTypes = []string{"compute", "graphics", "mps"}

// ProcessTasks are the names of what a process does on a GPU.
var ProcessTasks = []string{"general", "encoder", "decoder", "jpeg", "ofa"}

// Event is an error that the driver reports with a code, an XID.
type Event struct {
	// Time is when the receiver learned of it.
	Time time.Time
	// Host, DriverVersion and CUDAVersion are as in a Snapshot.
	Host          string
	DriverVersion string
	CUDAVersion   string
	// GPU is the whole GPU, also where the error concerns a MIG device.
	GPU Identity
	// Replayed is true where the event comes from a recording.
	Replayed bool
	// Code is the XID.
	Code uint64
	// GPUInstance and ComputeInstance say which MIG device it concerns.
	GPUInstance     workload.Number
	ComputeInstance workload.Number
}
