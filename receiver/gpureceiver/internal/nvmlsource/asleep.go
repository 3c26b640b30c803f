package nvmlsource

import (
	"io"
	"os"
	"path/filepath"
	"strings"
)

// suspended is what the kernel says of a device that it has put to sleep.
const suspended = "suspended"

// asleep reports whether the host has suspended a PCI device, from sysfs
// below the host's root directory. Any call about such a GPU would wake it.
// What cannot be read is taken for awake: most hosts have no power management
// of GPUs.
func asleep(rootPath, busID string) bool {
	if busID == "" {
		return false
	}
	file, err := os.Open(filepath.Join("/", rootPath, "sys/bus/pci/devices", filepath.Base(busID), "power/runtime_status"))
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
