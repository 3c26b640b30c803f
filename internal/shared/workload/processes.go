package workload

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// maxSize is the largest part of a file that is read, in bytes, maxPasswdSize that of the file
// of users. The rest is ignored. Only environments can be that large: the kernel bounds the
// others below proc.
const maxSize, maxPasswdSize = 1 << 20, 4 << 20

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
	// Process 2 of the host is always the kernel's kthreadd, which a PID namespace does not
	// show. A proc file system that hides other users' processes (hidepid) does not show it
	// either, so that with it a missing process has ended.
	comm, _ := read(os.Open, filepath.Join(root, "2", "comm"))
	p := &Processes{root: root, hostPIDs: strings.TrimSpace(string(comm)) == "kthreadd"}
	if userNames {
		p.users = newUsers(rootPath)
	}
	return p
}

// NewNamespaceProcesses is NewProcesses for ids of any PID namespace: Describe treats
// them as those of the processes below proc. The caller must compare the id with
// Details.NamespacePID, because an id of a container may name another process here.
func NewNamespaceProcesses(rootPath string) *Processes {
	return &Processes{root: filepath.Join("/", rootPath, "proc"), hostPIDs: true}
}

// Visible reports whether the host's processes are visible.
func (p *Processes) Visible() bool { return p.hostPIDs }

