// Package workload identifies the workload of a process: its run, rank, Slurm job,
// pod, container, service and user. Its only sources are the process's cgroup
// and a short list of environment variables, from /proc or from a recording.
package workload

import (
	"bytes"
	"cmp"
	"errors"
	"math"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/clients"
)

// Number is an integer that may be unknown. The zero Number is unknown.
type Number = Optional[int64]

// Optional is a number that may be unknown, so that a missing value never looks like 0.
type Optional[T int64 | float64] struct {
	Value T
	Known bool
}

// MarshalYAML writes the bare value, whole numbers as integers, so that YAML writes no
// exponent.
func (n Optional[T]) MarshalYAML() (any, error) {
	if whole := int64(n.Value); T(whole) == n.Value && math.Abs(float64(n.Value)) < 1<<53 {
		return whole, nil
	}
	return n.Value, nil
}

// UnmarshalYAML reads the bare value.
func (n *Optional[T]) UnmarshalYAML(read func(any) error) error {
	if err := read(&n.Value); err != nil {
		return err
	}
	if n.Known = IsReading(float64(n.Value)); !n.Known {
		return errors.New("a number is not from -1e30 to 1e30")
	}
	return nil
}

// IsReading reports whether a number can be a reading: from -1e30 to 1e30, which keeps
// sums of a recording's values far from an overflow. NaN cannot.
func IsReading(number float64) bool { return math.Abs(number) <= 1e30 }

// Workload is what a process belongs to. Unknown fields are empty. It is
// comparable, so that it can be the key of a map.
type Workload struct {
	// RunID is the run's id. Identify lists its sources.
	RunID string
	// RunAttempt is the number of restarts of the run by its launcher.
	RunAttempt Number
	// RankGlobal is the rank in the job.
	RankGlobal Number
	// RankLocal is the rank on the host.
	RankLocal Number
	// WorldSize is the number of ranks of the job.
	WorldSize Number
	// SlurmJobID is the Slurm job.
	SlurmJobID string
	// ContainerID is the container's id, 64 hexadecimal digits.
	ContainerID string
	// PodUID is the UID of the Kubernetes pod.
	PodUID string
	// Pod is the container according to the kubelet.
	Pod Pod
	// ServiceName is the service.name of the process's telemetry.
	ServiceName string
	// UserID is the numeric id of the user, in decimal.
	UserID string
	// UserName is the user's name on the host or in Slurm. It is empty for a
	// process in a container, whose users are others, and if names are not wanted.
	UserName string
}

// Identify returns the workload of a process.
//
// The run is the first of clients.RunVariables that names one. The launcher's
// variables take precedence over Slurm's, because a launcher started by Slurm is
// one task with many ranks. The Slurm job comes from the cgroup first, which a
// process cannot change.
func Identify(env Environment, group Cgroup, uid Number) Workload {
	w := Workload{
		RunAttempt:  cmp.Or(number(env["TORCHELASTIC_RESTART_COUNT"]), number(env["SLURM_RESTART_COUNT"])),
		RankGlobal:  cmp.Or(number(env["RANK"]), number(env["SLURM_PROCID"])),
		RankLocal:   number(env["LOCAL_RANK"]),
		SlurmJobID:  cmp.Or(group.SlurmJobID, id(env["SLURM_JOB_ID"])),
		ContainerID: group.ContainerID,
		PodUID:      group.PodUID,
		ServiceName: cmp.Or(env["OTEL_SERVICE_NAME"], serviceName(env["OTEL_RESOURCE_ATTRIBUTES"])),
	}
	for _, name := range clients.RunVariables {
		w.RunID = cmp.Or(w.RunID, id(env[name]))
	}
	// A job has at least one rank, so that 0 means unknown.
	if size := number(env["WORLD_SIZE"]); size.Value > 0 {
		w.WorldSize = size
	}
	if uid.Known {
		w.UserID = strconv.FormatInt(uid.Value, 10)
	}
	return w
}

// id returns a value that is an id, or "".
func id(value string) string {
	if mlattr.Sentinel(value) {
		return ""
	}
	return value
}

