package device

import (
	"context"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/workload"
)

// Source gives snapshots of the GPUs of one host. Its methods are called by
// one goroutine at a time, except Shutdown, which may come at any time after
// Start.
type Source interface {
	// Start prepares the source. An error means that the configuration can
	// never work; a driver that is missing is no error.
	Start(ctx context.Context) error
	// Snapshot looks at the GPUs. It returns at the latest when ctx ends,
	// with what is known by then. What cannot be read is absent.
	Snapshot(ctx context.Context) Snapshot
	// Shutdown lets go of everything. It returns at the latest when ctx ends,
	// even while a call into the driver hangs.
	Shutdown(ctx context.Context) error
}

// Reading is a value that may be unavailable. The zero Reading is
// unavailable, so that what nobody has read never looks like 0.
type Reading[T any] struct {
	Value T
	Known bool
}

// Read returns an available Reading.
func Read[T any](value T) Reading[T] {
	return Reading[T]{Value: value, Known: true}
}

// Snapshot is what one look at the GPUs has found.
type Snapshot struct {
	// Host is the name of the host that the GPUs are in.
	Host string
	// Driver is the state that the driver is in.
	Driver DriverState
	// DriverVersion is empty where it is unknown.
	DriverVersion string
	// Replayed is true where the values come from a recording.
	Replayed bool
	// GPUs are ordered by index. A GPU whose calls fail is still listed, with
	// fewer readings.
	GPUs []GPU
}

// GPU is one physical GPU.
type GPU struct {
	// ID is the GPU's UUID as NVML spells it.
	ID string
	// Name is the product name as NVML spells it.
	Name string
	// Index is the NVML index, which can change when the driver restarts.
	Index int
	// PCIBusID is the address on the PCI bus as sysfs writes it.
	PCIBusID string

	// Utilization, EncoderUtilization and DecoderUtilization are parts of the
	// driver's sample period, 0 to 1.
	Utilization        Reading[float64]
	EncoderUtilization Reading[float64]
	DecoderUtilization Reading[float64]
	// MemoryTotal and MemoryUsed are in bytes.
	MemoryTotal Reading[uint64]
	MemoryUsed  Reading[uint64]
	// Power is in watts.
	Power Reading[float64]
	// Energy is in joules since the driver was loaded.
	Energy Reading[float64]
	// Temperature and MemoryTemperature are in degrees Celsius.
	Temperature       Reading[float64]
	MemoryTemperature Reading[float64]
	// Processes are those whose memory the driver tells.
	Processes []Process
}

// Process is a process that holds memory of a GPU.
type Process struct {
	// Memory is in bytes.
	Memory uint64
	// Workload is what the process belongs to; its zero value means that
	// nothing is known.
	Workload workload.Workload
}
