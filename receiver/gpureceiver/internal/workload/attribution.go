package workload

// Way is a way of telling what a process belongs to.
type Way string

// The ways. The values are those of the attribute
// nvidia.gpu.attribution.source.
const (
	// WayCgroup is the process's cgroup, which tells its Slurm job, container
	// and pod.
	WayCgroup Way = "cgroup"
	// WayEnviron is the process's environment, which tells its run, rank and
	// service.
	WayEnviron Way = "environ"
	// WayPodResources is the kubelet's list of which container has which
	// device.
	WayPodResources Way = "podresources"
	// WaySlurm is Slurm's part of a cgroup or of an environment.
	WaySlurm Way = "slurm"
)

// Ways lists every way, in the order in which they are reported.
var Ways = []Way{WayCgroup, WayEnviron, WayPodResources, WaySlurm}

// WayState says whether a way works here.
type WayState string

// The states of a way. The values are those of the attribute
// nvidia.gpu.attribution.state.
const (
	// WayOK means that it tells something of at least one process.
	WayOK WayState = "ok"
	// WayDenied means that it exists and this program may not use it, for at
	// least one process.
	WayDenied WayState = "denied"
	// WayAbsent means that there is nothing to be told by it.
	WayAbsent WayState = "absent"
)

// WayStates lists every state, in the order in which they are reported.
var WayStates = []WayState{WayOK, WayDenied, WayAbsent}

// Evidence says what each way has told about one process. The zero Evidence
// means that none was tried.
type Evidence struct {
	Cgroup  WayState
	Environ WayState
	Slurm   WayState
	// cgroupRead is true if the process's cgroup is known.
	cgroupRead bool
}

// OnHost reports whether a process is known to run outside of any container.
func (e *Evidence) OnHost(w *Workload) bool {
	return e.cgroupRead && w.ContainerID == "" && w.PodUID == ""
}

// Add lets the evidence about one process count for the ways. What is denied
// for one process is denied, and what tells something of one works.
func (e *Evidence) Add(ways map[Way]WayState) {
	for way, state := range map[Way]WayState{WayCgroup: e.Cgroup, WayEnviron: e.Environ, WaySlurm: e.Slurm} {
		if state == WayDenied || state == WayOK && ways[way] != WayDenied {
			ways[way] = state
		}
	}
}
