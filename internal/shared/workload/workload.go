package workload

import (
	"cmp"
	"strconv"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/clients"
)

// Number is an integer that may be unknown. The zero Number is unknown.
type Number struct {
	Value int64
	Known bool
}

// MarshalYAML writes the bare value.
func (n Number) MarshalYAML() (any, error) { return n.Value, nil }

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
		RunAttempt:  firstKnown(number(env["TORCHELASTIC_RESTART_COUNT"]), number(env["SLURM_RESTART_COUNT"])),
		RankGlobal:  firstKnown(number(env["RANK"]), number(env["SLURM_PROCID"])),
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

// number reads a rank or a count. Ranks and counts are never negative.
func number(value string) Number {
	n, err := strconv.ParseInt(value, 10, 32)
	if err != nil || n < 0 {
		return Number{}
	}
	return Number{Value: n, Known: true}
}

func firstKnown(a, b Number) Number {
	if a.Known {
		return a
	}
	return b
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
