package workload

// Amount is a quantity that may be unknown.
type Amount struct {
	Value float64
	Known bool
}

// add adds an amount; what is unknown adds nothing.
func (a *Amount) add(b Amount) {
	if b.Known {
		a.Value += b.Value
		a.Known = true
	}
}

// Usage is what one process uses of a GPU.
type Usage struct {
	// Memory is in bytes.
	Memory Amount
	// Utilization is a part of the time, 0 to 1.
	Utilization Amount
}

// Sum is what the processes of one workload use of a GPU together.
type Sum struct {
	Workload Workload
	Usage
}

// Groups sums usage by workload, in the order in which the workloads come.
// NewGroups makes one.
type Groups struct {
	limit  int
	merged int
	sums   []Sum
	index  map[Workload]int
}

// NewGroups returns empty Groups that hold at most limit workloads and, beside
// them, the one that nothing is known about.
func NewGroups(limit int) *Groups {
	return &Groups{limit: limit, index: make(map[Workload]int)}
}

// Add adds a process's usage to its workload. Beyond the limit a new
// workload's usage is added to the workload that nothing is known about, so
// that the sum of all stays right.
func (g *Groups) Add(w Workload, usage Usage) {
	sum := g.of(w)
	sum.Memory.add(usage.Memory)
	sum.Utilization.add(usage.Utilization)
}

// AddOwner adds a pod that has the GPU, with no memory, unless one of its
// processes was added.
func (g *Groups) AddOwner(pod Pod) {
	for i := range g.sums {
		if g.sums[i].Workload.Pod == pod {
			return
		}
	}
	sum := g.of(Workload{Pod: pod})
	sum.Memory.add(Amount{Known: true})
}

// of returns the sum of a workload, which is valid until the next call.
func (g *Groups) of(w Workload) *Sum {
	i, found := g.index[w]
	if !found && w != (Workload{}) && len(g.sums) >= g.limit {
		g.merged++
		w = Workload{}
		i, found = g.index[w]
	}
	if !found {
		i = len(g.sums)
		g.index[w] = i
		g.sums = append(g.sums, Sum{Workload: w})
	}
	return &g.sums[i]
}

// Sums returns the sums. They are valid until the next Reset.
func (g *Groups) Sums() []Sum {
	return g.sums
}

// Merged returns how often a process was counted in the workload that nothing
// is known about because of the limit.
func (g *Groups) Merged() int {
	return g.merged
}

// Reset empties the groups and keeps their memory.
func (g *Groups) Reset() {
	g.sums = g.sums[:0]
	g.merged = 0
	clear(g.index)
}
