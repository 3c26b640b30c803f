package gpujoin

import (
	"cmp"
	"slices"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// rule ties a GPU's workload to a run. The surest rule comes first.
type rule uint8

const (
	// ruleProcess matches the process itself: its pid and start time, or its
	// pid in its container.
	ruleProcess rule = iota
	// ruleGPU matches the UUID of the GPU that the client names, if one workload
	// uses the GPU.
	ruleGPU
	// ruleRank matches the rank on its host by global rank, local rank and
	// world size.
	ruleRank
	ruleContainer
	rulePod
	// ruleSlurm matches the Slurm job: its runs on the host, or the run that
	// the job itself is if none is known there.
	ruleSlurm
	// ruleService matches the only run of a service on its host.
	ruleService
	// ruleIndex matches the GPU's index, if one run is alone on its host.
	ruleIndex
	ruleCount

	// anyOnHost is no rule. It marks the location of everything on a host.
	anyOnHost = ruleCount
)

// ruleNames are the values of ml.gpu.join.
var ruleNames = [ruleCount]string{"process", "gpu", "rank", "container", "pod", "slurm", "service", "index"}

// weak reports whether the rule holds only because no other run is known.
func (r rule) weak() bool { return r >= ruleService }

// trait is what both a client and the gpu receiver may report of a process, and
// of which a process has one value.
type trait uint8

const (
	traitHost trait = iota // host.id; host.name is part of the location
	traitContainer
	traitPod
	traitSlurm
	traitWorld
	traitService
	traitCount
)

// disproves lists for each rule the traits that may not differ. A run of more
// than one process may have several containers or ranks, but one world size.
var disproves = [ruleCount][]trait{
	ruleProcess:   {traitHost, traitContainer, traitPod, traitSlurm, traitWorld},
	ruleGPU:       {traitHost, traitContainer, traitPod, traitSlurm, traitWorld},
	ruleRank:      {traitHost, traitContainer, traitPod, traitSlurm},
	ruleContainer: {traitHost, traitPod, traitSlurm, traitWorld},
	rulePod:       {traitHost, traitContainer, traitSlurm, traitWorld},
	ruleSlurm:     {traitHost, traitWorld},
	ruleService:   {traitHost, traitContainer, traitPod, traitSlurm, traitWorld},
	ruleIndex:     {traitHost, traitContainer, traitPod, traitSlurm, traitWorld, traitService},
}

// traitValue is the hash of a trait's value, or 0 if it is unknown.
type traitValue struct {
	value uint64
	// several is true if there was another value recently.
	several bool
}

// processID tells a process from others on its host or in its container.
type processID struct {
	// pid is 0 if unknown. A client reports the pid in its own PID namespace,
	// and the gpu receiver the host's.
	pid int64
	// own is the pid in the process's own PID namespace as the gpu receiver
	// reports it, or 0.
	own int64
	// start is the start time in nanoseconds since 1970, or 0.
	start int64
}

// startSlack is by how many nanoseconds two readings of one start time may
// differ: they come from clock ticks and the boot time, which is in whole
// seconds.
const startSlack = 1_000_000_000

// visible returns the pid that the process itself sees.
func (p processID) visible() int64 { return cmp.Or(p.own, p.pid) }

// sameStart reports whether two start times can be one.
func sameStart(a, b int64) bool { return a-b <= startSlack && b-a <= startSlack }

// candidate is a live run at a location, and what its telemetry from there
// reports.
type candidate struct {
	account
	traits [traitCount]traitValue
	// alone is true if all telemetry of the run from the location is of one
	// process. What the account says of that is valid only then.
	alone bool
}

// rank is the numbers of a rank.
type rank struct{ global, local count }

// count is a number that may be missing.
type count struct {
	n  int64
	ok bool
}

// evidence is what a GPU's workload reports of itself.
type evidence struct {
	// run is set if the workload names it.
	run    string
	traits [traitCount]uint64
	ranked bool
	// processes are those of the workload on its GPU that have series.
	processes []processID
	// alone is true if no other workload uses the GPU.
	alone bool
}

// candidates are the runs at the locations of a rule.
type candidates struct {
	list []candidate
	// ambiguous is true if more than one workload is at a location of one
	// process.
	ambiguous bool
	// manyGPUs is true if workloads of several GPUs are at the location.
	manyGPUs bool
}

// join attaches a workload to a run. ok is false if there is none.
type join struct {
	candidate
	rule rule
	ok   bool
	// manyGPUs is true if workloads of other GPUs are at the same location.
	manyGPUs bool
}

// match finds the run of a workload: by the first rule with exactly one live
// run that the evidence does not disprove. If several runs match a rule, none
// is joined. Later rules may only choose among those runs, and weak rules may
// not choose.
func match(w *evidence, at *[ruleCount]candidates) join {
	var among []candidate
	for r := range ruleCount {
		if r.weak() && (w.ranked || among != nil || r == ruleIndex && !w.alone) {
			break
		}
		left := mlattr.Where(slices.Values(at[r].list), func(c candidate) bool { return !w.disproves(r, &c) })
		switch {
		case len(left) == 0:
			continue
		case len(left) > 1 || at[r].ambiguous:
			if among == nil {
				among = left
			}
			continue
		case among != nil && !hasRun(among, left[0].run):
			return join{}
		}
		return join{left[0], r, true, at[r].manyGPUs}
	}
	return join{}
}

func hasRun(list []candidate, run string) bool {
	return slices.ContainsFunc(list, func(c candidate) bool { return c.run == run })
}

// disproves reports whether the workload cannot belong to the run.
func (w *evidence) disproves(r rule, c *candidate) bool {
	if w.run != "" && w.run != c.run && (!c.inferred || r > ruleRank) {
		// An inferred id was sent by nobody, so another name is no
		// contradiction: the process is still the same.
		return true
	}
	for _, t := range disproves[r] {
		ours, theirs := w.traits[t], c.traits[t]
		if ours == 0 || theirs.value == 0 {
			continue
		}
		// A weak rule asks only because nothing was at the location that the
		// trait names, so the run has another value.
		if ours != theirs.value && !theirs.several || theirs.several && r.weak() {
			return true
		}
	}
	if r == ruleProcess && c.traits[traitContainer].value != 0 && w.traits[traitContainer] == 0 && w.onHost() {
		return true // the client's pid is of its container, the workload's is not
	}
	return r != ruleSlurm && w.otherProcess(r, c)
}

// onHost reports whether a process of the workload sees the host's pids, as far
// as is known.
func (w *evidence) onHost() bool {
	return slices.ContainsFunc(w.processes, func(p processID) bool { return p.own == 0 || p.own == p.pid })
}

// otherProcess reports whether the processes of the workload are known and none
// can be the client's. For a rule about several processes only a pid that was
// used again proves it.
func (w *evidence) otherProcess(r rule, c *candidate) bool {
	if !c.alone || c.process.pid == 0 || len(w.processes) == 0 || r == ruleContainer || r == rulePod {
		return false
	}
	reused := false
	for _, p := range w.processes {
		switch {
		case p.own == 0 && w.traits[traitContainer] != 0:
			return false // the pid that the process sees is unknown
		case p.visible() != c.process.pid:
		case p.start == 0 || c.process.start == 0 || sameStart(p.start, c.process.start):
			return false
		default:
			reused = true
		}
	}
	return reused || r <= ruleRank
}
