package mlenrichprocessor

import (
	"context"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// The gpu receiver's series that may be joined to a run begin with these.
const (
	workloadPrefix = "nvidia.gpu.workload."
	processPrefix  = "nvidia.gpu.process."
)

// joinable says whether a metric's points are of workloads or processes.
func joinable(name string) bool {
	return strings.HasPrefix(name, workloadPrefix) || strings.HasPrefix(name, processPrefix)
}

// workloadIdentity are the attributes by which the gpu receiver tells one
// workload of a GPU from another.
var workloadIdentity = [...]string{
	mlattr.RunID, mlattr.RunAttempt, mlattr.RankGlobal, mlattr.RankLocal, mlattr.WorldSize, attrSlurmJob, attrContainerID,
	attrPodUID, "k8s.namespace.name", "k8s.pod.name", "k8s.container.name", mlattr.ServiceName, "user.id",
}

// gpuJoin is the GPUs of a batch, and what uses them.
type gpuJoin struct {
	gpus    []gpuState
	tenants []tenant
	points  []tenantPoint

	gpuAt     map[gpuKey]int
	tenantAt  map[tenantKey]int
	processAt map[processKey]int
}

type gpuKey struct {
	host uint64 // as store.hashOf has it, and so are
	id   string
}

// gpuState is a GPU or MIG device of a batch.
type gpuState struct {
	id      uint64 // the hash of hw.id
	tenants int
	run     string // the first that uses it
	shared  bool

	memory gpuMemory
	// workloads is what its workloads have together, in bytes, and unsized is
	// true where that is not known of all.
	workloads int64
	unsized   bool
}

type tenantKey struct {
	gpu      int
	identity string
}

type processKey struct {
	tenant  int
	process processID
}

// tenant is a workload of a GPU.
type tenant struct {
	evidence
	gpu   int
	host  uint64
	rank  rankNumbers
	world count
	index count
	// memory is what the workload has of the GPU's, and hasPoints is true where
	// there is anything but its processes' points.
	memory    count
	hasPoints bool
	// asked has the lookup of each rung but rungProcess, and owned those of each
	// process.
	asked [rungCount + 1]span
	owned []span

	binding binding
	// ownBindings are those of the processes by themselves.
	ownBindings []binding
}

// span is a part of a list.
type span struct{ first, end int }

// binding is what ties a workload to a run.
type binding struct {
	claimant
	rung  rung
	bound bool
	// manyGPUs is true where workloads of other GPUs are at the same place.
	manyGPUs bool
}

// tenantPoint is a point of a workload's series, or of a process of one.
type tenantPoint struct {
	attrs  pcommon.Map
	tenant int
	// process is the place in the tenant's processes, and below zero for a
	// workload's own point.
	process int
	run     string

	name     string
	at       pcommon.Timestamp
	resource int
}

// joinGPUs ties the GPUs' workloads and processes of a batch to runs. What an
// ml_enrich before this one has joined is left as it is.
func (e *enricher) joinGPUs(ctx context.Context, md pmetric.Metrics, b *batch) {
	j := &gpuJoin{gpuAt: make(map[gpuKey]int), tenantAt: make(map[tenantKey]int), processAt: make(map[processKey]int)}
	for i, rm := range md.ResourceMetrics().All() {
		if !joined(rm) {
			e.readGPUs(rm, i, b.resources[i].process.host, j)
		}
	}
	if len(j.points) == 0 {
		return
	}
	e.bind(j)
	writeJoins(j)
	own := newOwnMetrics(md)
	j.addRunInfo(own)
	j.addUp()
	e.addBreakdowns(ctx, j, own)
}

// joined says whether the GPUs of a resource are tied to their runs already.
func joined(rm pmetric.ResourceMetrics) bool {
	for _, sm := range rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			if m.Name() == runInfo {
				return true
			}
			if !joinable(m.Name()) {
				continue
			}
			has := false
			eachPoint(m, func(point pcommon.Map) {
				_, ok := point.Get(mlattr.GPUJoin)
				has = has || ok
			})
			if has {
				return true
			}
		}
	}
	return false
}

// readGPUs collects what a resource says about GPUs.
func (e *enricher) readGPUs(rm pmetric.ResourceMetrics, resource int, host string, j *gpuJoin) {
	hostID := readID(rm.Resource().Attributes(), attrHostID)
	for _, sm := range rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			name := m.Name()
			if !joinable(name) && !sizesGPU(name) {
				continue
			}
			for _, p := range numberPoints(m).All() {
				attrs := p.Attributes()
				gpu, onHost := e.gpuOf(attrs, host, j)
				if gpu < 0 || p.Flags().NoRecordedValue() {
					continue
				}
				if !joinable(name) {
					j.gpus[gpu].memory.read(name, bytesOf(p, 1))
					continue
				}
				tp := tenantPoint{attrs: attrs, process: -1, name: name, at: p.Timestamp(), resource: resource}
				tp.tenant = e.tenantOf(attrs, gpu, onHost, hostID, j)
				if strings.HasPrefix(name, processPrefix) {
					tp.process = j.processOf(attrs, tp.tenant)
				} else {
					t := &j.tenants[tp.tenant]
					t.hasPoints = true
					if name == workloadMemory {
						t.memory = bytesOf(p, 1)
					}
				}
				j.points = append(j.points, tp)
			}
		}
	}
}

// numberPoints are the points of a gauge or sum.
func numberPoints(m pmetric.Metric) pmetric.NumberDataPointSlice {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return m.Gauge().DataPoints()
	case pmetric.MetricTypeSum:
		return m.Sum().DataPoints()
	default:
		return pmetric.NewNumberDataPointSlice()
	}
}

