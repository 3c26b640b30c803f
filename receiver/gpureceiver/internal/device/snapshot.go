// Package device has the model of a reading of a host's GPUs, in the units of the
// metrics, for every source.
package device

import (
	"context"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
)

// Source returns snapshots of the GPUs of one host, and emits events. One
// goroutine at a time calls its methods, except Shutdown, which can be called at
// any time after Start.
type Source interface {
	// Start prepares the source. An error means that the configuration can
	// never work; a missing driver is no error. The source calls emit with each
	// event of a GPU, from any goroutine. emit must not block.
	Start(ctx context.Context, emit func(Event)) error
	// Snapshot reads the GPUs, which emit events from then on. It returns at the latest when ctx ends, with
	// what is known by then. Values that cannot be read are absent.
	Snapshot(ctx context.Context) Snapshot
	// Shutdown releases everything. It returns at the latest when ctx ends, even
	// while a call into the driver hangs.
	Shutdown(ctx context.Context) error
}

// System is where GPUs and their errors are.
type System struct {
	// Host is the name of the GPUs' host.
	Host string
	// DriverVersion and CUDAVersion are empty if unknown. CUDAVersion is the
	// newest version that the driver supports.
	DriverVersion, CUDAVersion string
	// Replayed is true if it is that of a recording.
	Replayed bool
}

// Snapshot is the result of one reading of the GPUs.
type Snapshot struct {
	System
	// Driver is the state of NVIDIA's driver.
	Driver DriverState
	// Attribution is the state of each attribution source that was tried.
	Attribution map[workload.Source]workload.SourceState
	// KernelLog is the state of the kernel's log, empty if it is not read.
	KernelLog string
	// GPUs are ordered by index, each followed by its MIG devices. A GPU with
	// failing calls is listed with fewer readings.
	GPUs []GPU
}

// OnlyAMD reports whether the host has AMD GPUs and no driver of NVIDIA.
func (s *Snapshot) OnlyAMD() bool {
	without := []DriverState{DriverLibraryMissing, DriverMissing, DriverUnsupportedBuild}
	return slices.Contains(without, s.Driver) && slices.ContainsFunc(s.GPUs, func(gpu GPU) bool { return gpu.Vendor == AMD })
}

// Identity identifies a GPU or MIG device. The keys are those of recordings.
type Identity struct {
	// ID is the UUID as NVML spells it, GPU-… or MIG-….
	ID string `yaml:"uuid"`
	// Vendor is empty for NVIDIA.
	Vendor string `yaml:"vendor,omitempty"`
	// Name is the product name as NVML spells it.
	Name string `yaml:"name,omitempty"`
	// Index is the NVML index, which can change when the driver restarts. A MIG
	// device has its GPU's.
	Index int `yaml:"index"`
	// Minor is the number of the GPU's device file, as in /dev/nvidia0. A MIG device has its
	// GPU's.
	Minor Number `yaml:"minor,omitempty"`
	// PCIBusID is the address on the PCI bus as sysfs writes it.
	PCIBusID string `yaml:"pci_bus_id,omitempty"`
	// Serial, VBIOS and Architecture are empty if unknown.
	Serial       string `yaml:"-"`
	VBIOS        string `yaml:"vbios,omitempty"`
	Architecture string `yaml:"architecture,omitempty"`
	// NUMANode is the node of the host memory next to the GPU.
	NUMANode Number `yaml:"numa_node,omitempty"`
	// MIG is nil for a whole GPU.
	MIG *MIG `yaml:"mig,omitempty"`
	// Placement is nil for a whole GPU, and if unknown: only root may read it.
	Placement *Placement `yaml:"placement,omitempty"`
}

// AMD is the other vendor.
const AMD = "AMD"

// Placement is where in its GPU the GPU instance of a MIG device is.
type Placement struct {
	// Profile is NVML's number of the profile.
	Profile int `yaml:"profile"`
	// Start and Size are in memory slices.
	Start int `yaml:"start"`
	Size  int `yaml:"size"`
}

// Whole returns the ID of the whole GPU, also for a MIG device.
func (i *Identity) Whole() string {
	if i.MIG != nil {
		return i.MIG.Parent
	}
	return i.ID
}

// MIG is the part of its GPU that a MIG device is.
type MIG struct {
	// Parent is the GPU's ID.
	Parent string `yaml:"parent"`
	// Profile is its size as nvidia-smi writes it, such as 1g.10gb.
	Profile string `yaml:"profile,omitempty"`
	// GPUInstance and ComputeInstance are ids within the parent. They are used
	// again after a reconfiguration.
	GPUInstance     int `yaml:"gpu_instance"`
	ComputeInstance int `yaml:"compute_instance"`
}

