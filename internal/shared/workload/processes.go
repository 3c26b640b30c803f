package workload

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// The largest part of each file below proc that is read, in bytes. The rest is
// ignored. Only environments can be that large: the kernel bounds the others.
const (
	maxStatSize    = 4 << 10
	maxStatusSize  = 16 << 10
	maxCgroupSize  = 64 << 10
	maxEnvironSize = 1 << 20
	// maxBootSize is for the host's stat, in which the boot time follows a line
	// for each processor and a number for each interrupt.
	maxBootSize = 1 << 20
	maxNameSize = 4 << 10
)

// Processes describes processes from a proc file system.
type Processes struct {
	root string
	// hostPIDs reports whether the ids below proc are the host's, like NVML's.
	// Otherwise an id would name another process.
	hostPIDs bool
	// users are nil if their names are not wanted.
	users *users
}

// Process is what is known about one process.
type Process struct {
	Details
	Workload
	Evidence
}

// NewProcesses reads below rootPath/proc; an empty rootPath means /. With userNames,
// workloads have the names of their users.
func NewProcesses(rootPath string, userNames bool) *Processes {
	root := filepath.Join("/", rootPath, "proc")
	p := &Processes{root: root, hostPIDs: hasHostPIDs(root)}
	if userNames {
		known := newUsers(rootPath)
		p.users = &known
	}
	return p
}

// NewNamespaceProcesses is NewProcesses for ids of any PID namespace: Describe treats
// them as those of the processes below proc. The caller must compare the id with
// Details.NamespacePID, because an id of a container may name another process here.
func NewNamespaceProcesses(rootPath string) *Processes {
	return &Processes{root: filepath.Join("/", rootPath, "proc"), hostPIDs: true}
}

// hasHostPIDs reports whether a proc file system shows the host's processes.
// Process 2 of the host is always the kernel's kthreadd, which a PID namespace
// does not show. A proc file system that hides other users' processes (hidepid)
// does not show it either, so that with it a missing process has ended.
func hasHostPIDs(root string) bool {
	comm, err := readLimited(filepath.Join(root, "2", "comm"), maxNameSize)
	return err == nil && strings.TrimSpace(string(comm)) == "kthreadd"
}

// Visible reports whether the host's processes are visible.
func (p *Processes) Visible() bool {
	return p.hostPIDs
}

// Describe returns a process's details and workload, as far as this program may
// read them. The evidence shows what it may not read: other users' environments
// need root, or both CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH. It reports false for
// a process that has ended. If the host's processes are not visible, it returns an
// empty Process and true.
func (p *Processes) Describe(pid uint32) (Process, bool) {
	if !p.hostPIDs {
		return Process{}, true
	}
	// An open directory belongs to one process, also when the process's id is
	// used again.
	directory, err := os.OpenRoot(p.directory(pid))
	if err != nil {
		return Process{}, errors.Is(err, fs.ErrPermission)
	}
	defer func() { _ = directory.Close() }()
	raw, statErr := readIn(directory, "stat", maxStatSize)
	stat, parsed := parseStat(raw)
	if gone(statErr) || parsed && stat.ended() {
		return Process{}, false
	}
	// A status that cannot be read counts as empty.
	status, _ := readIn(directory, "status", maxStatusSize)
	group, groupErr := readIn(directory, "cgroup", maxCgroupSize)
	environ, environErr := readIn(directory, "environ", maxEnvironSize)
	if gone(groupErr) && gone(environErr) {
		return Process{}, false
	}
	userID, namespacePID := parseStatus(status)
	cgroup, environment := ParseCgroup(group), ParseEnviron(environ)
	found := Process{
		Details:  Details{Executable: stat.executable, NamespacePID: namespacePID, startTicks: stat.start},
		Workload: Identify(environment, cgroup, userID),
		Evidence: evidence(cgroup, groupErr, environment, environErr),
	}
	if p.users != nil && found.ContainerID == "" && found.PodUID == "" {
		found.UserName = p.users.of(userID, found.SlurmJobID, environment.SlurmJobUser)
	}
	if boot := p.boot(); parsed && !boot.IsZero() {
		found.Start = boot.Add(time.Duration(stat.start) * (time.Second / ticksPerSecond))
	}
	return found, true
}

// Alive reports whether a described process still runs. A process with the same
// id and another start is another one. Alive reads one small file, and reports
// true if the host's processes are not visible.
func (p *Processes) Alive(pid uint32, details *Details) bool {
	if !p.hostPIDs {
		return true
	}
	raw, err := readLimited(filepath.Join(p.directory(pid), "stat"), maxStatSize)
	if err != nil {
		return !gone(err)
	}
	stat, parsed := parseStat(raw)
	if !parsed {
		return true
	}
	return !stat.ended() && (details.startTicks == 0 || details.startTicks == stat.start)
}

func (p *Processes) directory(pid uint32) string {
	return filepath.Join(p.root, strconv.FormatUint(uint64(pid), 10))
}

// boot returns the host's boot time, zero if unknown. It is read each time,
// because it changes when the clock is set.
func (p *Processes) boot() time.Time {
	// Without the file there is no boot time.
	raw, _ := readLimited(filepath.Join(p.root, "stat"), maxBootSize)
	return parseBoot(raw)
}

// evidence returns the state of each source for a process.
func evidence(cgroup Cgroup, cgroupErr error, environment Environment, environErr error) Evidence {
	return Evidence{
		Cgroup:     sourceState(cgroup != Cgroup{}, cgroupErr),
		Environ:    sourceState(environment != Environment{}, environErr),
		Slurm:      sourceState(cgroup.SlurmJobID != "" || id(environment.SlurmJobID) != "", nil),
		cgroupRead: cgroupErr == nil,
	}
}

// sourceState is the state of a source that was tried and found something or not.
func sourceState(found bool, err error) SourceState {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return SourceDenied
	case found:
		return SourceOK
	}
	return SourceAbsent
}

// readLimited reads at most limit bytes of a file.
func readLimited(path string, limit int64) ([]byte, error) {
	file, err := os.Open(path) //nolint:gosec // The path is the configuration's, and its content is read as hostile.
	return readOpened(file, err, limit)
}

// readIn is readLimited for a file of a directory.
func readIn(directory *os.Root, name string, limit int64) ([]byte, error) {
	file, err := directory.Open(name)
	return readOpened(file, err, limit)
}

func readOpened(file *os.File, err error, limit int64) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return io.ReadAll(io.LimitReader(file, limit))
}

// HostName returns the name of the host whose root directory is mounted at
// rootPath, from its file etc/hostname, because a container has its own name. If
// the file cannot be read or rootPath is empty, it returns the kernel's name for
// this host.
func HostName(rootPath string) string {
	if rootPath != "" {
		raw, err := readLimited(filepath.Join(rootPath, "etc", "hostname"), maxNameSize)
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
