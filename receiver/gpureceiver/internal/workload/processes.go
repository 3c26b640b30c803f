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

// The largest part of each file below proc that is read, in bytes. What is
// cut off is ignored. Only an environment can come near: the kernel bounds the
// others.
const (
	maxStatSize    = 4 << 10
	maxStatusSize  = 16 << 10
	maxCgroupSize  = 64 << 10
	maxEnvironSize = 1 << 20
	// maxBootSize is for the host's stat, which has a line for each processor
	// and a number for each interrupt before the time of the boot.
	maxBootSize = 1 << 20
	maxNameSize = 4 << 10
)

// Processes tells what processes are and belong to from a proc file system.
type Processes struct {
	root string
	// hostPIDs says whether the numbers below proc are the host's, as NVML's
	// are. Elsewhere a number would name another process.
	hostPIDs bool
}

// Process is what is known about one process.
type Process struct {
	Details
	Workload
	Evidence
}

// NewProcesses reads below rootPath/proc; an empty rootPath means /.
func NewProcesses(rootPath string) *Processes {
	root := filepath.Join("/", rootPath, "proc")
	return &Processes{root: root, hostPIDs: hasHostPIDs(root)}
}

// hasHostPIDs reports whether a proc file system shows the host's processes.
// Process 2 of the host is always the kernel's thread that makes the others;
// a PID namespace does not show it. Nor does a proc file system that hides
// other users' processes (hidepid) from this one, so that a process that is
// not below proc has ended.
func hasHostPIDs(root string) bool {
	comm, err := readLimited(filepath.Join(root, "2", "comm"), maxNameSize)
	return err == nil && strings.TrimSpace(string(comm)) == "kthreadd"
}

// Visible reports whether the host's processes can be seen at all.
func (p *Processes) Visible() bool {
	return p.hostPIDs
}

// Describe tells what a process is and what it belongs to, as far as this
// program may read it. What may not be read is left out and shown in the
// evidence: other users' environments need root, or both CAP_SYS_PTRACE and
// CAP_DAC_READ_SEARCH. It reports false for a process that has ended. Nothing
// is known about any process, and none has ended, where the host's cannot be
// seen.
func (p *Processes) Describe(pid uint32) (Process, bool) {
	if !p.hostPIDs {
		return Process{}, true
	}
	// Everything is read through the one directory, which goes on meaning the
	// same process when its number is used again.
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
	// A status or stat that cannot be read is as good as an empty one.
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
	if boot := p.boot(); parsed && !boot.IsZero() {
		found.Start = boot.Add(time.Duration(stat.start) * (time.Second / ticksPerSecond))
	}
	return found, true
}

// Alive reports whether a process that was described is still there: one of
// the same number that began at another time is another one. It reads one
// small file, and reports true where the processes cannot be seen.
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

// boot returns when the host was started; zero where that is unknown. It is
// read each time, because it moves when the clock is set.
func (p *Processes) boot() time.Time {
	// What could not be read has no line of the boot.
	raw, _ := readLimited(filepath.Join(p.root, "stat"), maxBootSize)
	return parseBoot(raw)
}

// evidence says what each way has told about a process.
func evidence(cgroup Cgroup, cgroupErr error, environment Environment, environErr error) Evidence {
	return Evidence{
		Cgroup:     sourceState(cgroup != Cgroup{}, cgroupErr),
		Environ:    sourceState(environment != Environment{}, environErr),
		Slurm:      sourceState(cgroup.SlurmJobID != "" || id(environment.SlurmJobID) != "", nil),
		cgroupRead: cgroupErr == nil,
	}
}

// sourceState is the state of a way that was tried and told something or not.
func sourceState(told bool, err error) SourceState {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return SourceDenied
	case told:
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
// rootPath: that of its file etc/hostname, because a container's own name is
// another. Where that cannot be read, or rootPath is empty, it is the name
// that the kernel tells.
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