// IDs returns the ids of at most so many processes, none if they cannot be listed.
func (p *Processes) IDs(most int) (ids []uint32) {
	proc, err := os.Open(p.root)
	if err != nil {
		return nil
	}
	defer func() { _ = proc.Close() }()
	names, _ := proc.Readdirnames(most) // what could be read counts
	for _, name := range names {
		if id, err := strconv.ParseUint(name, 10, 32); err == nil {
			ids = append(ids, uint32(id))
		}
	}
	return ids
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
	raw, statErr := read(directory.Open, "stat")
	stat, parsed := parseStat(raw)
	if gone(statErr) || parsed && stat.ended() {
		return Process{}, false
	}
	// A status that cannot be read counts as empty.
	status, _ := read(directory.Open, "status")
	group, groupErr := read(directory.Open, "cgroup")
	environ, environErr := read(directory.Open, "environ")
	if gone(groupErr) && gone(environErr) {
		return Process{}, false
	}
	userID, namespacePID := parseStatus(status)
	cgroup, environment := ParseCgroup(group), ParseEnviron(environ)
	found := Process{
		Details:  Details{Executable: stat.executable, NamespacePID: namespacePID, startTicks: stat.start},
		Workload: Identify(environment, cgroup, userID),
		Evidence: Evidence{
			Cgroup:     sourceState(cgroup != Cgroup{}, groupErr),
			Environ:    sourceState(len(environment) > 0, environErr),
			Slurm:      sourceState(cgroup.SlurmJobID != "" || id(environment["SLURM_JOB_ID"]) != "", nil),
			cgroupRead: groupErr == nil,
		},
	}
	if p.users != nil && found.ContainerID == "" && found.PodUID == "" {
		found.UserName = p.users.of(userID, found.SlurmJobID, environment["SLURM_JOB_USER"])
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
	raw, err := read(os.Open, filepath.Join(p.directory(pid), "stat"))
	if err != nil {
		return !gone(err)
	}
	stat, parsed := parseStat(raw)
	return !parsed || !stat.ended() && (details.startTicks == 0 || details.startTicks == stat.start)
}

// Thread is a thread of a process.
type Thread struct {
	// State is the kernel's letter for its state, such as D for a wait that nothing interrupts.
	State byte
	// Channel is the kernel's function that it waits in, "" if it waits in none or that may not
	// be read.
	Channel string
}

// Threads returns the threads of a process, so many at most, without those that have ended
// meanwhile.
func (p *Processes) Threads(pid uint32, most int) (threads []Thread) {
	directory, err := os.OpenRoot(p.directory(pid))
	if err != nil {
		return nil
	}
	defer func() { _ = directory.Close() }()
	names, _ := fs.ReadDir(directory.FS(), "task") // what could be read counts
	for _, name := range names[:min(len(names), most)] {
		raw, _ := read(directory.Open, "task/"+name.Name()+"/stat")
		stat, parsed := parseStat(raw)
		if !parsed {
			continue
		}
		thread := Thread{State: stat.state}
		if channel, _ := read(directory.Open, "task/"+name.Name()+"/wchan"); string(channel) != "0" {
			thread.Channel = strings.TrimSpace(string(channel))
		}
		threads = append(threads, thread)
	}
	return threads
}

func (p *Processes) directory(pid uint32) string {
	return filepath.Join(p.root, strconv.FormatUint(uint64(pid), 10))
}

// boot returns the host's boot time, zero if unknown. It is read each time,
// because it changes when the clock is set.
func (p *Processes) boot() time.Time {
	// Without the file there is no boot time.
	raw, _ := read(os.Open, filepath.Join(p.root, "stat"))
	return parseBoot(raw)
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

// read reads a file, with what opens it: that of a directory, or os.Open for a path of the
// configuration.
func read(open func(string) (*os.File, error), name string) ([]byte, error) {
	return readUpTo(maxSize, open, name)
}

// readUpTo reads so many bytes of a file at most.
func readUpTo(limit int64, open func(string) (*os.File, error), name string) ([]byte, error) {
	file, err := open(name)
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
		raw, err := read(os.Open, filepath.Join(rootPath, "etc", "hostname"))
		if name := strings.TrimSpace(string(raw)); err == nil && name != "" {
			return name
		}
	}
	name, _ := os.Hostname() // "" with an error
	return name
}

// ticksPerSecond is the unit of times in Linux's proc file system, on every
// supported architecture.
const ticksPerSecond = 100

// statForm is /proc/<pid>/stat: its name, which the process chooses and can contain brackets
// and spaces, its state, its threads and its start.
var statForm = regexp.MustCompile(`(?s)\((.*)\)\s+(\S)(?:\s+\S+){16}\s+(\d+)\s+\S+\s+(\d+)`)

// maxExecutableLength is above the kernel's limit of 15 bytes for the name of a
// program's process.
const maxExecutableLength = 64

// maxStartTicks bounds a start, so that it fits a duration.
const maxStartTicks = 1 << 39

// stat is what /proc/<pid>/stat says.
type stat struct {
	executable string
	state      byte
	threads    int64
	// start is in clock ticks since the boot.
	start uint64
}

// parseStat reads /proc/<pid>/stat.
func parseStat(raw []byte) (stat, bool) {
	found := statForm.FindSubmatch(raw)
	if found == nil {
		return stat{}, false
	}
	name, threads := found[1], number(string(found[3]))
	start, err := strconv.ParseUint(string(found[4]), 10, 64)
	if err != nil || start > maxStartTicks || !threads.Known {
		return stat{}, false
	}
	return stat{
		executable: strings.ToValidUTF8(string(name[:min(len(name), maxExecutableLength)]), "\uFFFD"),
		state:      found[2][0],
		threads:    threads.Value,
		start:      start,
	}, true
}

// ended reports whether the process is a zombie or dead. A process whose first
// thread has ended also looks like a zombie, while its other threads run.
func (s *stat) ended() bool {
	return s.state == 'Z' && s.threads <= 1 || s.state == 'X' || s.state == 'x'
}

// parseBoot reads the time of the boot from /proc/stat.
func parseBoot(raw []byte) time.Time {
	if seconds := number(field(raw, "btime ", 0)); seconds.Known {
		return time.Unix(seconds.Value, 0)
	}
	return time.Time{}
}

// parseStatus reads the real user id, and the process id in the innermost PID
// namespace, from /proc/<pid>/status.
func parseStatus(status []byte) (userID, namespacePID Number) {
	return number(field(status, "Uid:", 0)), number(field(status, "NSpid:", -1))
}

// field returns one of the values of the first line with a name, the last for -1, "" if there
// is none.
func field(raw []byte, name string, i int) string {
	for line := range bytes.Lines(raw) {
		if rest, found := bytes.CutPrefix(line, []byte(name)); found {
			values := strings.Fields(string(rest))
			if i < 0 {
				i += len(values)
			}
			if i >= 0 && i < len(values) {
				return values[i]
			}
		}
	}
	return ""
}

// gone reports whether an error of reading below /proc/<pid> means that the
// process has ended.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) }

// Limits of the file of users: its users, and the length of a name.
const (
	maxUsers    = 65_536
	maxUserName = 64
)

// users has the names of a host's users, from its etc/passwd. The zero value has
// none.
type users struct {
	// root is the host's root directory, "" if there are no names.
	root string
	// info is of the file that was read last, nil if none was.
	info  fs.FileInfo
	names map[int64]string
}

// newUsers returns the users of the host whose root directory is mounted at
// rootPath. An empty rootPath means /, unless this program runs in a container,
// whose users are others than the host's.
func newUsers(rootPath string) *users {
	if rootPath == "" && inContainer() {
		return &users{}
	}
	return &users{root: filepath.Join("/", rootPath)}
}

// inContainer reports whether this program runs in a container of Docker, Podman or
// Kubernetes.
func inContainer() bool {
	for _, mark := range []string{"/.dockerenv", "/run/.containerenv"} {
		if _, err := os.Stat(mark); err == nil {
			return true
		}
	}
	return os.Getenv("KUBERNETES_SERVICE_HOST") != ""
}

// of returns the name of a process's user, or "": that of its id, else that of the
// user of its Slurm job, which the process may have changed.
func (u *users) of(uid Number, job, slurmUser string) string {
	if uid.Known {
		if name := u.name(uid.Value); name != "" {
			return name
		}
	}
	if job != "" && isUserName(slurmUser) {
		return slurmUser
	}
	return ""
}

// name returns the name of a user, or "". The file is read again if it has changed.
// Directories such as LDAP are not asked: an answer may take long.
func (u *users) name(uid int64) string {
	if u.root == "" {
		return ""
	}
	root, err := os.OpenRoot(u.root)
	if err != nil {
		return u.names[uid]
	}
	defer func() { _ = root.Close() }()
	info, err := root.Stat("etc/passwd")
	if err != nil || !info.Mode().IsRegular() || u.info != nil && info.Size() == u.info.Size() && info.ModTime().Equal(u.info.ModTime()) {
		return u.names[uid]
	}
	// A file that cannot be read is not read again before it changes.
	u.info = info
	if raw, err := readUpTo(maxPasswdSize, root.Open, "etc/passwd"); err == nil {
		u.names = parsePasswd(raw)
	}
	return u.names[uid]
}

// parsePasswd reads the names of users by their ids. Of several names the first
// counts, as for the system.
func parsePasswd(raw []byte) map[int64]string {
	names := make(map[int64]string)
	for line := range bytes.Lines(raw) {
		fields := bytes.SplitN(bytes.TrimRight(line, "\n"), []byte{':'}, 4)
		if len(fields) < 4 || len(names) >= maxUsers {
			continue
		}
		uid, name := number(string(fields[2])), string(fields[0])
		if _, known := names[uid.Value]; uid.Known && !known && isUserName(name) {
			names[uid.Value] = name
		}
	}
	return names
}

// isUserName reports whether a text can be the name of a user: an id that is no
// number, with which it could be confused.
func isUserName(name string) bool {
	_, err := strconv.ParseInt(name, 10, 64)
	return err != nil && len(name) <= maxUserName && mlattr.ValidID(name)
}
