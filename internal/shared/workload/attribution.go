package workload

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
