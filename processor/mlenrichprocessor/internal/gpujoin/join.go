// Package gpujoin answers one question: whose GPU is it?
//
// An Index remembers where the processes of runs were seen: on which host, in
// which container, as which rank. Join compares that with the workloads that
// the gpu receiver reports, and adds the run to their points. The rules are in
// rules.go, the surest first.
package gpujoin

import (
	"cmp"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/cache"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/label"
)

// Joinable reports whether a metric's points are of workloads or processes.
func Joinable(name string) bool {
	return strings.HasPrefix(name, mlattr.GPUWorkloadPrefix) || strings.HasPrefix(name, mlattr.GPUProcessPrefix)
}

// workloadIdentity are the attributes by which the gpu receiver tells the
// workloads of a GPU apart.
var workloadIdentity = [...]string{
	mlattr.RunID, mlattr.RunAttempt, mlattr.RankGlobal, mlattr.RankLocal, mlattr.WorldSize, mlattr.SlurmJobID, mlattr.ContainerID,
	mlattr.K8sPodUID, mlattr.K8sNamespace, mlattr.K8sPod, mlattr.K8sContainer, mlattr.ServiceName, mlattr.UserID,
}

// request is the GPUs of a request, and their workloads.
type request struct {
	index     *Index
	workloads []*workload
	points    []point

	gpus       map[gpuKey]*gpu
	workloadAt map[workloadKey]*workload
	processAt  map[processKey]int
}

type gpuKey struct {
	host uint64 // a hash
	id   string
}

// gpu is a GPU or MIG device.
type gpu struct {
	host      uint64 // the hash of host.name
	id        uint64 // the hash of hw.id
	uuid      uint64 // that of hw.id without its prefix
	workloads int    // how many
	run       string // the first that uses it
	shared    bool

	// memory has the sizes of the GPU's memory, by their metrics.
	memory map[string]count
	// inUse is the memory of its workloads in bytes, and unsized is true if
	// that is not known of all.
	inUse   int64
	unsized bool
}

type workloadKey struct {
	gpu      *gpu
	identity string
}

type processKey struct {
	workload *workload
	process  processID
}

// workload is what holds a GPU.
type workload struct {
	evidence
	gpu             *gpu
	rank            rank
	world, gpuIndex count
	// memory is the workload's part of the GPU's, and hasPoints is true if
	// there are points other than those of its processes.
	memory    count
	hasPoints bool
	// at has the locations of each rule at which its run may be, and atOf those of each
	// process.
	at   [ruleCount + 1][]location
	atOf [][]location

	join join
	// ownJoins are those of the processes on their own.
	ownJoins []join
}

// point is a point of a workload's series, or of a process of one.
type point struct {
	attrs    pcommon.Map
	workload *workload
	// process is the index among the workload's processes, or -1 for a
	// workload's own point.
	process int
	run     string

	name     string
	at       pcommon.Timestamp
	resource int
}

// Join attaches the workloads and processes of a request to runs, and adds the
// metrics ml.run.info and ml.gpu.memory.breakdown. hosts returns host.name of
// the resource with an index. What an ml_enrich before this one has joined
// stays as it is. It returns how many breakdowns were left out because their
// sizes contradict each other.
func (ix *Index) Join(md pmetric.Metrics, hosts func(resource int) string) (skipped int) {
	r := &request{index: ix, gpus: make(map[gpuKey]*gpu), workloadAt: make(map[workloadKey]*workload), processAt: make(map[processKey]int)}
	for i, rm := range md.ResourceMetrics().All() {
		if !joined(rm) {
			r.read(rm, i, hosts(i))
		}
	}
	if len(r.points) == 0 {
		return 0
	}
	r.match()
	r.write()
	added := &addedMetrics{md: md, scopes: make(map[int]pmetric.ScopeMetrics),
		points: make(map[pointsKey]pmetric.NumberDataPointSlice), seen: make(map[string]bool)}
	r.addRunInfo(added)
	r.addUp()
	return r.addBreakdowns(added)
}

// joined reports whether the GPUs of a resource are joined to their runs
// already.
func joined(rm pmetric.ResourceMetrics) bool {
	for _, sm := range rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			if m.Name() == runInfo.name {
				return true
			}
			if !Joinable(m.Name()) {
				continue
			}
			for _, p := range mlattr.NumberPoints(m).All() {
				if _, ok := p.Attributes().Get(mlattr.GPUJoin); ok {
					return true
				}
			}
		}
	}
	return false
}

// read collects what a resource reports about GPUs.
func (r *request) read(rm pmetric.ResourceMetrics, resource int, host string) {
	hostID := mlattr.IDAt(rm.Resource().Attributes(), mlattr.HostID)
	for _, sm := range rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			name := m.Name()
			if !Joinable(name) && !slices.Contains(gpuSizes, name) {
				continue
			}
			for _, p := range mlattr.NumberPoints(m).All() {
				attrs := p.Attributes()
				g := r.gpuOf(attrs, host)
				if g == nil || p.Flags().NoRecordedValue() {
					continue
				}
				if !Joinable(name) {
					g.memory[name] = bytesOf(p, 1)
					continue
				}
				w := r.workloadOf(attrs, g, hostID)
				pt := point{attrs: attrs, workload: w, process: -1, name: name, at: p.Timestamp(), resource: resource}
				if strings.HasPrefix(name, mlattr.GPUProcessPrefix) {
					pt.process = r.processOf(attrs, w)
				} else {
					w.hasPoints = true
					if name == mlattr.GPUWorkloadMemory {
						w.memory = bytesOf(p, 1)
					}
				}
				r.points = append(r.points, pt)
			}
		}
	}
}

