package nvmlsource

import (
	"path/filepath"
	"strings"
	"syscall"
)

// suspended is what the kernel says of a device that it has put to sleep.
const suspended = "suspended"

// powerStatusPath is the file in which the kernel says whether a PCI device
// sleeps, below the host's root directory.
func powerStatusPath(rootPath, busID string) string {
	return filepath.Join("/", rootPath, "sys/bus/pci/devices", filepath.Base(busID), "power/runtime_status")
}

// asleep reports whether the host has suspended the device of a file. Any call
// about such a GPU would wake it. What cannot be read is taken for awake: most
// hosts have no power management of GPUs.
func asleep(path string) bool {
	// This is asked of every GPU at every reading. The package os would prepare
	// for a wait that the kernel's files never need.
	file, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer func() { _ = syscall.Close(file) }()
	var state [len(suspended) + 1]byte
	n, err := syscall.Read(file, state[:])
	return err == nil && strings.TrimSpace(string(state[:n])) == suspended
}
