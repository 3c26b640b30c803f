package workload

// Usage is the memory that one workload uses of one GPU.
type Usage struct {
	Workload Workload
	// Memory is in bytes.
	Memory uint64
}

// Groups sums memory by workload, in the order in which the workloads come.
// NewGroups makes one.
type Groups struct {
	limit  int
	merged int
	usages []Usage
	index  map[Workload]int
}

// NewGroups returns empty Groups that hold at most limit workloads and, beside
// them, the one that nothing is known about.
func NewGroups(limit int) *Groups {
	return &Groups{limit: limit, index: make(map[Workload]int)}
}

// Add adds a process's memory in bytes to its workload. Beyond the limit a
// new workload's memory is added to the workload that nothing is known about,
// so that the sum of all stays right.
func (g *Groups) Add(w Workload, memory uint64) {
	i, found := g.index[w]
	if !found && w != (Workload{}) && len(g.usages) >= g.limit {
		g.merged++
		w = Workload{}
		i, found = g.index[w]
	}
	if !found {
		i = len(g.usages)
		g.index[w] = i
		g.usages = append(g.usages, Usage{Workload: w})
	}
	g.usages[i].Memory += memory
}

// Usages returns the sums. They are valid until the next Reset.
func (g *Groups) Usages() []Usage {
	return g.usages
}

// Merged returns how often a process was counted in the workload that nothing
// is known about because of the limit.
func (g *Groups) Merged() int {
	return g.merged
}

// Reset empties the groups and keeps their memory.
func (g *Groups) Reset() {
	g.usages = g.usages[:0]
	g.merged = 0
	clear(g.index)
}
