package workload

import "time"

// Details are what is known about one process, beside what it belongs to.
type Details struct {
	// Executable is the name of its program as the kernel keeps it, at most
	// 15 bytes. Empty means unknown.
	Executable string
	// Start is when it began, to the kernel's clock tick. Zero means unknown.
	// A number and a start together name one process for ever, because
	// numbers are used again.
	Start time.Time
	// NamespacePID is its number in its own innermost PID namespace, as the
	// program itself sees it.
	NamespacePID Number
	// startTicks is when it began in clock ticks since the boot, which does
	// not move when the clock is set. Zero means unknown.
	startTicks uint64
}

// Pod is a container that the kubelet gave a device to.
type Pod struct {
	Namespace, Name, Container string
}
