package recording

import (
	"time"
)

// Version is the version of the format that this package reads.
const Version = 1

// Recording is what a recording's file holds: what does not change once, and
// then frames of what does.
type Recording struct {
	// Version is the version of the format, which is 1.
	Version int `yaml:"version"`
	// Origin says where the values come from: which GPUs and which driver, or
	// that nothing was recorded and the values were made. It is shown to the
	// user. It is required.
	Origin string `yaml:"origin"`
	// HostName is the host that the metrics name. It is required.
	HostName string `yaml:"host_name"`
	// DriverVersion is the driver's version. Empty means unknown.
	DriverVersion string `yaml:"driver_version"`
	// Duration is the length of the recording, after which it begins again.
	// It must be longer than the last frame's At. By default the last frame
	// is as long as the one before it, or 10 s where there is only one.
	Duration time.Duration `yaml:"duration"`
	// GPUs are the GPUs that frames speak of.
	GPUs []GPU `yaml:"gpus"`
	// Frames are ordered by At, and the first is at 0.
	Frames []Frame `yaml:"frames"`
}

// GPU is what does not change about a GPU.
type GPU struct {
	// UUID is the GPU's id as NVML spells it, GPU-…. It is required.
	UUID string `yaml:"uuid"`
	// Name is the product name as NVML spells it. Empty means unknown.
	Name string `yaml:"name"`
	// Index is the NVML index.
	Index int `yaml:"index"`
	// PCIBusID is the address on the PCI bus as sysfs writes it. Empty means
	// unknown.
	PCIBusID string `yaml:"pci_bus_id"`
	// Processes are those that use the GPU in any of the frames.
	Processes []Process `yaml:"processes"`
}

// Process is what does not change about a process.
type Process struct {
	// PID is the number by which frames name the process.
	PID uint32 `yaml:"pid"`
	// Environ are entries NAME=value. Only the names that the receiver reads
	// on a real host have an effect.
	Environ []string `yaml:"environ"`
	// Cgroup is the text of /proc/<pid>/cgroup.
	Cgroup string `yaml:"cgroup"`
	// UserID is the numeric id of the user. Absent means unknown.
	UserID *uint32 `yaml:"user_id"`
}

// Frame is what the GPUs said from one moment to the next frame's.
type Frame struct {
	// At is the time since the beginning of the recording.
	At time.Duration `yaml:"at"`
	// DriverState is the state that the driver was in. Empty means ok.
	DriverState string `yaml:"driver_state"`
	// GPUs are the readings of the GPUs that were there.
	GPUs []Readings `yaml:"gpus"`
}

// Readings are the values of one GPU in one frame. An absent one was
// unavailable.
type Readings struct {
	// UUID names one of the recording's GPUs.
	UUID string `yaml:"uuid"`
	// Utilization, EncoderUtilization and DecoderUtilization are 0 to 1.
	Utilization        *float64 `yaml:"utilization"`
	EncoderUtilization *float64 `yaml:"encoder_utilization"`
	DecoderUtilization *float64 `yaml:"decoder_utilization"`
	// MemoryTotal and MemoryUsed are in bytes.
	MemoryTotal *uint64 `yaml:"memory_total_bytes"`
	MemoryUsed  *uint64 `yaml:"memory_used_bytes"`
	// Power is in watts.
	Power *float64 `yaml:"power_watts"`
	// Energy is in joules since the driver was loaded.
	Energy *float64 `yaml:"energy_joules"`
	// Temperature and MemoryTemperature are in degrees Celsius.
	Temperature       *float64 `yaml:"temperature_celsius"`
	MemoryTemperature *float64 `yaml:"memory_temperature_celsius"`
	// Processes are those that held memory.
	Processes []ProcessReadings `yaml:"processes"`
}

// ProcessReadings are the values of one process in one frame.
type ProcessReadings struct {
	// PID names one of the GPU's processes.
	PID uint32 `yaml:"pid"`
	// Memory is in bytes. Absent means that the driver did not tell.
	Memory *uint64 `yaml:"memory_bytes"`
}
