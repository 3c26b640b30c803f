package workload

// Source is a way of telling what a process belongs to.
type Source string

// The ways. The values are those of the attribute
// nvidia.gpu.attribution.source.
const (
	// SourceCgroup is the process's cgroup, which tells its Slurm job, container
	// and pod.
	SourceCgroup Source = "cgroup"
	// SourceEnviron is the process's environment, which tells its run, rank and
	// service.
	SourceEnviron Source = "environ"
	// SourcePodResources is the kubelet's list of which container has which
	// device.
	SourcePodResources Source = "podresources"
	// SourceSlurm is Slurm's part of a cgroup or of an environment.
	SourceSlurm Source = "slurm"
)

// Sources lists every way, in the order in which they are reported.
var Sources = []Source{SourceCgroup, SourceEnviron, SourcePodResources, SourceSlurm}

// SourceState says whether a way works here.
type SourceState string

// The states of a way. The values are those of the attribute
// nvidia.gpu.attribution.state.
const (
	// SourceOK means that it tells something of at least one process.
	SourceOK SourceState = "ok"
	// SourceDenied means that it exists and this program may not use it, for at
	// least one process.
	SourceDenied SourceState = "denied"
	// SourceAbsent means that there is nothing to be told by it.
	SourceAbsent SourceState = "absent"
)

// SourceStates lists every state, in the order in which they are reported.
var SourceStates = []SourceState{SourceOK, SourceDenied, SourceAbsent}

// Evidence says what each way has told about one process. The zero Evidence
// means that none was tried.
type Evidence struct {
	Cgroup  SourceState
	Environ SourceState
	Slurm   SourceState
	// cgroupRead is true if the process's cgroup is known.
	cgroupRead bool
}

// OnHost reports whether a process is known to run outside of any container.
func (e *Evidence) OnHost(w *Workload) bool {
	return e.cgroupRead && w.ContainerID == "" && w.PodUID == ""
}

// Add lets the evidence about one process count for the ways. What is denied
// for one process is denied, and what tells something of one works.
func (e *Evidence) Add(ways map[Source]SourceState) {
	for way, state := range map[Source]SourceState{SourceCgroup: e.Cgroup, SourceEnviron: e.Environ, SourceSlurm: e.Slurm} {
		if state == SourceDenied || state == SourceOK && ways[way] != SourceDenied {
			ways[way] = state
		}
	}
}
