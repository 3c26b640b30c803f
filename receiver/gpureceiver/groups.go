package gpureceiver

import (
	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// groupSum is the use of a GPU by all processes of one workload.
type groupSum struct {
	workload workload.Workload
	// memory is in bytes, and utilization the fraction of time, 0 to 1.
	memory, utilization device.Number
}

// groups sums the use of a GPU by workload, in the order of the first add. Create it
// with newGroups.
type groups struct {
	limit int
	// merged is the number of processes that were added to the unknown workload
	// because of the limit.
	merged int
	// sums are valid until the next reset.
	sums  []groupSum
	index map[workload.Workload]int
}

// newGroups returns empty groups for at most limit workloads and the unknown
// workload.
func newGroups(limit int) *groups {
	return &groups{limit: limit, index: make(map[workload.Workload]int)}
}

// add adds a process's use to its workload. Beyond the limit it adds the use of a new
// workload to the unknown workload, so that the total stays right.
func (g *groups) add(w workload.Workload, memory, utilization device.Number) {
	sum := g.of(w)
	addKnown(&sum.memory, memory)
	addKnown(&sum.utilization, utilization)
}

// addKnown adds a number. An unknown number adds nothing.
func addKnown(to *device.Number, number device.Number) {
	if number.Known {
		*to = device.Read(to.Value + number.Value)
	}
}

// addOwner adds a pod that holds the GPU, with 0 bytes of memory, unless one of its
// processes was added.
func (g *groups) addOwner(pod workload.Pod) {
	for i := range g.sums {
		if g.sums[i].workload.Pod == pod {
			return
		}
	}
	addKnown(&g.of(workload.Workload{Pod: pod}).memory, device.Read(0))
}

// of returns the sum of a workload. It is valid until the next call.
func (g *groups) of(w workload.Workload) *groupSum {
	i, found := g.index[w]
	if !found && w != (workload.Workload{}) && len(g.sums) >= g.limit {
		g.merged++
		w = workload.Workload{}
		i, found = g.index[w]
	}
	if !found {
		i = len(g.sums)
		g.index[w] = i
		g.sums = append(g.sums, groupSum{workload: w})
	}
	return &g.sums[i]
}

// reset empties the groups and keeps their memory.
func (g *groups) reset() {
	g.sums = g.sums[:0]
	g.merged = 0
	clear(g.index)
}