// number reads a rank, a count or an id. None is negative.
func number(value string) Number {
	n, err := strconv.ParseUint(value, 10, 32)
	if err != nil {
		return Number{}
	}
	return Number{Value: int64(n), Known: true}
}

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

// Attributes are optional attributes of mdatagen's builders. What is unknown is left
// out.
type Attributes[Option any] []Option

// Text adds an attribute, unless its value is empty.
func (a *Attributes[Option]) Text(value string, attribute func(string) Option) {
	if value != "" {
		*a = append(*a, attribute(value))
	}
}

// Number adds an attribute whose value is known.
func (a *Attributes[Option]) Number(value Number, attribute func(int64) Option) {
	if value.Known {
		*a = append(*a, attribute(value.Value))
	}
}

// Source is a source of process attribution: it says what a process belongs to.
type Source string

// The sources. The values are those of the attribute
// nvidia.gpu.attribution.source.
const (
	// SourceCgroup is the process's cgroup, which has its Slurm job, container
	// and pod.
	SourceCgroup Source = "cgroup"
	// SourceEnviron is the process's environment, which has its run, rank and
	// service.
	SourceEnviron Source = "environ"
	// SourcePodResources is the kubelet's list of which container has which
	// device.
	SourcePodResources Source = "podresources"
	// SourceSlurm is Slurm's part of a cgroup or of an environment.
	SourceSlurm Source = "slurm"
)

// Sources lists every source in the order of reports.
var Sources = []Source{SourceCgroup, SourceEnviron, SourcePodResources, SourceSlurm}

// SourceState says whether a source works on this host.
type SourceState string

// The states of a source. The values are those of the attribute
// nvidia.gpu.attribution.state.
const (
	// SourceOK means that it identifies at least one process.
	SourceOK SourceState = "ok"
	// SourceDenied means that it exists, and that this program has no permission
	// for at least one process.
	SourceDenied SourceState = "denied"
	// SourceAbsent means that it has no data.
	SourceAbsent SourceState = "absent"
)

// SourceStates lists every state in the order of reports.
var SourceStates = []SourceState{SourceOK, SourceDenied, SourceAbsent}

// Evidence is the state of each source for one process. The zero Evidence means
// that none was tried.
type Evidence struct {
	Cgroup  SourceState
	Environ SourceState
	Slurm   SourceState
	// cgroupRead is true if the process's cgroup is known.
	cgroupRead bool
}

// OnHost reports whether a process is known to run outside of containers.
func (e *Evidence) OnHost(w *Workload) bool {
	return e.cgroupRead && w.ContainerID == "" && w.PodUID == ""
}

// Add updates the states of the sources with the evidence about one process. A
// source is denied if it is denied for one process, and otherwise ok if it is ok
// for one.
func (e *Evidence) Add(states map[Source]SourceState) {
	for source, state := range map[Source]SourceState{SourceCgroup: e.Cgroup, SourceEnviron: e.Environ, SourceSlurm: e.Slurm} {
		if state == SourceDenied || state == SourceOK && states[source] != SourceDenied {
			states[source] = state
		}
	}
}

// maxValueLength is the longest value in bytes. Longer values are ignored: ids
// and names are shorter.
const maxValueLength = 256

// Environment is the part of a process's environment that identifies its
// workload, by the names of variables. Other variables often hold secrets and are
// never kept. None is logged.
type Environment map[string]string

// longest has the allowed variables with the lengths of their longest values in bytes.
var longest = func() map[string]int {
	lengths := map[string]int{"OTEL_RESOURCE_ATTRIBUTES": 4096} // a list
	for _, name := range append([]string{
		"RANK", "LOCAL_RANK", "WORLD_SIZE", "TORCHELASTIC_RESTART_COUNT",
		"SLURM_JOB_ID", "SLURM_PROCID", "SLURM_RESTART_COUNT", "SLURM_JOB_USER", "OTEL_SERVICE_NAME",
	}, clients.RunVariables[:]...) {
		lengths[name] = maxValueLength
	}
	return lengths
}()

