package gpujoin

import (
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/cache"
)

// maxLocations is how many locations a process has: one for each rule, its
// host, and its Slurm job on any host.
const maxLocations = ruleCount + 2

// account is what the telemetry of a run says of a process.
type account struct {
	run      string
	inferred bool
	job      string
	attempt  count
	rank     rank
	process  processID
	memory   allocatorSizes
	// client tells the process from others of the run, if anything does.
	client uint64
}

// Process is a process of a run, as its client's resource describes it.
type Process struct {
	account
	// shared is true if the process has other runs.
	shared bool
	host   uint64
	traits [traitCount]uint64
	// locations are where it is, the first n of them.
	locations [maxLocations]location
	n         int
}

func (p *Process) add(at location) {
	if p.n < len(p.locations) {
		p.locations[p.n] = at
		p.n++
	}
}

// Describe reads a process into p, from the attributes of its resource and their facts.
// run is the id of its run, or empty, and key tells the process from others as
// well as the resource allows.
func (ix *Index) Describe(p *Process, attrs pcommon.Map, f *vocabulary.Facts, run string, inferred bool, key string, memory *Allocator) {
	*p = Process{}
	p.run, p.inferred, p.memory = run, inferred, memory.sizes(ix.Now())
	if job := f.TextAt(vocabulary.SlotJobID); !mlattr.Sentinel(job) {
		p.job = job
	}
	p.attempt = countOf(f, vocabulary.SlotRunAttempt)
	p.rank = rank{countOf(f, vocabulary.SlotRankGlobal), countOf(f, vocabulary.SlotRankLocal)}
	world, slurm := countOf(f, vocabulary.SlotWorldSize), slurmJob(attrs, f)
	p.host = cache.Hash(f.TextAt(vocabulary.SlotHostName))
	p.traits = traitsOf(attrs, mlattr.IDAt(attrs, mlattr.HostID), slurm, f.TextAt(vocabulary.SlotServiceName), world)
	p.process = processID{pid: readNumber(attrs, mlattr.ProcessID), start: readInstant(attrs, mlattr.ProcessStart)}
	p.client = cache.Hash(strings.Join([]string{key, mlattr.IDAt(attrs, mlattr.ServiceInstanceID), mlattr.IDAt(attrs, mlattr.ProcessID), mlattr.IDAt(attrs, mlattr.ProcessStart),
		strconv.FormatInt(p.rank.global.n, 10), strconv.FormatInt(p.rank.local.n, 10)}, "\n"))
	if uuid := f.TextAt(vocabulary.SlotGPUUUID); uuid != "" {
		p.add(gpuLocation(cache.Hash(bareUUID(uuid))))
	}
	p.locate(world, slurm)
	if index, ok := f.IntAt(vocabulary.SlotGPUIndex); ok && p.host != 0 {
		p.add(location{rule: ruleIndex, host: p.host, numbers: [3]int64{index}})
	}
}

// locate adds the locations of the process, but for those of GPUs.
func (p *Process) locate(world count, slurm string) {
	if p.process.pid != 0 {
		switch {
		case p.process.start != 0 && p.host != 0:
			p.add(processLocation(p.host, p.process))
		case p.process.start == 0 && p.traits[traitContainer] != 0:
			p.add(containedLocation(p.traits[traitContainer], p.process.pid))
		}
	}
	if at, ok := rankLocation(p.host, p.rank, world); ok {
		p.add(at)
	}
	for _, t := range locatedTraits {
		if p.traits[t.trait] != 0 {
			p.add(t.location(p.host, p.traits[t.trait]))
		}
	}
	if p.host == 0 {
		return
	}
	if slurm != "" && p.run == slurm {
		p.add(location{rule: ruleSlurm, id: p.traits[traitSlurm]})
	}
	if p.traits[traitService] != 0 {
		p.add(location{rule: ruleService, host: p.host, id: p.traits[traitService]})
	}
	p.add(location{rule: anyOnHost, host: p.host})
}

// SeeRun notes where a process was seen as one of another run, which a span of
// it names: a fine-tuning service has many.
func (ix *Index) SeeRun(p *Process, run string) {
	other := *p
	other.run, other.inferred, other.shared, other.memory = run, false, true, allocatorSizes{}
	ix.See(&other)
}