// GPU is one physical GPU or MIG device.
type GPU struct {
	Identity
	// Lost is true if the GPU fell off the bus. It then has no readings.
	Lost bool
	// Asleep is true if the host has suspended the GPU. It is then not read,
	// because that would wake it.
	Asleep bool
	// Unresponsive is true if a call did not return in time, or if more calls
	// failed than succeeded for another reason than a missing permission.
	Unresponsive bool
	// EventsKnown is true if the GPU's events are emitted, so that none means
	// that there was none. Events of MIG devices are emitted for their GPU.
	EventsKnown bool
	// Readings are its values.
	Readings Readings
	// ProcessesKnown is true if the driver listed the processes, also if there
	// are none.
	ProcessesKnown bool
	// Processes are the processes that use it.
	Processes []Process
	// Owners are the containers that the kubelet gave it to, also while none of
	// their processes uses it. A shared GPU has several.
	Owners []workload.Pod
}

// Process is a process that uses a GPU. The keys are those of recordings.
type Process struct {
	// PID is the id in the host's PID namespace.
	PID uint32 `yaml:"pid"`
	// Types are the kinds of its use: any of ProcessTypes.
	Types []string `yaml:"types,omitempty"`
	// Memory is in bytes.
	Memory Number `yaml:"memory_bytes,omitempty"`
	// Utilization is the fraction of the time since the last reading in which
	// the process used an engine, 0 to 1, by the names of ProcessTasks.
	Utilization Numbers `yaml:"utilization,omitempty"`
	// Serves is true for an MPS server whose clients are listed: they are the workloads, and
	// it is none.
	Serves bool `yaml:"-"`
	// Details are the details of the process itself.
	Details workload.Details `yaml:"-"`
	// Workload is what the process belongs to. The zero value means unknown.
	Workload workload.Workload `yaml:"-"`
	// Evidence is the state of each attribution source for the process.
	Evidence workload.Evidence `yaml:"-"`
}

// ProcessTypes are the kinds of contexts that a process has on a GPU.
var ProcessTypes = []string{"compute", "graphics", "mps"}

// ProcessTasks are the names of the engines that a process uses.
var ProcessTasks = []string{"general", "encoder", "decoder"}

// Event is an error that a driver reports with a code: an XID, or the SXid of an
// NVSwitch.
type Event struct {
	System
	// Time is the time at which the receiver got it.
	Time time.Time
	// GPU is the whole GPU, also if the error concerns a MIG device.
	GPU Identity
	// Code is the XID.
	Code uint64
	// GPUInstance and ComputeInstance are those of the MIG device, if any.
	GPUInstance     workload.Number
	ComputeInstance workload.Number
	// Text is the driver's message without the code, PID the process whose work
	// failed, and Process its name. They are known from the kernel's log only.
	Text    string
	PID     workload.Number
	Process string
	// Switch is nil unless the error is of an NVSwitch. GPU is then the zero value,
	// and Code an SXid.
	Switch *Switch
}

// Switch identifies an NVSwitch, and what its error concerns.
type Switch struct {
	// Index is the driver's number of the switch.
	Index int64
	// PCIBusID is its address on the PCI bus as sysfs writes it.
	PCIBusID string
	// Fatal is true if programs on the GPUs that it connects cannot continue.
	Fatal bool
	// Link is the number of the link, unknown if the error concerns none.
	Link workload.Number
}

// IndexUnknown is the Index of a GPU that the driver does not list: its error is
// known from the kernel's log only.
const IndexUnknown = -1

// DriverState is the state of the driver.
type DriverState string

// The states of a driver. The values are those of the attribute
// nvidia.gpu.driver.state.
const (
	// DriverOK means that the driver answers.
	DriverOK DriverState = "ok"
	// DriverLibraryMissing means that there is no NVML library.
	DriverLibraryMissing DriverState = "library_missing"
	// DriverMissing means that the library exists and the kernel module is not
	// loaded.
	DriverMissing DriverState = "driver_missing"
	// DriverVersionMismatch means that the library and the kernel module have
	// different versions.
	DriverVersionMismatch DriverState = "version_mismatch"
	// DriverNoPermission means that the device files cannot be opened.
	DriverNoPermission DriverState = "no_permission"
	// DriverUnresponsive means that a call about every GPU did not return in
	// time.
	DriverUnresponsive DriverState = "unresponsive"
	// DriverUnsupportedBuild means that this program was built without cgo
	// and cannot call NVML.
	DriverUnsupportedBuild DriverState = "unsupported_build"
	// DriverFailed means that the driver failed in any other way.
	DriverFailed DriverState = "failed"
)

// DriverStates lists every state in the order of reports.
var DriverStates = []DriverState{
	DriverOK, DriverLibraryMissing, DriverMissing, DriverVersionMismatch,
	DriverNoPermission, DriverUnresponsive, DriverUnsupportedBuild, DriverFailed,
}