// ParseEnviron reads an environment as /proc/<pid>/environ gives it: entries
// NAME=value, each ended by a zero byte. As in getenv, the first entry of a
// name counts. A value that is too long or no UTF-8 is ignored.
func ParseEnviron(raw []byte) Environment {
	env := Environment{}
	for entry := range bytes.SplitSeq(raw, []byte{0}) {
		name, value, _ := bytes.Cut(entry, []byte{'='})
		limit, allowed := longest[string(name)]
		if allowed && len(value) > 0 && env[string(name)] == "" && len(value) <= limit && utf8.Valid(value) {
			env[string(name)] = string(value)
		}
	}
	return env
}

// serviceName reads service.name from the value of OTEL_RESOURCE_ATTRIBUTES,
// a list key=value,… with percent-encoded values. As in the SDKs, the last
// entry of a key counts. Other keys are ignored.
func serviceName(resourceAttributes string) string {
	name := ""
	for pair := range strings.SplitSeq(resourceAttributes, ",") {
		key, value, found := strings.Cut(pair, "=")
		decoded, err := url.PathUnescape(strings.TrimSpace(value))
		if found && strings.TrimSpace(key) == "service.name" && err == nil && len(decoded) <= maxValueLength && utf8.ValidString(decoded) {
			name = decoded
		}
	}
	return name
}

// The segments of a cgroup's path that have ids.
var (
	// podSegment is what the kubelet makes of a pod's UID: pod<uid> with the cgroupfs
	// driver, kubepods-burstable-pod<uid>.slice, with underscores for hyphens, with
	// systemd's, which puts the kubelet's own slice in front where it has one. Static
	// pods have a UID of 32 hexadecimal digits. containerd writes
	// slice:runtime:container in one segment where its cgroup driver is not the
	// kubelet's.
	podSegment = regexp.MustCompile(`^(?:[^:]*kubepods[^:]*-)?pod([0-9a-f]{32}|[0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12})(?:\.slice)?(?::|$)`)
	// containerSegment is <id>, docker-<id>.scope, cri-containerd-<id>.scope,
	// crio-<id> or libpod-<id>.scope.
	containerSegment = regexp.MustCompile(`(?:^|[-:])([0-9a-f]{64})(?:\.scope)?$`)
	// slurmSegment is above jobSegment, v1: /slurm/uid_1000/job_42/step_0, v2:
	// /system.slice/slurmstepd.scope/job_42/step_0/user/task_0, with the node's name in
	// the scope's where several slurmd share a host.
	slurmSegment = regexp.MustCompile(`^slurm(?:_|$)|slurmstepd\.scope$`)
	jobSegment   = regexp.MustCompile(`^job_(\d{1,20})$`)
)

// Cgroup is the container, pod and job of a process according to its cgroup.
type Cgroup struct {
	// ContainerID is the innermost container's id.
	ContainerID string
	// PodUID is the pod's UID with hyphens.
	PodUID string
	// SlurmJobID is the job's number in decimal.
	SlurmJobID string
}

// ParseCgroup reads /proc/<pid>/cgroup: lines hierarchy:controllers:path, one
// line on a host with cgroup v2.
func ParseCgroup(raw []byte) Cgroup {
	var group Cgroup
	for line := range strings.Lines(string(raw)) {
		if fields := strings.SplitN(line, ":", 3); len(fields) == 3 {
			group.add(strings.TrimRight(fields[2], "\n"))
		}
	}
	return group
}

// add adds the ids of one path. It never replaces an id of an earlier line.
func (g *Cgroup) add(path string) {
	var of Cgroup
	inSlurm := false
	for segment := range strings.SplitSeq(path, "/") {
		inSlurm = inSlurm || slurmSegment.MatchString(segment)
		if job := jobSegment.FindStringSubmatch(segment); job != nil && inSlurm {
			of.SlurmJobID = job[1]
		}
		if pod := podSegment.FindStringSubmatch(segment); pod != nil {
			of.PodUID = strings.ReplaceAll(pod[1], "_", "-")
		}
		if container := containerSegment.FindStringSubmatch(segment); container != nil {
			of.ContainerID = container[1]
		}
	}
	g.ContainerID = cmp.Or(g.ContainerID, of.ContainerID)
	g.PodUID = cmp.Or(g.PodUID, of.PodUID)
	g.SlurmJobID = cmp.Or(g.SlurmJobID, of.SlurmJobID)
}
