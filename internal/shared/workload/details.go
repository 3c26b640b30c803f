package workload

import "time"

// Details are the details of one process beside its workload.
type Details struct {
	// Executable is the kernel's name of its program, at most 15 bytes. Empty
	// means unknown.
	Executable string
	// Start is its start time, to the kernel's clock tick. Zero means unknown.
	// An id and a start together identify a process, because ids are used
	// again.
	Start time.Time
	// NamespacePID is its id in its innermost PID namespace, which is the id
	// that the program itself sees.
	NamespacePID Number
	// startTicks is its start in clock ticks since the boot, which does not
	// change when the clock is set. Zero means unknown.
	startTicks uint64
}

// Pod is a container that the kubelet gave a device to.
type Pod struct {
	Namespace string `yaml:"namespace"`
	Name      string `yaml:"pod"`
	Container string `yaml:"container"`
}