// gpuOf returns the GPU that a point is about, or nil if its host is unknown.
func (r *request) gpuOf(attrs pcommon.Map, host string) *gpu {
	host = cmp.Or(mlattr.IDAt(attrs, mlattr.HostName), host)
	id := mlattr.IDAt(attrs, mlattr.HardwareID)
	if host == "" {
		return nil
	}
	key := gpuKey{cache.Hash(host), id}
	return shared.Entry(r.gpus, key, func() *gpu {
		return &gpu{host: key.host, id: cache.Hash(id), uuid: cache.Hash(bareUUID(id)), memory: make(map[string]count)}
	})
}

// workloadOf returns the workload that a point is about.
func (r *request) workloadOf(attrs pcommon.Map, g *gpu, hostID string) *workload {
	var identity strings.Builder
	for _, key := range workloadIdentity {
		identity.WriteString(mlattr.IDAt(attrs, key))
		identity.WriteByte('\n') // no id has one
	}
	return shared.Entry(r.workloadAt, workloadKey{g, identity.String()}, func() *workload {
		g.workloads++
		w := &workload{
			gpu: g, world: readCount(attrs, mlattr.WorldSize),
			rank:     rank{readCount(attrs, mlattr.RankGlobal), readCount(attrs, mlattr.RankLocal)},
			gpuIndex: readCount(attrs, mlattr.NVIDIAIndex),
		}
		w.run = mlattr.IDAt(attrs, mlattr.RunID)
		w.ranked = w.rank.global.ok && w.rank.local.ok && w.world.ok
		job := mlattr.IDAt(attrs, mlattr.SlurmJobID)
		if mlattr.Sentinel(job) {
			job = ""
		}
		w.traits = traitsOf(attrs, hostID, job, mlattr.IDAt(attrs, mlattr.ServiceName), w.world)
		r.workloads = append(r.workloads, w)
		return w
	})
}

// readCount reads a whole number that is not negative.
func readCount(attrs pcommon.Map, key string) count {
	v, ok := attrs.Get(key)
	if !ok || v.Type() != pcommon.ValueTypeInt || v.Int() < 0 {
		return count{}
	}
	return count{n: v.Int(), ok: true}
}

// processOf returns the index of a point's process in its workload.
func (r *request) processOf(attrs pcommon.Map, w *workload) int {
	process := processID{pid: readNumber(attrs, mlattr.ProcessID), own: readNumber(attrs, mlattr.ProcessVPID), start: readInstant(attrs, mlattr.ProcessStart)}
	return shared.Entry(r.processAt, processKey{w, process}, func() int {
		w.processes = append(w.processes, process)
		return len(w.processes) - 1
	})
}

// write adds to the points what the clients of their runs report.
func (r *request) write() {
	for i := range r.points {
		p := &r.points[i]
		w := p.workload
		found := &w.join
		if p.process >= 0 && w.ownJoins[p.process].ok {
			found = &w.ownJoins[p.process]
		}
		p.run = w.run
		if found.ok {
			p.run = found.write(p.attrs, w)
		}
		w.gpu.see(p.run)
	}
	for _, p := range r.points {
		if p.workload.gpu.shared && !label.Taken(p.attrs, mlattr.GPUShared) {
			p.attrs.PutBool(mlattr.GPUShared, true)
		}
	}
}

// addUp sums the memory of the workloads of each GPU.
func (r *request) addUp() {
	for _, w := range r.workloads {
		g := w.gpu
		g.unsized = g.unsized || !w.memory.ok || w.memory.n > maxGPUMemory
		if !g.unsized {
			g.inUse = min(g.inUse+w.memory.n, maxGPUMemory)
		}
	}
}

// see notes that a run uses the GPU.
func (g *gpu) see(run string) {
	switch {
	case run == "" || run == g.run:
	case g.run == "":
		g.run = run
	default:
		g.shared = true
	}
}

// write adds the run to a point that does not name it, with the job, the
// attempt and the rank if they are known. It returns the point's run.
func (j *join) write(attrs pcommon.Map, w *workload) string {
	if w.run != "" && w.run != j.run {
		return w.run // the client's is inferred
	}
	if w.run == "" {
		if label.Taken(attrs, mlattr.RunID) {
			return ""
		}
		attrs.PutStr(mlattr.RunID, j.run)
		if !label.Taken(attrs, mlattr.GPUJoin) {
			attrs.PutStr(mlattr.GPUJoin, ruleNames[j.rule])
		}
	}
	number := func(key string, n count) {
		if n.ok && !label.Taken(attrs, key) {
			attrs.PutInt(key, n.n)
		}
	}
	number(mlattr.RunAttempt, j.attempt)
	if world := j.traits[traitWorld]; world.value != 0 && !world.several {
		number(mlattr.WorldSize, count{int64(world.value - 1), true})
	}
	if j.rule == ruleProcess && j.alone {
		number(mlattr.RankGlobal, j.rank.global)
		number(mlattr.RankLocal, j.rank.local)
	}
	if j.job != "" && !label.Taken(attrs, mlattr.JobID) {
		attrs.PutStr(mlattr.JobID, j.job)
	}
	return j.run
}