// SeeGPUs notes which GPUs of its host the metrics of a process name.
func (ix *Index) SeeGPUs(p *Process, indexes []int64) {
	if p.host == 0 || len(indexes) == 0 {
		return
	}
	other := *p
	for _, index := range indexes {
		other.n = 0
		other.add(location{rule: ruleIndex, host: p.host, numbers: [3]int64{index}})
		ix.See(&other)
	}
}

// locatedTraits are the traits that are locations of their own. A container or
// pod is on one host. A Slurm job is on many, each with processes of its own.
// It is a location without a host only for a workload whose host is unknown,
// and for the run that the job itself is.
var locatedTraits = [...]locatedTrait{
	{traitContainer, ruleContainer, false}, {traitPod, rulePod, false}, {traitSlurm, ruleSlurm, true},
}

type locatedTrait struct {
	trait  trait
	rule   rule
	onHost bool
}

// location is that of a trait's value on a host.
func (t locatedTrait) location(host, id uint64) location {
	if !t.onHost {
		host = 0
	}
	return location{rule: t.rule, host: host, id: id}
}

// traitsOf returns the traits of a process or a workload, by its attributes.
func traitsOf(attrs pcommon.Map, host, slurm, service string, world count) [traitCount]uint64 {
	traits := [traitCount]uint64{
		traitHost:      cache.Hash(host),
		traitContainer: cache.Hash(mlattr.IDAt(attrs, mlattr.ContainerID)),
		traitPod:       cache.Hash(mlattr.IDAt(attrs, mlattr.K8sPodUID)),
		traitSlurm:     cache.Hash(slurm),
		traitService:   cache.Hash(service),
	}
	if world.ok {
		traits[traitWorld] = uint64(world.n) + 1
	}
	return traits
}

// processLocation is that of a pid and the second of its start.
func processLocation(host uint64, p processID) location {
	return location{rule: ruleProcess, host: host, numbers: [3]int64{p.visible(), p.start / startSlack}}
}

// containedLocation is that of a pid in a container.
func containedLocation(container uint64, pid int64) location {
	return location{rule: ruleProcess, id: container, numbers: [3]int64{pid}}
}

// gpuLocation is that of a GPU by the hash of its UUID, which no other GPU has.
func gpuLocation(uuid uint64) location { return location{rule: ruleGPU, id: uuid} }

// bareUUID returns the UUID of a GPU without the prefix that NVML writes before
// it and other libraries do not.
func bareUUID(uuid string) string { return strings.ToLower(strings.TrimPrefix(uuid, "GPU-")) }

// rankLocation is that of a rank on a host. All three numbers are needed: two
// jobs on a host both have a rank 0.
func rankLocation(host uint64, r rank, world count) (location, bool) {
	ok := host != 0 && r.global.ok && r.local.ok && world.ok
	return location{rule: ruleRank, host: host, numbers: [3]int64{r.global.n, r.local.n, world.n}}, ok
}

// slurmJob returns the Slurm job of a resource: an id that is Slurm's by its
// name, or else a job id that is a number, as Slurm's are.
func slurmJob(attrs pcommon.Map, f *vocabulary.Facts) string {
	for _, key := range [...]string{mlattr.SlurmJobID, "SLURM_JOB_ID"} {
		if id := mlattr.IDAt(attrs, key); !mlattr.Sentinel(id) {
			return id
		}
	}
	id := f.TextAt(vocabulary.SlotJobID)
	if _, err := strconv.ParseUint(id, 10, 63); err != nil || mlattr.Sentinel(id) {
		return ""
	}
	return id
}

func countOf(f *vocabulary.Facts, slot vocabulary.Slot) count {
	n, ok := f.IntAt(slot)
	return count{n: n, ok: ok}
}

// readNumber reads a whole number above 0, and 0 if there is none.
func readNumber(attrs pcommon.Map, key string) int64 {
	n, _ := mlattr.ReadDigits(mlattr.IDAt(attrs, key))
	return n
}

// readInstant reads a time in nanoseconds since 1970, and 0 if there is none.
func readInstant(attrs pcommon.Map, key string) int64 {
	v, ok := attrs.Get(key)
	if !ok {
		return 0
	}
	at, _ := mlattr.ReadInstant(v)
	return at
}
