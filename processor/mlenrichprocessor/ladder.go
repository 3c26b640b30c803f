package mlenrichprocessor

// rung is a rule that ties a GPU's workload to a run, the surest first.
type rung uint8

const (
	// rungProcess is the process itself, by its number and its start, or by its
	// number in its container.
	rungProcess rung = iota
	// rungRank is the rank on its host, by all three numbers of it.
	rungRank
	rungContainer
	rungPod
	// rungSlurm is the Slurm job: of its runs that of the host, and where none
	// is known, the one that the job itself is.
	rungSlurm
	// rungService is the only run of a service on its host.
	rungService
	// rungIndex is the GPU's index, where one run is alone on its host.
	rungIndex
	rungCount

	// ofHost is no rung but the place of everything on a host.
	ofHost = rungCount
)

// rungNames are the values of ml.gpu.join.
var rungNames = [rungCount]string{"process", "rank", "container", "pod", "slurm", "service", "index"}

// weak says whether a rung knows a run only by there being no other.
func (r rung) weak() bool { return r >= rungService }

// trait is what both a client and the gpu receiver may say of a process, and
// of which one process has only one.
type trait uint8

const (
	traitHost trait = iota // host.id; the name is part of the place
	traitContainer
	traitPod
	traitSlurm
	traitWorld
	traitService
	traitCount
)

// disproves has the traits that may not differ where a rung is to hold. A run
// that is more than one process may have several containers or ranks, but not
// several worlds.
var disproves = [rungCount][]trait{
	rungProcess:   {traitHost, traitContainer, traitPod, traitSlurm, traitWorld},
	rungRank:      {traitHost, traitContainer, traitPod, traitSlurm},
	rungContainer: {traitHost, traitPod, traitSlurm, traitWorld},
	rungPod:       {traitHost, traitContainer, traitSlurm, traitWorld},
	rungSlurm:     {traitHost, traitWorld},
	rungService:   {traitHost, traitContainer, traitPod, traitSlurm, traitWorld},
	rungIndex:     {traitHost, traitContainer, traitPod, traitSlurm, traitWorld, traitService},
}

// said is a trait's value, as store.hashOf has it, and zero where nobody says
// it.
type said struct {
	value uint64
	// several is true where there was another value not long ago.
	several bool
}

// processID is what tells a process from others on its host or in its
// container.
type processID struct {
	// pid is its number, and zero is none: a client says the one that it sees
	// itself, and the gpu receiver the host's.
	pid int64
	// own is the number that it sees itself, in its own PID namespace, as the
	// gpu receiver says it; zero is unknown.
	own int64
	// start is when it began, in nanoseconds since 1970, and zero is unknown.
	start int64
}

// startSlack is by how much two readings of one start may differ, in
// nanoseconds: they come from clock ticks and the time of boot, which is in
// whole seconds.
const startSlack = 1_000_000_000

// visible is the number that the process itself sees.
func (p processID) visible() int64 {
	if p.own != 0 {
		return p.own
	}
	return p.pid
}

// sameStart says whether two starts can be one.
func sameStart(a, b int64) bool { return a-b <= startSlack && b-a <= startSlack }

// claimant is a live run at a place, and what its telemetry from there says.
type claimant struct {
	run      string
	inferred bool
	says     [traitCount]said

	// alone is true where all telemetry of the run from the place is of one
	// process, client. What follows is known then only.
	alone   bool
	client  uint64
	process processID
	rank    rankNumbers
	memory  clientMemory

	job     string
	attempt count
}

// rankNumbers are the numbers of a rank.
type rankNumbers struct {
	global, local count
}

// evidence is what a GPU's workload says of itself.
type evidence struct {
	// run is set where the workload names it.
	run    string
	says   [traitCount]uint64
	ranked bool
	// processes are those of the workload on its GPU, where they have series.
	processes []processID
	// alone is true where no other workload uses the GPU.
	alone bool
}

// found is what there is at the place of a rung.
type found struct {
	claimants []claimant
	// doubtful is true where more than one workload is at the place of one
	// process.
	doubtful bool
}

// climb finds a workload's run: the first rung at whose place there is exactly
// one live run that the evidence does not disprove. A rung at which there are
// several joins none of them, and one further down may only choose among these,
// and not by there being no other.
func climb(w *evidence, at *[rungCount]found) (claimant, rung, bool) {
	var among []claimant
	for r := range rungCount {
		if r.weak() && (w.ranked || among != nil || r == rungIndex && !w.alone) {
			break
		}
		var left []claimant
		for _, c := range at[r].claimants {
			if !w.disproves(r, &c) {
				left = append(left, c)
			}
		}
		switch {
		case len(left) == 0:
			continue
		case len(left) > 1 || at[r].doubtful:
			if among == nil {
				among = left
			}
			continue
		case among != nil && !claims(among, left[0].run):
			return claimant{}, 0, false
		}
		return left[0], r, true
	}
	return claimant{}, 0, false
}

func claims(claimants []claimant, run string) bool {
	for i := range claimants {
		if claimants[i].run == run {
			return true
		}
	}
	return false
}

// disproves says whether the workload cannot be of the run.
func (w *evidence) disproves(r rung, c *claimant) bool {
	if w.run != "" && w.run != c.run && (!c.inferred || r > rungRank) {
		// Nobody named an inferred run, so another name for it is none: the
		// process is still the same.
		return true
	}
	for _, t := range disproves[r] {
		ours, theirs := w.says[t], c.says[t]
		if ours == 0 || theirs.value == 0 {
			continue
		}
		// What is there by there being no other was not at the place that the
		// trait names, so it has another.
		if ours != theirs.value && !theirs.several || theirs.several && r.weak() {
			return true
		}
	}
	if r == rungProcess && c.says[traitContainer].value != 0 && w.says[traitContainer] == 0 && w.onHost() {
		return true // the client counts in its container, and this is outside of it
	}
	return r != rungSlurm && w.otherProcess(r, c)
}

// onHost says whether a process of the workload sees the host's numbers, as far
// as is known.
func (w *evidence) onHost() bool {
	for _, p := range w.processes {
		if p.own == 0 || p.own == p.pid {
			return true
		}
	}
	return false
}

// otherProcess says whether the processes of the workload are known and none
// of them can be the client's. Of a rung that is about more than one process
// only a number that was given anew says so.
func (w *evidence) otherProcess(r rung, c *claimant) bool {
	if !c.alone || c.process.pid == 0 || len(w.processes) == 0 || r == rungContainer || r == rungPod {
		return false
	}
	anew := false
	for _, p := range w.processes {
		switch {
		case p.own == 0 && w.says[traitContainer] != 0:
			return false // what the process itself sees is not known
		case p.visible() != c.process.pid:
		case p.start == 0 || c.process.start == 0 || sameStart(p.start, c.process.start):
			return false
		default:
			anew = true
		}
	}
	return anew || r <= rungRank
}
