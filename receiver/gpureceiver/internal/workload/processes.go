package workload

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// maxFileSize is how much of a file below proc is read, in bytes. Linux limits
// an environment to less than that in practice; what is cut off is ignored.
const maxFileSize = 1 << 20

// Processes tells what processes belong to from a proc file system.
type Processes struct {
	root string
	// hostPIDs says whether the numbers below proc are the host's, as NVML's
	// are. Elsewhere a number would name another process.
	hostPIDs bool
}

// NewProcesses reads below rootPath/proc; an empty rootPath means /.
func NewProcesses(rootPath string) *Processes {
	root := filepath.Join("/", rootPath, "proc")
	return &Processes{root: root, hostPIDs: hasHostPIDs(root)}
}

// hasHostPIDs reports whether a proc file system shows the host's processes.
// Process 2 of the host is always the kernel's thread that makes the others;
// a PID namespace does not show it.
func hasHostPIDs(root string) bool {
	comm, err := readLimited(filepath.Join(root, "2", "comm"))
	return err == nil && strings.TrimSpace(string(comm)) == "kthreadd"
}

// Visible reports whether the host's processes can be seen at all.
func (p *Processes) Visible() bool {
	return p.hostPIDs
}

// Workload tells what a process belongs to, as far as this program may read
// it. What may not be read is left out: other users' environments need root
// or CAP_SYS_PTRACE. Nothing is known about a process that is gone.
func (p *Processes) Workload(pid uint32) Workload {
	if !p.hostPIDs {
		return Workload{}
	}
	directory := filepath.Join(p.root, strconv.FormatUint(uint64(pid), 10))
	group, _ := readLimited(filepath.Join(directory, "cgroup"))
	environ, _ := readLimited(filepath.Join(directory, "environ"))
	status, _ := readLimited(filepath.Join(directory, "status"))
	return Identify(ParseEnviron(environ), ParseCgroup(group), parseUserID(status))
}

// parseUserID reads the real user id from what /proc/<pid>/status gives.
func parseUserID(status []byte) Number {
	for line := range bytes.Lines(status) {
		rest, found := bytes.CutPrefix(line, []byte("Uid:"))
		if !found {
			continue
		}
		fields := bytes.Fields(rest)
		if len(fields) == 0 {
			return Number{}
		}
		uid, err := strconv.ParseUint(string(fields[0]), 10, 32)
		if err != nil {
			return Number{}
		}
		return Number{Value: int64(uid), Known: true}
	}
	return Number{}
}

// readLimited reads at most maxFileSize bytes.
func readLimited(path string) ([]byte, error) {
	file, err := os.Open(path) //nolint:gosec // The path is the configuration's, and its content is read as hostile.
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return io.ReadAll(io.LimitReader(file, maxFileSize))
}

// HostName returns the name of the host whose root directory is mounted at
// rootPath: that of its file etc/hostname, because a container's own name is
// another. Where that cannot be read, or rootPath is empty, it is the name
// that the kernel tells.
func HostName(rootPath string) string {
	if rootPath != "" {
		raw, err := readLimited(filepath.Join(rootPath, "etc", "hostname"))
		if name := strings.TrimSpace(string(raw)); err == nil && name != "" {
			return name
		}
	}
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}
