package recording

import (
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// formatVersion is the version of the format that this package reads.
const formatVersion = 1

// Recording is the content of a recording's file: constant data, and frames of
// what changes.
type Recording struct {
	// Version is the version of the format, which is 1.
	Version int `yaml:"version"`
	// Origin says where the values come from: the GPUs and the driver, or that
	// they were made up. It is logged. It is required.
	Origin string `yaml:"origin"`
	// HostName is the host.name of the metrics. It is required.
	HostName string `yaml:"host_name"`
	// DriverVersion is the driver's version. Empty means unknown.
	DriverVersion string `yaml:"driver_version,omitempty"`
	// CUDAVersion is the newest version that the driver supports. Empty means
	// unknown.
	CUDAVersion string `yaml:"cuda_version,omitempty"`
	// Duration is the length of the recording, after which it restarts. It must
	// be longer than the last frame's At. By default the last frame is as long
	// as the one before it, or 10 s if there is only one.
	Duration time.Duration `yaml:"duration,omitempty"`
	// GPUs are the GPUs and MIG devices of the frames.
	GPUs []GPU `yaml:"gpus"`
	// Frames are ordered by At, and the first is at 0.
	Frames []Frame `yaml:"frames"`
}

// GPU is the constant data of a GPU or MIG device.
type GPU struct {
	// Identity is without the serial number. Its ID is required.
	device.Identity `yaml:",inline"`
	// Processes are the processes on the GPU in any frame.
	Processes []Process `yaml:"processes,omitempty"`
}

// Process is the constant data of a process.
type Process struct {
	// PID is the process's id in the frames.
	PID uint32 `yaml:"pid"`
	// Executable is the name of its program. Empty means unknown.
	Executable string `yaml:"executable,omitempty"`
	// NamespacePID is its id in its own PID namespace.
	NamespacePID *int64 `yaml:"namespace_pid,omitempty"`
	// Environ are entries NAME=value. Only variables that the receiver reads on
	// a real host have an effect.
	Environ []string `yaml:"environ,omitempty"`
	// Cgroup is the text of /proc/<pid>/cgroup.
	Cgroup string `yaml:"cgroup,omitempty"`
	// UserID is the numeric id of the user. Absent means unknown.
	UserID *uint32 `yaml:"user_id,omitempty"`
}

// Frame is the state of the GPUs from its time to the next frame's.
type Frame struct {
	// At is the time since the start of the recording.
	At time.Duration `yaml:"at"`
	// DriverState is the driver's state. Empty means ok.
	DriverState device.DriverState `yaml:"driver_state,omitempty"`
	// Attribution is the state of each attribution source.
	Attribution map[workload.Source]workload.SourceState `yaml:"attribution,omitempty"`
	// GPUs are the readings of the present GPUs. A missing one has vanished.
	GPUs []Readings `yaml:"gpus,omitempty"`
}

// Readings are the values of one GPU in one frame. An absent value was
// unavailable.
type Readings struct {
	// ID names one of the recording's GPUs.
	ID string `yaml:"uuid"`
	// Lost is true if the GPU had fallen off the bus.
	Lost bool `yaml:"lost,omitempty"`
	// Asleep is true if the host had suspended the GPU.
	Asleep bool `yaml:"asleep,omitempty"`
	// Unresponsive is true if calls about the GPU did not return in time.
	Unresponsive bool `yaml:"unresponsive,omitempty"`
	// Readings are the values, and Tree has them for writing.
	device.Readings `yaml:"-"`
	Tree            map[string]any `yaml:",inline"`
	// Processes are the processes on the GPU. An empty list means none, an
	// absent one that they are unknown.
	Processes ProcessList `yaml:"processes,omitempty"`
	// Owners are the containers that the kubelet gave the GPU to.
	Owners []workload.Pod `yaml:"owners,omitempty"`
	// XIDs are the errors that the driver reported at the frame's time.
	XIDs []XID `yaml:"xids,omitempty"`
}

// ProcessList is the list of processes of one GPU in one frame. A nil list is
// absent, an empty one is not.
type ProcessList []device.Process

// IsZero reports whether the list is absent, so that YAML leaves it out.
func (l ProcessList) IsZero() bool {
	return l == nil
}

// XID is an error that the driver reported.
type XID struct {
	// Code is the error's code.
	Code uint64 `yaml:"code"`
	// GPUInstance and ComputeInstance are those of the MIG device, if any.
	GPUInstance     *int64 `yaml:"gpu_instance,omitempty"`
	ComputeInstance *int64 `yaml:"compute_instance,omitempty"`
}
