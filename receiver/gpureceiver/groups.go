package workload

// Amount is a quantity that may be unknown.
type Amount struct {
	Value float64
	Known bool
}

// add adds an amount. An unknown amount adds nothing.
func (a *Amount) add(b Amount) {
	if b.Known {
		a.Value += b.Value
		a.Known = true
	}
}

// Usage is the use of a GPU by one process.
type Usage struct {
	// Memory is in bytes.
	Memory Amount
	// Utilization is the fraction of time, 0 to 1.
	Utilization Amount
}

// Sum is the use of a GPU by all processes of one workload.
type Sum struct {
	Workload Workload
	Usage
}

// Groups sums usage by workload, in the order of the first Add. Create it with
// NewGroups.
type Groups struct {
	limit  int
	merged int
	sums   []Sum
	index  map[Workload]int
}

// NewGroups returns empty Groups for at most limit workloads and the unknown
// workload.
func NewGroups(limit int) *Groups {
	return &Groups{limit: limit, index: make(map[Workload]int)}
}

// Add adds a process's usage to its workload. Beyond the limit it adds the usage
// of a new workload to the unknown workload, so that the total stays right.
func (g *Groups) Add(w Workload, usage Usage) {
	sum := g.of(w)
	sum.Memory.add(usage.Memory)
	sum.Utilization.add(usage.Utilization)
}

// AddOwner adds a pod that holds the GPU, with 0 bytes of memory, unless one of
// its processes was added.
func (g *Groups) AddOwner(pod Pod) {
	for i := range g.sums {
		if g.sums[i].Workload.Pod == pod {
			return
		}
	}
	sum := g.of(Workload{Pod: pod})
	sum.Memory.add(Amount{Known: true})
}

// of returns the sum of a workload. It is valid until the next call.
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

// Merged returns the number of processes that were added to the unknown workload
// because of the limit.
func (g *Groups) Merged() int {
	return g.merged
}

// Reset empties the groups and keeps their memory.
func (g *Groups) Reset() {
	g.sums = g.sums[:0]
	g.merged = 0
	clear(g.index)
}
