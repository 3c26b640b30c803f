package nvmlsource

import (
	"io"
	"os"
	"path/filepath"
	"strings"
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
	file, err := os.Open(path) //nolint:gosec // The path is the configuration's and the driver's bus address.
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	state := make([]byte, len(suspended)+1)
	n, err := io.ReadFull(file, state)
	if n == 0 && err != nil {
		return false
	}
	return strings.TrimSpace(string(state[:n])) == suspended
}