// gpuOf returns the place of the GPU that a point is about, and its host, or a
// place below zero.
func (e *enricher) gpuOf(attrs pcommon.Map, host string, j *gpuJoin) (int, uint64) {
	if own := readID(attrs, mlattr.HostName); own != "" {
		host = own
	}
	id := readID(attrs, mlattr.HardwareID)
	if host == "" {
		return -1, 0
	}
	key := gpuKey{hashOf(e.store, host), id}
	at, ok := j.gpuAt[key]
	if !ok {
		at = len(j.gpus)
		j.gpuAt[key] = at
		j.gpus = append(j.gpus, gpuState{id: hashOf(e.store, id)})
	}
	return at, key.host
}

// tenantOf returns the place of the workload that a point is of.
func (e *enricher) tenantOf(attrs pcommon.Map, gpu int, host uint64, hostID string, j *gpuJoin) int {
	var identity strings.Builder
	for _, key := range workloadIdentity {
		identity.WriteString(readID(attrs, key))
		identity.WriteByte('\n') // no id has one
	}
	key := tenantKey{gpu, identity.String()}
	at, ok := j.tenantAt[key]
	if ok {
		return at
	}
	at = len(j.tenants)
	j.tenantAt[key] = at
	j.gpus[gpu].tenants++
	world := readCount(attrs, mlattr.WorldSize)
	t := tenant{
		gpu: gpu, host: host, world: world,
		rank:  rankNumbers{readCount(attrs, mlattr.RankGlobal), readCount(attrs, mlattr.RankLocal)},
		index: readCount(attrs, "nvidia.gpu.index"),
	}
	t.run = readID(attrs, mlattr.RunID)
	t.ranked = t.rank.global.ok && t.rank.local.ok && world.ok
	t.says = [traitCount]uint64{
		traitHost:      hashOf(e.store, hostID),
		traitContainer: hashOf(e.store, readID(attrs, attrContainerID)),
		traitPod:       hashOf(e.store, readID(attrs, attrPodUID)),
		traitWorld:     worldTrait(world),
		traitService:   hashOf(e.store, readID(attrs, mlattr.ServiceName)),
	}
	if job := readID(attrs, attrSlurmJob); !mlattr.Sentinel(job) {
		t.says[traitSlurm] = hashOf(e.store, job)
	}
	j.tenants = append(j.tenants, t)
	return at
}

// readCount reads a whole number that is not negative.
func readCount(attrs pcommon.Map, key string) count {
	v, ok := attrs.Get(key)
	if !ok || v.Type() != pcommon.ValueTypeInt || v.Int() < 0 {
		return count{}
	}
	return count{n: v.Int(), ok: true}
}

// processOf returns the place of a point's process in its workload.
func (j *gpuJoin) processOf(attrs pcommon.Map, at int) int {
	key := processKey{at, processID{pid: readNumber(attrs, attrPID), own: readNumber(attrs, attrOwnPID), start: readInstant(attrs, attrStart)}}
	process, ok := j.processAt[key]
	if !ok {
		t := &j.tenants[at]
		process = len(t.processes)
		j.processAt[key] = process
		t.processes = append(t.processes, key.process)
	}
	return process
}

// writeJoins adds to the points what their runs' clients say.
func writeJoins(j *gpuJoin) {
	for i := range j.points {
		p := &j.points[i]
		t := &j.tenants[p.tenant]
		found := &t.binding
		if p.process >= 0 && t.ownBindings[p.process].bound {
			found = &t.ownBindings[p.process]
		}
		p.run = t.run
		if found.bound {
			p.run = writeJoin(p.attrs, t, found)
		}
		j.gpus[t.gpu].see(p.run)
	}
	for i := range j.points {
		p := &j.points[i]
		if j.gpus[j.tenants[p.tenant].gpu].shared && !labelTaken(p.attrs, mlattr.GPUShared) {
			p.attrs.PutBool(mlattr.GPUShared, true)
		}
	}
}

// addUp sums what the workloads of each GPU have of its memory.
func (j *gpuJoin) addUp() {
	for i := range j.tenants {
		t := &j.tenants[i]
		g := &j.gpus[t.gpu]
		g.unsized = g.unsized || !t.memory.ok || t.memory.n > maxGPUMemory
		if !g.unsized {
			g.workloads = min(g.workloads+t.memory.n, maxGPUMemory)
		}
	}
}

// see notes that a run uses the GPU.
func (g *gpuState) see(run string) {
	switch {
	case run == "" || run == g.run:
	case g.run == "":
		g.run = run
	default:
		g.shared = true
	}
}

// writeJoin adds the run to a point that does not name it, with the job, the
// attempt and the rank where they are known, and returns the point's run.
func writeJoin(attrs pcommon.Map, t *tenant, found *binding) string {
	if t.run != "" && t.run != found.run {
		return t.run // the client's is inferred
	}
	if t.run == "" {
		if labelTaken(attrs, mlattr.RunID) {
			return ""
		}
		attrs.PutStr(mlattr.RunID, found.run)
		if !labelTaken(attrs, mlattr.GPUJoin) {
			attrs.PutStr(mlattr.GPUJoin, rungNames[found.rung])
		}
	}
	number := func(key string, n count) {
		if n.ok && !labelTaken(attrs, key) {
			attrs.PutInt(key, n.n)
		}
	}
	number(mlattr.RunAttempt, found.attempt)
	if world := found.says[traitWorld]; world.value != 0 && !world.several {
		number(mlattr.WorldSize, count{int64(world.value - 1), true})
	}
	if found.rung == rungProcess && found.alone {
		number(mlattr.RankGlobal, found.rank.global)
		number(mlattr.RankLocal, found.rank.local)
	}
	if found.job != "" && !labelTaken(attrs, mlattr.JobID) {
		attrs.PutStr(mlattr.JobID, found.job)
	}
	return found.run
}
