package nvmlsource

import (
	"path/filepath"
	"strings"
	"syscall"
)

// suspended is the kernel's status of a device that it has put to sleep.
const suspended = "suspended"

// powerStatusPath is the file with the kernel's power status of a PCI device,
// below the host's root directory.
func powerStatusPath(rootPath, busID string) string {
	return filepath.Join("/", rootPath, "sys/bus/pci/devices", filepath.Base(busID), "power/runtime_status")
}

// asleep reports whether the host has suspended the device of a file. Any call
// about such a GPU would wake it. A device without a readable file counts as
// awake: most hosts do not suspend GPUs.
func asleep(path string) bool {
	// This runs for every GPU at every reading, and the package os would
	// prepare for a wait that the kernel's files never need.
	file, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer func() { _ = syscall.Close(file) }()
	var state [len(suspended) + 1]byte
	n, err := syscall.Read(file, state[:])
	return err == nil && strings.TrimSpace(string(state[:n])) == suspended
}
